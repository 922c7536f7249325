"""Patches: from the body of a request to a change of the object, and whom to blame where no object comes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call, Unreadable, json_name, media_type, parse
from spinney.embedded.apiserver.errors import Refusal, bad_request, invalid, unsupported_media_type
from spinney.embedded.apiserver.http import json_bodies
from spinney.embedded.apiserver.schema.shapes import built_in_shape
from spinney.embedded.apiserver.write import json_patch, strategic_merge
from spinney.embedded.apiserver.write.decode import check_duplicates

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
Change = Callable[[Json], Json]
_MISFIT = re.compile(r"json: cannot unmarshal (\w+)[^\n]* into Go (?:struct field \S+|value) of type (\S+)$")
_GO_KINDS = {"array": "slice", "object": "map", "number": "int64"}
# Metadata in the order in which Kubernetes writes it.
_ORDER = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)


def patcher(call: Call, kind: str) -> Change:
    """The change that a patch in the body describes."""
    if kind == STRATEGIC_PATCH and call.kind.custom is not None:
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY[0]))
    if kind not in _CHANGES:
        raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    # Read only where there is an object to change: without one, that is what is told.
    return lambda old: _CHANGES[kind](call, old)


def _by_operations(call: Call, old: Json) -> Json:
    operations = _patch_body(call.request.body)
    _unknown_members(call, operations)
    return json_patch.apply_json_patch(old, [] if operations is None else operations)


def _unknown_members(call: Call, operations: Any) -> None:
    """Note members that operations do not have, which is told or refused as are repeated fields."""
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


def _by_strategy(call: Call, old: Json) -> Json:
    changes = _patch_body(call.request.body, "")
    changes = {} if changes is None else changes
    _must_be_object(changes, "")
    check_duplicates(call, changes)
    # A kind or version in it says nothing.
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
        return parse(body, "application/json", json_bodies.untyped)
    except Unreadable as error:
        raise bad_request(prefix + str(error).removeprefix("couldn't get version/kind; json parse error: ")) from None


def _must_be_object(changes: Any, prefix: str = "error decoding patch: ") -> None:
    if not isinstance(changes, dict):
        raise bad_request(
            f"{prefix}json: cannot unmarshal {json_name(changes)} into Go value of type map[string]interface {{}}"
        )


def blamed(call: Call, proposed: Json, refusal: Refusal) -> Refusal:
    """The refusal of what a patch made: the patch is wrong, not an object that the client never sent."""
    _, handled, why = refusal.message.partition(f" cannot be handled as a {call.kind.kind}: ")
    if refusal.code != 400 or not handled:
        return refusal
    if media_type(call.request) == STRATEGIC_PATCH:
        patch = strategic_merge.go_map(parse(call.request.body, "application/json"))
        error = invalid("patch", patch, misfit(why))
    else:
        error = invalid("patch", _written(call, proposed), why)
    return Refusal(422, "Invalid", f' "" is invalid: {error}', {"causes": [error.cause()]})


def misfit(why: str) -> str:
    """A type that does not fit, in the words of the converter that a strategic patch goes through."""
    found = _MISFIT.match(why)
    if found is None:
        return f"error decoding from json: {why}" if why.startswith("illegal base64") else why
    given, wanted = _GO_KINDS.get(found[1], found[1]), found[2]
    if wanted.startswith("[]"):
        return f"cannot restore slice from {given}"
    if wanted.startswith("map["):
        return f"cannot restore map from {given}"
    if "." in wanted:
        return f"cannot restore struct from: {given}"
    return f"cannot convert {given} to string" if wanted == "string" else f"unrecognized type: {wanted}"


def _written(call: Call, document: Json) -> str:
    patch = _patch_body(call.request.body)
    metadata = document.get("metadata")
    if isinstance(patch, dict):
        document = _sorted_where_touched(document, patch)
    if isinstance(metadata, dict) and not (isinstance(patch, dict) and "metadata" in patch):
        known = [key for key in _ORDER if key in metadata]
        rest = [key for key in metadata if key not in _ORDER]
        document = {**document, "metadata": {key: metadata[key] for key in (*known, *rest)}}
    return encode({key: document[key] for key in sorted(document)}).decode()


def _sorted_where_touched(value: Any, patch: Any) -> Any:
    """What a merge went into is a map of Go since, and its keys come out in order."""
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return value
    return {key: _sorted_where_touched(value[key], patch.get(key)) for key in sorted(value)}
