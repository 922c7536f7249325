"""Patches: from the body of a request to a change of the object, and whom to blame where no object comes out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded import patches, strategic
from spinney.embedded.calls import Call, Unreadable, json_name, media_type, parse
from spinney.embedded.errors import Refusal, bad_request, invalid, unsupported_media_type
from spinney.embedded.shapes import built_in_shape

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


def _number(text: str) -> int | float:
    """A patch is read without a type in mind, and so a whole number is one however it is written."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() else value


_decoder = msgspec.json.Decoder(float_hook=_number)


def patcher(call: Call, kind: str) -> Change:
    """The change that a patch in the body describes."""
    body = call.request.body
    if kind == JSON_PATCH:
        operations = _patch_body(body)
        return lambda old: patches.apply_json_patch(old, operations)
    if kind == MERGE_PATCH:
        changes = _patch_body(body)
        _must_be_object(changes)
        return lambda old: patches.merge(old, changes)
    if kind == STRATEGIC_PATCH and call.kind.custom is None:
        changes = _patch_body(body, "")
        _must_be_object(changes, "")
        # A kind or version in it says nothing.
        changes = {key: value for key, value in changes.items() if key not in ("kind", "apiVersion")}
        shape = built_in_shape(call.kind.group, call.kind.version, call.kind.kind)
        return lambda old: strategic.merge(old, changes, shape)
    if kind == STRATEGIC_PATCH:
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY[0]))
    raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def _patch_body(body: bytes, prefix: str = "error decoding patch: ") -> Any:
    try:
        return parse(body, "application/json", _decoder.decode)
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
        patch = strategic.go_map(parse(call.request.body, "application/json"))
        error = invalid("patch", patch, misfit(why))
    else:
        error = invalid("patch", _written(proposed), why)
    return Refusal(422, "Invalid", f' "" is invalid: {error}', {"causes": [error.cause()]})


def misfit(why: str) -> str:
    """A type that does not fit, in the words of the converter that a strategic patch goes through."""
    found = _MISFIT.match(why)
    if found is None:
        return why
    given, wanted = _GO_KINDS.get(found[1], found[1]), found[2]
    if wanted.startswith("[]"):
        return f"cannot restore slice from {given}"
    if wanted.startswith("map["):
        return f"cannot restore map from {given}"
    if "." in wanted:
        return f"cannot restore struct from: {given}"
    return f"cannot convert {given} to string" if wanted == "string" else f"unrecognized type: {wanted}"


def _written(document: Json) -> str:
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        known = [key for key in _ORDER if key in metadata]
        rest = [key for key in metadata if key not in _ORDER]
        document = {**document, "metadata": {key: metadata[key] for key in (*known, *rest)}}
    return encode({key: document[key] for key in sorted(document)}).decode()
