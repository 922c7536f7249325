"""Check an applied configuration against its schema before the merge."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import Refusal, bad_request
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.misfit import type_name
from spinney.embedded.apiserver.schema.shapes import Shape
from spinney.embedded.apiserver.write.field_sets import item_key, readable_key

_LEAVES = ("io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString")


def check(config: Json, kind: Kind, shape: Shape) -> None:
    """Refuse unknown fields, values of wrong types, and elements with the same key."""
    problems: list[str] = []
    _walk({key: value for key, value in config.items() if key not in ("apiVersion", "kind")}, shape, "", problems)
    if problems:
        raise _refusal(config, kind, problems)


def _refusal(config: Json, kind: Kind, problems: list[str]) -> Refusal:
    metadata = config.get("metadata") or {}
    group = f"{kind.group}/{kind.version}" if kind.group else f"/{kind.version}"
    where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {group}, Kind={kind.kind}"
    message = problems[0] if len(problems) == 1 else "errors:\n" + "\n".join(f"  {item}" for item in problems)
    return bad_request(f"failed to create typed patch object ({where}): {message}")


def _walk(value: Any, shape: Shape, path: str, problems: list[str]) -> None:
    if value is None or shape.name in _LEAVES or shape.schema.get("x-kubernetes-int-or-string"):
        return
    match shape.type:
        case "object":
            if not isinstance(value, dict):
                problems.append(f"{path}: expected map, got {type_name(value)}")
                return
            _map(value, shape, path, problems)
        case "array":
            if not isinstance(value, list):
                problems.append(f"{path}: expected list, got {type_name(value)}")
                return
            _list(value, shape, path, problems)
        case "string":
            if not isinstance(value, str):
                problems.append(f"{path}: expected string, got {type_name(value)}")
        case "integer" | "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                problems.append(f"{path}: expected numeric (int or float), got {type_name(value)}")
        case "boolean":
            if not isinstance(value, bool):
                problems.append(f"{path}: expected boolean, got {type_name(value)}")


def _map(value: Json, shape: Shape, path: str, problems: list[str]) -> None:
    schema = shape.schema
    extra = schema.get("additionalProperties")
    opened = schema.get("x-kubernetes-preserve-unknown-fields") or extra or not shape.properties
    for key, item in value.items():
        where = f"{path}.{key}"
        if key not in shape.properties and not opened:
            problems.append(f"{where}: field not declared in schema")
            continue
        _walk(item, shape.child(key), where, problems)


def _list(value: list[Any], shape: Shape, path: str, problems: list[str]) -> None:
    seen_keys: set[str] = set()
    for at, item in enumerate(value):
        if shape.atomic:
            _walk(item, shape.items, f"{path}[{at}]", problems)
            continue
        key = item_key(item, shape)
        if key in seen_keys:
            problems.append(f"{path}: duplicate entries for key {readable_key(key)}")
        seen_keys.add(key)
        _walk(item, shape.items, f"{path}{readable_key(key)}", problems)
