"""OpenAPI documents: for clients that check and explain, built from the schemas and from definitions."""

from __future__ import annotations

import hashlib
from typing import Any

from spinney.api.meta import Json, encode
from spinney.embedded.kinds import Kind, Kinds
from spinney.embedded.shapes import definitions, kind_names, meta_schema
from spinney.kube.transport import Request, Response

_JSON = {"content-type": "application/json"}
_SCHEMAS = "#/components/schemas/"


# kubectl asks for version 2 only about kinds that version 3 does not have, to find that nobody knows them. So the
# document (protobuf: swagger, info, no paths, no definitions) describes nothing.
_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_EMPTY_V2 = b"\x0a\x032.0\x12\x0c\x0a\x0aKubernetesB\x00J\x00"


class OpenApi:
    """Answers `/openapi/v3` and below; a document per group and version, made when first asked for."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._documents: dict[str, bytes] = {}
        self._revision = -1

    def answer(self, request: Request) -> Response | None:
        """The answer to a request for a document, or None where the path is no such thing."""
        if self._revision != self._kinds.revision:
            self._documents, self._revision = {}, self._kinds.revision
        path = request.path.rstrip("/")
        if path == "/openapi/v2":
            return self._old(request)
        if path == "/openapi/v3":
            return Response(200, self._index(), _JSON)
        if not path.startswith("/openapi/v3/"):
            return None
        name = path.removeprefix("/openapi/v3/")
        document = self._document(name)
        return Response(200, document, _JSON) if document is not None else None

    def _old(self, request: Request) -> Response:
        """The one document of version 2: whole in JSON, and in protobuf as empty as kubectl can do with."""
        if "protobuf" in request.headers.get("accept", ""):
            return Response(200, _EMPTY_V2, {"content-type": _V2})
        if "v2" not in self._documents:
            schemas: Json = {}
            for kind in self._kinds:
                if kind.custom is not None:
                    schemas[_schema_name(kind)] = _custom_schema(kind)
                else:
                    _collect(_schema_name(kind), schemas)
            info = {"title": "Kubernetes", "version": "v1.35.4"}
            document = {"swagger": "2.0", "info": info, "paths": {}, "definitions": schemas}
            self._documents["v2"] = encode(document).replace(_SCHEMAS.encode(), b"#/definitions/")
        return Response(200, self._documents["v2"], _JSON)

    def _names(self) -> dict[str, list[Kind]]:
        found: dict[str, list[Kind]] = {}
        for kind in self._kinds:
            root = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
            found.setdefault(root, []).append(kind)
        return found

    def _index(self) -> bytes:
        if "" not in self._documents:
            paths = {}
            for name, kinds in self._names().items():
                mark = hashlib.sha256(encode([name, self._revision if kinds[0].custom else 0])).hexdigest()[:32]
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={mark.upper()}"}
            for name in ("api", "apis", "version", *{f"apis/{kind.group}" for kind in self._kinds if kind.group}):
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={'0' * 32}"}
            self._documents[""] = encode({"paths": dict(sorted(paths.items()))})
        return self._documents[""]

    def _document(self, name: str) -> bytes | None:
        if name not in self._documents:
            kinds = self._names().get(name, [])
            groups = {f"apis/{kind.group}" for kind in self._kinds if kind.group}
            if not kinds and name not in ("api", "apis", "version") and name not in groups:
                return None
            self._documents[name] = encode(_document(kinds))
        return self._documents[name]


def _document(kinds: list[Kind]) -> Json:
    schemas: Json = {}
    paths: Json = {}
    for kind in kinds:
        schema_name = _schema_name(kind)
        if kind.custom is not None:
            schemas[schema_name] = _custom_schema(kind)
            _collect(meta_schema()["$ref"], schemas)
        else:
            _collect(schema_name, schemas)
        paths.update(_paths(kind, schema_name))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.35.4"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema_name(kind: Kind) -> str:
    if kind.custom is None:
        return kind_names().get((kind.group, kind.version, kind.kind), kind.kind)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _collect(name: str, into: Json) -> None:
    """A schema and all that it refers to, with references as a document writes them."""
    if name in into or name not in definitions():
        return
    into[name] = {}
    into[name] = _linked(definitions()[name], into)


def _linked(node: Any, into: Json) -> Any:
    if isinstance(node, list):
        return [_linked(item, into) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        _collect(reference, into)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        target = {"$ref": _SCHEMAS + reference}
        return {**rest, "allOf": [target]} if rest else target
    return {key: _linked(value, into) for key, value in node.items()}


def _custom_schema(kind: Kind) -> Json:
    assert kind.custom is not None
    schema = kind.custom.versions[kind.version].full
    members = {
        "apiVersion": {"type": "string", "description": "The version of the schema of this object."},
        "kind": {"type": "string", "description": "The kind of this object."},
        **(schema.get("properties") or {}),
        "metadata": {"allOf": [{"$ref": _SCHEMAS + meta_schema()["$ref"]}], "description": "Standard metadata."},
    }
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return {**schema, "properties": members, "x-kubernetes-group-version-kind": [gvk]}


def _parameter(name: str, kind: str = "string") -> Json:
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}


_WRITE = [_parameter("dryRun"), _parameter("fieldManager"), _parameter("fieldValidation")]


def _paths(kind: Kind, schema_name: str) -> Json:
    """The operations that kubectl looks at: it leaves checking to a server whose patches take `fieldValidation`."""
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    content = {"application/json": {"schema": {"$ref": _SCHEMAS + schema_name}}}

    def operation(action: str, parameters: list[Json]) -> Json:
        return {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content}},
        }

    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    base = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    collection: Json = {}
    single: Json = {}
    if "list" in kind.verbs:
        collection["get"] = operation("list", [_parameter("labelSelector"), _parameter("fieldSelector")])
    if "create" in kind.verbs:
        collection["post"] = operation("post", _WRITE)
    if "get" in kind.verbs:
        single["get"] = operation("get", [])
    if "update" in kind.verbs:
        single["put"] = operation("put", _WRITE)
    if "patch" in kind.verbs:
        single["patch"] = operation("patch", [*_WRITE, _parameter("force", "boolean")])
    if "delete" in kind.verbs:
        single["delete"] = operation("delete", [_parameter("dryRun")])
    paths: Json = {base: collection}
    if single:
        paths[f"{base}/{{name}}"] = single
    return paths
