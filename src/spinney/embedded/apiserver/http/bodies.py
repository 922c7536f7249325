"""Bodies of requests: JSON, YAML or protobuf, read into plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
import yaml

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import CannotBeHandled, bad_request, unsupported_media_type
from spinney.embedded.apiserver.http import protobuf
from spinney.embedded.apiserver.http.content_types import BODY_TYPES, media_type
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.conform import conform
from spinney.embedded.apiserver.schema.misfit import Misfit, type_name

_MOST_YAML_LEVELS = 256
_MOST_YAML_NODES = 1_000_000


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
        return protobuf.decode(body)
    try:
        if "yaml" in content_type:
            _check_bounds(body)
            # Of several documents, the first counts.
            return whole_numbers(next(yaml.load_all(body, Loader=_Loader), None))
        return decode(body)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise UnreadableBody(f"yaml: line {line}: {error.problem}") from None
    except RecursionError:
        raise UnreadableBody("exceeded max depth") from None
    except (msgspec.DecodeError, yaml.YAMLError, ValueError) as error:
        raise UnreadableBody(str(error)) from None


def _number(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() else value


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
    """The paths of fields that a JSON object contains more than once."""
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
            paths.extend(f"{path}.{key}".lstrip(".") for key in value.pop(twice, ()))
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


def _check_bounds(body: bytes) -> None:
    """Refuse YAML that is nested too deep, or too large once its aliases are expanded, before it is composed.

    libyaml composes recursively in C: a deep document ends the process, and a few lines of aliases fill its memory.
    """
    sizes: dict[str, int] = {}
    # The anchor of each collection that is open, and how many nodes it holds so far.
    anchors: list[str | None] = [None]
    counts = [0]
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
            counts.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, count = anchors.pop(), counts.pop()
            counts[-1] += count
            if anchor is not None:
                sizes[anchor] = count
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                raise UnreadableBody(f"yaml: anchor {event.anchor!r} contains itself")
            counts[-1] += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            counts[-1] += 1
        if len(counts) > _MOST_YAML_LEVELS:
            raise UnreadableBody(f"yaml: more than {_MOST_YAML_LEVELS} levels deep")
        if counts[-1] > _MOST_YAML_NODES:
            raise UnreadableBody(f"yaml: more than {_MOST_YAML_NODES} values, aliases expanded")


class _Loader(yaml.CSafeLoader):
    """YAML as JSON sees it: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def whole_numbers(value: Any) -> Any:
    """Values of YAML as JSON has them: keys are strings, and 1.0 is 1."""
    if isinstance(value, dict):
        return {str(key): whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def repeated_keys(body: bytes) -> list[str]:
    """Keys that a YAML document contains more than once, each with its line."""
    repeated: list[str] = []

    def walk(node: yaml.Node | None) -> None:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen:
                    repeated.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
                walk(value)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                walk(item)

    walk(next(yaml.compose_all(body, Loader=_Loader), None))
    return repeated
