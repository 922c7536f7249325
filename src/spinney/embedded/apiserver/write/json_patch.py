"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.embedded.apiserver.errors import Refusal, bad_request
from spinney.embedded.apiserver.schema.misfit import type_name

# Values that the operations of one patch may copy or move, altogether.
_MOST_WORK = 1_000_000


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
    patched = _Patched()
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request(f"error decoding patch: expected an object, got {type_name(operation)}")
        document = _apply(patched, document, operation)
        if patched.work > _MOST_WORK:
            why = f"its operations copy more than {_MOST_WORK} values"
            raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
    return document


class _Patched:
    """The containers that this patch has copied already, and how much that was.

    The document stays as it was, and what is copied once is changed in place from then on. A container that a later
    operation may reach by two ways is copied again.
    """

    def __init__(self) -> None:
        # By identity; they are kept here so that no identity is used twice.
        self.own: dict[int, Any] = {}
        self.work = 0

    def writable(self, node: Any) -> Any:
        """The container itself if this patch made it, else a copy."""
        if id(node) in self.own:
            return node
        changed = node.copy()
        self.work += len(changed)
        self.own[id(changed)] = changed
        return changed

    def share(self, value: Any) -> Any:
        """Count a value that is now in two places, and forget that its containers are this patch's."""
        waiting = [value]
        while waiting and self.work <= _MOST_WORK:
            part = waiting.pop()
            if isinstance(part, dict | list):
                self.own.pop(id(part), None)
                self.work += len(part)
                waiting.extend(part.values() if isinstance(part, dict) else part)
        return value


def _apply(patched: _Patched, document: Any, operation: Json) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    start = operation.get("from", "")
    if not isinstance(path, str) or not isinstance(start, str):
        raise PatchDoesNotApply("the server rejected our request due to an error in our request")
    match kind:
        case "add":
            return _add(patched, document, path, operation.get("value"))
        case "remove":
            return _remove(patched, document, path, "remove")
        case "replace":
            return _replace(patched, document, path, operation.get("value"))
        case "move":
            value = _value(document, start, "move")
            return _add(patched, _remove(patched, document, start, "move"), path, value)
        case "copy":
            return _add(patched, document, path, patched.share(_copied(document, start)))
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
    if isinstance(node, list):
        at = whole_number(part.removeprefix("-"))
        if at is not None and (at <= len(node) if part.startswith("-") else at < len(node)):
            return -at if part.startswith("-") else at
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


def _edited(patched: _Patched, document: Any, operation: str, path: str, edit: Callable[[Any, str], None]) -> Any:
    """The document with a writable path to the last part, which `edit` changes."""
    *parents, last = _parts(path)
    if not isinstance(document, dict | list):
        raise _missing(operation, path)
    changed = node = patched.writable(document)
    for part in parents:
        place = _place(node, part, operation, path)
        if not isinstance(node[place], dict | list):
            raise _missing(operation, path)
        node[place] = patched.writable(node[place])
        node = node[place]
    edit(node, last)
    return changed


def _add(patched: _Patched, document: Any, path: str, value: Any) -> Any:
    def add(parent: Any, last: str) -> None:
        if isinstance(parent, dict):
            parent[last] = value
        elif last == "-":
            parent.append(value)
        elif (at := whole_number(last)) is not None and at <= len(parent):
            # All values behind it are moved, about 64 of them in the time of one step.
            patched.work += (len(parent) - at) // 64
            parent.insert(at, value)
        else:
            raise PatchDoesNotApply(f"add operation does not apply: doc is missing path: {path}: invalid array index")

    return _edited(patched, document, "add", path, add)


def _remove(patched: _Patched, document: Any, path: str, operation: str) -> Any:
    def remove(parent: Any, last: str) -> None:
        if isinstance(parent, dict) and last not in parent:
            why = f"Unable to remove nonexistent key: {last}: missing value"
            raise PatchDoesNotApply(f"error in {operation} for path: '{path}': {why}")
        if isinstance(parent, list):
            patched.work += len(parent) // 64
        del parent[_place(parent, last, operation, path)]

    return _edited(patched, document, operation, path, remove)


def _replace(patched: _Patched, document: Any, path: str, value: Any) -> Any:
    def replace(parent: Any, last: str) -> None:
        # A missing member is added, as in Kubernetes' library.
        parent[last if isinstance(parent, dict) else _place(parent, last, "replace", path)] = value

    return _edited(patched, document, "replace", path, replace) if path else value
