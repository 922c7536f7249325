"""Bodies of requests: JSON, YAML or protobuf, read into plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec

from spinney.api import yaml_reader
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import (
    CannotBeHandled,
    bad_request,
    paths_too_long,
    too_many_values,
    unsupported_media_type,
)
from spinney.embedded.apiserver.http import protobuf
from spinney.embedded.apiserver.http.content_types import BODY_TYPES, media_type
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.conform import conform
from spinney.embedded.apiserver.schema.misfit import Misfit, type_name

# The largest custom resource definitions have about 25,000 values, a gang of 10,000 pods 30,000.
_MOST_VALUES = 50_000
# YAML is slow to read; who has more sends JSON.
_MOST_YAML_VALUES = 20_000
# Characters of the paths of all values: errors, conflicts and owned fields name them, with every key above.
_MOST_IN_PATHS = 32 * 1024 * 1024
# No shorter body has longer paths.
_SHORT = 8 * 1024
# An index in a path, in brackets.
_INDEX = 4
# As many unknown or repeated fields as Kubernetes tells.
MOST_STRICT_ERRORS = 100


class UnreadableBody(Exception):
    """A body that is not an object; the message says why, and where."""


def read_body(call: Call, kind: Kind | None = None) -> Json:
    """The object in the body of a request."""
    content_type = media_type(call.request)
    if content_type not in BODY_TYPES:
        raise unsupported_media_type(BODY_TYPES)
    body = call.request.body
    try:
        document = parse(body, content_type) if call.kind.custom is None else parse(body, content_type, untyped)
        if document is None and (body or "yaml" in content_type) and call.kind.custom is None:
            document = {}
        return _typed_object(call, document)
    except UnreadableBody as error:
        wanted = kind.kind if kind is not None else body_kind(call)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {wanted}): {error} ({summary(body)})"
        ) from None


def read_typed(call: Call, kind: Kind) -> Json:
    """The object in the body of a request that names a kind of its own: types checked, unknown fields dropped."""
    try:
        return conform(read_body(call, kind), kind.group, kind.version, kind.kind)[0]
    except Misfit as misfit:
        raise CannotBeHandled(kind.kind, kind.version, kind.kind, str(misfit)) from None


def _typed_object(call: Call, document: Any) -> Json:
    """The body, if it is an object that says what it is."""
    checked = must_be_object(document)
    for key in ("apiVersion", "kind"):
        if not isinstance(checked.get(key, ""), str | None):
            raise UnreadableBody(f"{key}: expected a string, got {type_name(checked[key])}")
    if str(checked.get("apiVersion")).count("/") > 1:
        raise UnreadableBody(f"unexpected GroupVersion string: {checked['apiVersion']}")
    if call.kind.custom is not None and not call.subresource and not checked.get("kind"):
        raise UnreadableBody(f"Object 'Kind' is missing in '{call.request.body.decode('utf-8', 'replace')}'")
    return checked


def body_kind(call: Call) -> str:
    """The kind that a body must be of."""
    return call.kind.subresources[call.subresource].kind if call.subresource else call.kind.kind


def must_be_object(value: Any) -> Json:
    """The value itself, if it is an object."""
    if not isinstance(value, dict):
        raise UnreadableBody(f"expected an object, got {type_name(value)}")
    return value


def parse(body: bytes, content_type: str, decode: Callable[[bytes], Any] = msgspec.json.decode) -> Any:
    """Plain data from JSON, YAML or Kubernetes' protobuf."""
    if content_type == "application/vnd.kubernetes.protobuf":
        if not body.startswith(protobuf.MAGIC):
            raise UnreadableBody("the body is not a protobuf message: it must start with 6b 38 73 00")
        return bounded(protobuf.decode(body))
    try:
        if "yaml" in content_type:
            return _yaml(body)
        return _within_bounds(body, decode(body))
    except RecursionError:
        raise UnreadableBody("exceeded max depth") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableBody(str(error)) from None


def _yaml(body: bytes) -> Any:
    """The first document; most clients send JSON, which is YAML as well, and quicker to read."""
    if body.lstrip().startswith(b"{"):
        try:
            return _within_bounds(body, untyped(body))
        except (msgspec.DecodeError, ValueError):
            pass
    try:
        return bounded(yaml_reader.read_yaml(body, _MOST_YAML_VALUES))
    except yaml_reader.YamlError as error:
        raise UnreadableBody(f"yaml: {error}") from None


def _number(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


_decoder = msgspec.json.Decoder(float_hook=_number)


def untyped(body: bytes) -> Any:
    """Decode JSON without a schema, as patches and custom objects are: 1.0 and 1e3 become integers."""
    return _decoder.decode(body)


def summary(body: bytes, limit: int = 30) -> str:
    """The beginning of a body, for error messages."""
    if not body:
        return "<empty>"
    cut = body[:limit]
    shown = cut.decode("utf-8", "replace") if body.startswith(b"{") else cut.hex()
    return f"{shown} ..." if len(body) > limit else shown


def duplicates(body: bytes) -> list[str]:
    """The paths of fields that a JSON object contains more than once, the first hundred."""
    paths: list[str] = []
    twice = object()

    def pairs(items: list[tuple[str, Any]]) -> Any:
        result: dict[Any, Any] = {}
        for key, value in items:
            if key in result:
                result.setdefault(twice, []).append(key)
            result[key] = value
        return result

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            repeated = value.pop(twice, ())[: MOST_STRICT_ERRORS - len(paths)]
            paths.extend(f"{path}.{key}".lstrip(".") for key in repeated)
            for key, item in value.items():
                walk(item, f"{path}.{key}")
        elif isinstance(value, list):
            for at, item in enumerate(value):
                walk(item, f"{path}[{at}]")

    try:
        walk(json.loads(body, object_pairs_hook=pairs), "")
    except (ValueError, RecursionError):
        return []
    return paths


def repeated_keys(body: bytes) -> list[str]:
    """Keys that a YAML document contains more than once, each with its line, the first hundred."""
    try:
        first = next(yaml_reader.documents(body, _MOST_YAML_VALUES), None)
    except yaml_reader.YamlError:
        # It was read as JSON, not all of which is YAML.
        return []
    return first.repeated[:MOST_STRICT_ERRORS] if first is not None else []


def _within_bounds(body: bytes, value: Any) -> Any:
    """The value of a JSON body, unless it has more than the code after this can bear.

    Length and the counts of brackets and commas are upper limits, so that nearly no body has to be walked through.
    """
    if len(body) <= 2 * yaml_reader.MOST_LEVELS:
        return value
    brackets = body.count(b"{") + body.count(b"[")
    if len(body) <= _SHORT and brackets <= yaml_reader.MOST_LEVELS:
        return value
    most_values = brackets + body.count(b",")
    if brackets > yaml_reader.MOST_LEVELS or most_values > _MOST_VALUES or most_values * len(body) > _MOST_IN_PATHS:
        return bounded(value)
    return value


def bounded(value: Any) -> Any:
    """The value itself, unless it is too deep, has too many parts, or their paths are too long."""
    count = characters = 0
    level: list[tuple[Any, int]] = [(value, 0)] if isinstance(value, dict | list) else []
    for _ in range(yaml_reader.MOST_LEVELS):
        below: list[tuple[Any, int]] = []
        for each, above in level:
            count += len(each)
            for key, item in each.items() if isinstance(each, dict) else enumerate(each):
                path = above + (len(key) + 1 if isinstance(key, str) else _INDEX)
                characters += path
                if isinstance(item, dict | list):
                    below.append((item, path))
        if count > _MOST_VALUES:
            raise too_many_values(count, _MOST_VALUES)
        if characters > _MOST_IN_PATHS:
            raise paths_too_long(_MOST_IN_PATHS)
        level = below
    if level:
        raise UnreadableBody("exceeded max depth")
    return value
