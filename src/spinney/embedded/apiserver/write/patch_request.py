"""Patch requests: from the body to a change of the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import CannotBeHandled, Refusal, bad_request, omitted, unsupported_media_type
from spinney.embedded.apiserver.http import bodies
from spinney.embedded.apiserver.http.bodies import UnreadableBody, parse
from spinney.embedded.apiserver.schema.misfit import type_name
from spinney.embedded.apiserver.schema.shapes import built_in_shape
from spinney.embedded.apiserver.write import json_patch, strategic_merge
from spinney.embedded.apiserver.write.decode import check_duplicates

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
Change = Callable[[Json], Json]


def patcher(call: Call, kind: str) -> Change:
    """The change that a patch in the body describes."""
    if kind == STRATEGIC_PATCH and call.kind.custom is not None:
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY[0]))
    if kind not in _CHANGES:
        raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    # Read later, because a missing object is reported before a bad patch.
    return lambda old: _CHANGES[kind](call, old)


def _by_operations(call: Call, old: Json) -> Json:
    operations = _patch_body(call.request.body)
    _unknown_members(call, operations)
    patched = json_patch.apply_json_patch(old, [] if operations is None else operations)
    try:
        # Each operation may go deeper than the one before it, and copy much below a long key.
        return cast(Json, bodies.bounded(patched))
    except UnreadableBody as error:
        raise bad_request(f"error applying patch: {error}") from None


def _unknown_members(call: Call, operations: Any) -> None:
    """Collect unknown members of operations, which are handled as duplicate fields are."""
    if call.field_validation == "Ignore" or not isinstance(operations, list):
        return
    call.duplicates = [
        f'json patch unknown field "[{at}].{name}"'
        for at, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in ("op", "path", "from", "value")
    ]


def _by_merge(call: Call, old: Json) -> Json:
    changes = _patch_body(call.request.body)
    if changes is None:
        raise bad_request("Invalid JSON Patch")
    _must_be_object(changes)
    check_duplicates(call, changes)
    return cast(Json, json_patch.merge(old, changes))


def strategic_changes(call: Call) -> Json:
    """What a strategic merge patch says."""
    changes = _patch_body(call.request.body, "")
    changes = {} if changes is None else changes
    _must_be_object(changes, "")
    return cast(Json, changes)


def _by_strategy(call: Call, old: Json) -> Json:
    changes = strategic_changes(call)
    check_duplicates(call, changes)
    # Kind and version in the patch are ignored.
    changes = {key: value for key, value in changes.items() if key not in ("kind", "apiVersion")}
    shape = built_in_shape(call.kind.group, call.kind.version, call.kind.kind)
    return cast(Json, strategic_merge.merge(old, changes, shape))


_CHANGES: dict[str, Callable[[Call, Json], Json]] = {
    JSON_PATCH: _by_operations,
    MERGE_PATCH: _by_merge,
    STRATEGIC_PATCH: _by_strategy,
}


def _patch_body(body: bytes, prefix: str = "error decoding patch: ") -> Any:
    try:
        return parse(body, "application/json", bodies.untyped)
    except UnreadableBody as error:
        raise bad_request(f"{prefix}{error}") from None


def _must_be_object(changes: Any, prefix: str = "error decoding patch: ") -> None:
    if not isinstance(changes, dict):
        raise bad_request(f"{prefix}expected an object, got {type_name(changes)}")


def patch_error(error: CannotBeHandled) -> Refusal:
    """422 for the patch itself: the client did not send the object that does not fit."""
    cause = omitted("patch", error.problem)
    return Refusal(422, "Invalid", f' "" is invalid: {cause}', {"causes": [cause.cause()]})
