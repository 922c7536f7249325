"""Shapes: what a schema says about merging, owning and checking a value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver import data_files

Definitions = dict[str, Json]
RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


@lru_cache(maxsize=1)
def definitions() -> Definitions:
    """The OpenAPI schemas of the built-in kinds, by name."""
    return data_files.read("openapi", dict[str, dict[str, Any]])


@lru_cache(maxsize=1)
def zeros() -> dict[str, frozenset[str]]:
    """Members that are left out where they are zero, by schema."""
    return data_files.read("zeros", dict[str, frozenset[str]])


class Shape:
    """One node of a schema, with references resolved as they are walked."""

    __slots__ = (
        "_children",
        "_definitions",
        "_items",
        "_values",
        "atomic",
        "keys",
        "merge_key",
        "name",
        "present",
        "properties",
        "schema",
        "strategy",
        "type",
    )

    def __init__(self, schema: Json, table: Definitions) -> None:
        self.name = schema.get("$ref", "")
        if self.name:
            own = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**table.get(self.name, {}), **own}
        self.schema = schema
        self.type = "any" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "any")
        self.properties: Json = schema.get("properties") or {}
        if self.properties and self.type == "any":
            self.type = "object"
        self._definitions = table
        self._children: dict[str, Shape] = {}
        self._items: Shape | None = None
        self._values: Shape | None = None
        # A struct that Go always writes, even when empty.
        self.present = schema.get("default") == {} and self.type == "object"
        listed = schema.get("x-kubernetes-list-type", "atomic")
        mapped = schema.get("x-kubernetes-map-type", "granular")
        self.atomic = listed == "atomic" if self.type == "array" else mapped == "atomic" or self.name == RAW
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.merge_key: str = schema.get("x-kubernetes-patch-merge-key", "")
        self.strategy: tuple[str, ...] = tuple(str(schema.get("x-kubernetes-patch-strategy", "")).split(","))

    def child(self, name: str) -> Shape:
        """The shape of a member of an object or map."""
        shape = self._children.get(name)
        if shape is None:
            schema = self.properties.get(name)
            shape = self._children[name] = Shape(schema, self._definitions) if schema is not None else self.values
        return shape

    @property
    def values(self) -> Shape:
        """The shape of a map's values."""
        if self._values is None:
            extra = self.schema.get("additionalProperties")
            self._values = Shape(extra if isinstance(extra, dict) else {}, self._definitions)
        return self._values

    @property
    def items(self) -> Shape:
        """The shape of a list's elements."""
        if self._items is None:
            self._items = Shape(self.schema.get("items") or {}, self._definitions)
        return self._items


ANY = Shape({}, {})


def schemas_below(schema: Json) -> Iterator[Json]:
    """The schemas of the members, elements and values of a schema."""
    below = (*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties"))
    return (item for item in below if isinstance(item, dict))


@lru_cache(maxsize=1)
def kind_names() -> dict[tuple[str, str, str], str]:
    """The names of schemas by group, version and kind."""
    names: dict[tuple[str, str, str], str] = {}
    for name, schema in definitions().items():
        for gvk in schema.get("x-kubernetes-group-version-kind") or ():
            names.setdefault((gvk["group"], gvk["version"], gvk["kind"]), name)
    return names


@lru_cache(maxsize=512)
def built_in_shape(group: str, version: str, kind: str) -> Shape:
    """The shape of a built-in kind; a kind without a schema accepts anything."""
    name = kind_names().get((group, version, kind))
    return Shape({"$ref": name}, definitions()) if name else ANY


META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def meta_schema() -> Json:
    """The schema of `metadata`, which a custom resource's own schema leaves open."""
    return {"$ref": META}


def meta_shape() -> Shape:
    """The shape of `metadata`."""
    return _meta()


@lru_cache(maxsize=1)
def _meta() -> Shape:
    return Shape(meta_schema(), definitions())
