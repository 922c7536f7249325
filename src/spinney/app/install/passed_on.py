"""Schemas of values that are passed on unchanged to Config, shards and components, and what is wrong with a value.

The kinds and components that get them would refuse a typo too late, in a log, or ignore it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from spinney.api.crd import definition
from spinney.api.kai import Config, SchedulingShard
from spinney.api.meta import Json, Object
from spinney.app.components import load

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


@cache
def config_spec() -> Json:
    """The spec of Config."""
    return _spec_of(Config)


@cache
def shard_spec() -> Json:
    """The spec of a SchedulingShard."""
    return _spec_of(SchedulingShard)


@cache
def settings_of(component: str) -> Json:
    """The configuration of a component."""
    schema = msgspec.json.schema(load(component).settings)
    result: Json = _closed(_inlined(schema, schema["$defs"]))
    return result


def problems(values: Json) -> Iterator[str]:
    """What is wrong with the values that are handed on."""
    yield from _problems(config_spec(), values["config"], "config")
    for number, shard in enumerate(values["shards"]):
        yield from _problems(shard_spec(), shard["spec"], f"shards[{number}].spec")
    for component in ("grove", "dashboard"):
        yield from _problems(settings_of(component), values[component]["config"], f"{component}.config")


def _problems(schema: Json, value: Any, path: str) -> Iterator[str]:
    wanted = schema.get("type", "")
    if wanted and (not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted != "boolean")):
        yield f"expected {wanted}, got {value!r}: at `{path}`"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{value!r} is none of {', '.join(map(repr, schema['enum']))}: at `{path}`"
    elif isinstance(value, dict):
        properties, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            if name in properties or other is not False:
                yield from _problems(
                    properties.get(name, other if isinstance(other, dict) else {}), item, f"{path}.{name}"
                )
            else:
                yield f"unknown field `{name}`; known are {', '.join(sorted(properties))}: at `{path}`"
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _problems(schema.get("items", {}), item, f"{path}[{number}]")


def _spec_of(kind: type[Object]) -> Json:
    (version,) = definition(kind)["spec"]["versions"]
    result: Json = _closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    return result


def _closed(schema: Any) -> Any:
    """A schema that accepts no unknown field, as JSON Schema: without what only Kubernetes knows."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: each for key, each in schema.items() if not key.startswith("x-kubernetes-")}
    for key in ("items", "additionalProperties", "anyOf"):
        if key in result:
            result[key] = _closed(result[key])
    if "properties" in result:
        result["properties"] = {name: _closed(each) for name, each in result["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
    # OpenAPI says by a flag what JSON Schema says by a number.
    if result.get("exclusiveMinimum") is True:
        result["exclusiveMinimum"] = result.pop("minimum")
    return result


def _inlined(schema: Any, definitions: Json) -> Any:
    """A schema without references, defaults and titles, which say nothing to users."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "properties" in schema:
        properties = {name: _inlined(each, definitions) for name, each in schema["properties"].items()}
        return {"type": "object", "properties": properties}
    return {
        key: _inlined(each, definitions)
        for key, each in schema.items()
        if key not in ("default", "title", "description", "$defs")
    }
