"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded.errors import Refusal, bad_request


def merge(target: Any, patch: Any) -> Any:
    """The target with a merge patch applied. What the patch does not touch is shared with the target."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            target[key] = merge(target.get(key), value)
        else:
            target[key] = value
    return target


def _unprocessable(why: str) -> Refusal:
    """Kubernetes does not tell the reason; whoever debugs us finds it as the cause."""
    refusal = Refusal(422, "Invalid", "the server rejected our request due to an error in our request", {})
    refusal.__cause__ = ValueError(why)
    return refusal


def apply_json_patch(document: Json, operations: Any) -> Json:
    """The document with the operations applied in order."""
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > 10000:
        raise Refusal(413, "RequestEntityTooLarge", "The allowed maximum operations in a JSON patch is 10000")
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("json: cannot unmarshal value into Go value of type jsonpatch.Operation")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Json) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise _unprocessable("the server rejected our request due to an error in our request")
    match kind:
        case "add":
            return _add(document, path, operation.get("value"))
        case "remove":
            _remove(document, path, "remove")
            return document
        case "replace":
            if path == "":
                return operation.get("value")
            _value(document, path, "replace")
            parent, last = _parent(document, path, "replace")
            if isinstance(parent, list):
                parent[int(last)] = operation.get("value")
            else:
                parent[last] = operation.get("value")
            return document
        case "move":
            value = _remove(document, operation.get("from", ""), "move")
            return _add(document, path, value)
        case "copy":
            value = _value(document, operation.get("from", ""), "copy")
            return _add(document, path, msgspec.json.decode(msgspec.json.encode(value)))
        case "test":
            return _test(document, path, operation.get("value"))
    raise _unprocessable(f"Unexpected kind: {kind}")


def _test(document: Any, path: str, wanted: Any) -> Any:
    try:
        found = _value(document, path, "test")
    except Refusal:
        if wanted is None:
            return document
        raise
    if found != wanted or isinstance(found, bool) is not isinstance(wanted, bool):
        raise _unprocessable(f"testing value {path} failed: test failed")
    return document


def _parts(path: str) -> list[str]:
    if not path.startswith("/"):
        raise _unprocessable(f"the path {path!r} of a JSON patch must start with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _missing(operation: str, path: str) -> Refusal:
    return _unprocessable(f"{operation} operation does not apply: doc is missing path: {path}: missing value")


def _step(node: Any, part: str, operation: str, path: str) -> Any:
    if isinstance(node, dict) and part in node:
        return node[part]
    if isinstance(node, list) and part.lstrip("-").isdigit() and -len(node) <= int(part) < len(node):
        return node[int(part)]
    raise _missing(operation, path)


def _parent(document: Any, path: str, operation: str) -> tuple[Any, str]:
    *before, last = _parts(path)
    node = document
    for part in before:
        node = _step(node, part, operation, path)
    return node, last


def _value(document: Any, path: str, operation: str) -> Any:
    node = document
    for part in _parts(path) if path else ():
        node = _step(node, part, operation, path)
    return node


def _add(document: Any, path: str, value: Any) -> Any:
    if path == "":
        return value
    parent, last = _parent(document, path, "add")
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        if last == "-":
            parent.append(value)
        elif last.isdigit() and int(last) <= len(parent):
            parent.insert(int(last), value)
        else:
            raise _unprocessable(f"add operation does not apply: doc is missing path: {path}: invalid array index")
    else:
        raise _missing("add", path)
    return document


def _remove(document: Any, path: str, operation: str) -> Any:
    value = _value(document, path, operation)
    parent, last = _parent(document, path, operation)
    if isinstance(parent, list):
        parent.pop(int(last))
    else:
        del parent[last]
    return value
