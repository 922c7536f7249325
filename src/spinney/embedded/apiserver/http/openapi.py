"""OpenAPI documents, built from the built-in schemas and from CustomResourceDefinitions."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.http import openapi_paths
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.schema.shapes import definitions, kind_names, meta_schema
from spinney.kube.client.transport import Request, Response

_SCHEMAS = "#/components/schemas/"
_REFERENCE = re.compile(rf'"{_SCHEMAS}([^"]+)"')
_BEARER = {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}
_SECURITY = {"BearerToken": _BEARER}


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
        """Answer a request for a document, or return None for another path."""
        if self._revision != self._kinds.revision:
            self._documents, self._revision = {}, self._kinds.revision
        path = request.path
        if path == "/openapi/v2":
            return self._version_2(request)
        if path == "/openapi/v3":
            return Response(200, self._index(), {**JSON, "content-type": "text/plain; charset=utf-8"})
        if not path.startswith("/openapi/v3/"):
            return None
        name = path.removeprefix("/openapi/v3/")
        document = self._document(name) if name else None
        return Response(200, document, JSON) if document is not None else Response(404)

    def _version_2(self, request: Request) -> Response:
        """The document of version 2: complete in JSON, and in protobuf as empty as kubectl accepts."""
        if "protobuf" in request.headers.get("accept", ""):
            return Response(200, _EMPTY_V2, {"content-type": _V2})
        if "v2" not in self._documents:
            schemas: Json = {}
            for name in definitions():
                if not name.startswith(openapi_paths.TEMPLATE_NAME):
                    _collect(name, schemas)
            for kind in self._kinds:
                if kind.custom is not None:
                    _describe(kind, schemas)
            older = {name: _as_version_2(schema) for name, schema in sorted(schemas.items())}
            info = {"title": "Kubernetes", "version": "v1.35.4"}
            document = {"swagger": "2.0", "info": info, "paths": {}, "definitions": older}
            self._documents["v2"] = encode(document).replace(_SCHEMAS.encode(), b"#/definitions/")
        return Response(200, self._documents["v2"], JSON)

    def _names(self) -> dict[str, list[Kind]]:
        kinds_by_root: dict[str, list[Kind]] = {}
        for kind in self._kinds:
            root = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
            kinds_by_root.setdefault(root, []).append(kind)
        return kinds_by_root

    def _index(self) -> bytes:
        if "" not in self._documents:
            paths = {}
            for name, kinds in self._names().items():
                mark = hashlib.sha256(encode([name, self._revision if kinds[0].custom else 0])).hexdigest()[:32]
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={mark.upper()}"}
            # Groups of custom resources have no document of their own.
            groups = {f"apis/{kind.group}" for kind in self._kinds if kind.group}
            for name in ("api", "apis", "version", *filter(openapi_paths.of_document, groups)):
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={'0' * 32}"}
            self._documents[""] = encode({"paths": dict(sorted(paths.items()))})
        return self._documents[""]

    def _document(self, name: str) -> bytes | None:
        if name not in self._documents:
            kinds = self._names().get(name, [])
            if not kinds and openapi_paths.of_document(name) is None:
                return None
            self._documents[name] = encode(_document(name, kinds))
        return self._documents[name]


def _document(name: str, kinds: list[Kind]) -> Json:
    schemas: Json = {}
    paths = openapi_paths.of_document(name)
    if paths is None:
        paths = {}
        for kind in kinds:
            _describe(kind, schemas)
            paths |= openapi_paths.of_kind(kind, _schema_name(kind))
    for reference in sorted(set(_REFERENCE.findall(encode(paths).decode()))):
        _collect(reference, schemas)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.35.4"},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items())), "securitySchemes": _SECURITY},
    }


def _describe(kind: Kind, into: Json) -> None:
    """Add the schemas of a kind without a document, and of its list."""
    name = _schema_name(kind)
    if kind.custom is None:
        into[name] = {"type": "object", "x-kubernetes-group-version-kind": [_named(kind)]}
    else:
        into[name] = _custom_schema(kind)
        _collect(meta_schema()["$ref"], into)
    items = msgspec.json.encode(_list_template()).decode()
    for old, new in {openapi_paths.TEMPLATE_NAME: name, "zg.zz": kind.group, "v77": kind.version}.items():
        items = items.replace(old, new)
    items = items.replace("ZkindList", kind.list_kind).replace("zplurals", kind.plural).replace("Zkind", kind.kind)
    into[f"{name.rpartition('.')[0]}.{kind.list_kind}"] = _with_references(msgspec.json.decode(items), into)


def _list_template() -> Json:
    return definitions()[f"{openapi_paths.TEMPLATE_NAME}List"]


def _schema_name(kind: Kind) -> str:
    built_in_name = kind_names().get((kind.group, kind.version, kind.kind)) if kind.custom is None else None
    if built_in_name is not None:
        return built_in_name
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _collect(name: str, into: Json) -> None:
    """Add a schema and all that it refers to, with references in the document's form."""
    if name in into or name not in definitions():
        return
    into[name] = {}
    into[name] = _with_references(definitions()[name], into)


def _with_references(node: Any, into: Json) -> Any:
    if isinstance(node, list):
        return [_with_references(item, into) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        _collect(reference, into)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        target = {"$ref": _SCHEMAS + reference}
        return {**rest, "allOf": [target]} if rest else target
    return {key: _with_references(value, into) for key, value in node.items()}


def _custom_schema(kind: Kind) -> Json:
    assert kind.custom is not None
    schema = _with_any_of(kind.custom.versions[kind.version].full)
    usual = _with_references(definitions()[openapi_paths.TEMPLATE_NAME]["properties"], {})
    members = {**(schema.get("properties") or {}), **usual}
    return {**schema, "properties": members, "x-kubernetes-group-version-kind": [_named(kind)]}


def _named(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _with_any_of(schema: Any) -> Any:
    """A schema that also says `anyOf` where a value can be an integer or a string."""
    if isinstance(schema, list):
        return [_with_any_of(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _with_any_of(value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string") is True and "anyOf" not in schema and "allOf" not in schema:
        result = {"anyOf": [{"type": "integer"}, {"type": "string"}], **result}
    return result


def _as_version_2(node: Json) -> Json:
    """A schema in the form of OpenAPI 2: no defaults, no type if several are possible, no allOf around references."""
    left_out = {"default", "allOf"}
    if node.get("x-kubernetes-int-or-string") or node.get("nullable"):
        left_out |= {"anyOf", "type", "nullable"}
    if node.get("x-kubernetes-preserve-unknown-fields"):
        left_out |= {"type", "properties"}
    result = {key: value for key, value in node.items() if key not in left_out}
    references: list[Json] = node.get("allOf") or []
    if len(references) == 1 and "$ref" in references[0]:
        result |= references[0]
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            result[key] = _as_version_2(node[key])
    if isinstance(result.get("properties"), dict):
        result["properties"] = {name: _as_version_2(member) for name, member in node["properties"].items()}
    return result
