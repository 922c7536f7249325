"""The paths of OpenAPI documents, with their parameters and responses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded.apiserver import data_files
from spinney.embedded.apiserver.resources.kinds import Kind

_METHODS = {"get": "get", "post": "create", "put": "update", "patch": "patch", "delete": "delete"}
_COLLECTION = {"get": "list", "post": "create", "delete": "deletecollection"}
# The template kinds that stand for all custom ones.
TEMPLATE, TEMPLATE_NAME = "apis/zg.zz/v77", "zz.zg.v77.Zkind"


@lru_cache(maxsize=1)
def _data() -> Json:
    """Paths by document, and the parameters that they name by number."""
    return data_files.read("paths", dict[str, Any])


def of_document(name: str) -> Json | None:
    """The paths of a built-in document, by its name in the index."""
    paths = _data()["documents"].get(name) if name != TEMPLATE else None
    return {path: _parametrised(operations) for path, operations in paths.items()} if paths is not None else None


def of_kind(kind: Kind, schema_name: str) -> Json:
    """The paths of a kind without a document, made from those of a template kind of the same scope."""
    plural, singular = ("zplurals", "Zkind") if kind.namespaced else ("zwides", "Zwide")
    taken: Json = {}
    for path, operations in _data()["documents"][TEMPLATE].items():
        parts = path.strip("/").split("/")
        if plural not in parts:
            continue
        last = parts[parts.index(plural) + 1 :]
        if len(last) > 1 and last[1] not in kind.subresources:
            continue
        verbs = kind.subresources[last[1]].verbs if len(last) > 1 else kind.verbs
        methods = _METHODS if last else _COLLECTION
        kept = {
            method: operation
            for method, operation in operations.items()
            if methods.get(method, method) in (*verbs, "parameters")
        }
        if kept.keys() - {"parameters"}:
            taken[path] = _parametrised(kept)
    names = {
        f"zz.zg.v77.{singular}": schema_name,
        "zg.zz": kind.group,
        "zgZz_v77": f"{camel(kind.group)}_{kind.version}",
        "ZgZzV77": camel(f".{kind.group}.{kind.version}"),
        "v77": kind.version,
        plural: kind.plural,
        singular: kind.kind,
    }
    return _renamed(taken, names)


def _parametrised(operations: Json) -> Json:
    table = _data()["parameters"]
    result: Json = {}
    for method, operation in operations.items():
        if method == "parameters":
            result[method] = [table[number] for number in operation]
        elif "parameters" in operation:
            result[method] = {**operation, "parameters": [table[number] for number in operation["parameters"]]}
        else:
            result[method] = operation
    return result


def _renamed(paths: Json, names: dict[str, str]) -> Json:
    text = msgspec.json.encode(paths).decode()
    for old, new in names.items():
        text = text.replace(old, new)
    return msgspec.json.decode(text, type=dict[str, Any])


def camel(name: str) -> str:
    """A name in camel case, without `.k8s.io`."""
    first, *rest = name.replace(".k8s.io", "").replace("-", ".").split(".")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
