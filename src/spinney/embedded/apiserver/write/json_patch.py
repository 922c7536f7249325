"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import Refusal, bad_request
from spinney.embedded.apiserver.schema.misfit import type_name


def merge(target: Any, patch: Any) -> Any:
    """The target with a merge patch applied; unchanged parts are shared with the target."""
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


class PatchDoesNotApply(Refusal):
    """422: operations that do not fit the object. Kubernetes does not tell the client why."""

    def __init__(self, why: str) -> None:
        super().__init__(422, "Invalid", "the server rejected our request due to an error in our request", {})
        self.why = why


def apply_json_patch(document: Json, operations: Any) -> Json:
    """The document with the operations applied in order; unchanged parts are shared with it."""
    if not isinstance(operations, list):
        raise bad_request(f"error decoding patch: expected an array, got {type_name(operations)}")
    if len(operations) > 10000:
        why = f"The allowed maximum operations in a JSON patch is 10000, got {len(operations)}"
        raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request(f"error decoding patch: expected an object, got {type_name(operation)}")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Json) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise PatchDoesNotApply("the server rejected our request due to an error in our request")
    match kind:
        case "add":
            return _add(document, path, operation.get("value"))
        case "remove":
            return _remove(document, path, "remove")
        case "replace":
            return _replace(document, path, operation.get("value"))
        case "move":
            start = operation.get("from", "")
            value = _value(document, start, "move")
            return _add(_remove(document, start, "move"), path, value)
        case "copy":
            return _add(document, path, _copied(document, operation.get("from", "")))
        case "test":
            return _test(document, path, operation.get("value"))
    raise PatchDoesNotApply(f"Unexpected kind: {kind}")


def _test(document: Any, path: str, expected: Any) -> Any:
    try:
        value = _value(document, path, "test")
    except Refusal:
        if expected is None:
            return document
        raise
    if value != expected or isinstance(value, bool) is not isinstance(expected, bool):
        raise PatchDoesNotApply(f"testing value {path} failed: test failed")
    return document


def _parts(path: str) -> list[str]:
    # Kubernetes' library ignores what comes before the first slash.
    if "/" not in path:
        raise PatchDoesNotApply(f"the path {path!r} of a JSON patch has no '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _missing(operation: str, path: str) -> PatchDoesNotApply:
    return PatchDoesNotApply(f"{operation} operation does not apply: doc is missing path: {path}: missing value")


def _place(node: Any, part: str, operation: str, path: str) -> Any:
    """The key or index of an existing member."""
    if isinstance(node, dict) and part in node:
        return part
    if isinstance(node, list) and part.lstrip("-").isdigit() and -len(node) <= int(part) < len(node):
        return int(part)
    raise _missing(operation, path)


def _value(document: Any, path: str, operation: str) -> Any:
    node = document
    for part in _parts(path) if path else ():
        node = node[_place(node, part, operation, path)]
    return node


def _copied(document: Any, path: str) -> Any:
    """The value to copy; a missing member is null, as in Kubernetes' library."""
    parent, _, last = path.rpartition("/")
    node = _value(document, parent, "copy")
    return node.get(_parts(f"/{last}")[0]) if isinstance(node, dict) else _value(document, path, "copy")


def _edited(node: Any, parts: list[str], operation: str, path: str, edit: Callable[[Any, str], None]) -> Any:
    """A copy of the path to the last part, which `edit` changes."""
    if not isinstance(node, dict | list):
        raise _missing(operation, path)
    changed = node.copy()
    if len(parts) == 1:
        edit(changed, parts[0])
    else:
        place = _place(node, parts[0], operation, path)
        changed[place] = _edited(node[place], parts[1:], operation, path, edit)
    return changed


def _add(document: Any, path: str, value: Any) -> Any:
    def add(parent: Any, last: str) -> None:
        if isinstance(parent, dict):
            parent[last] = value
        elif last == "-":
            parent.append(value)
        elif last.isdigit() and int(last) <= len(parent):
            parent.insert(int(last), value)
        else:
            raise PatchDoesNotApply(f"add operation does not apply: doc is missing path: {path}: invalid array index")

    return _edited(document, _parts(path), "add", path, add)


def _remove(document: Any, path: str, operation: str) -> Any:
    def remove(parent: Any, last: str) -> None:
        if isinstance(parent, dict) and last not in parent:
            why = f"Unable to remove nonexistent key: {last}: missing value"
            raise PatchDoesNotApply(f"error in {operation} for path: '{path}': {why}")
        del parent[_place(parent, last, operation, path)]

    return _edited(document, _parts(path), operation, path, remove)


def _replace(document: Any, path: str, value: Any) -> Any:
    def replace(parent: Any, last: str) -> None:
        # A missing member is added, as in Kubernetes' library.
        parent[last if isinstance(parent, dict) else _place(parent, last, "replace", path)] = value

    return _edited(document, _parts(path), "replace", path, replace) if path else value
