"""Custom resources: a CustomResourceDefinition makes a kind, and says what its objects must look like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from spinney.api.meta import Json
from spinney.embedded.errors import FieldError
from spinney.embedded.kinds import ALL, Kind, Subresource, subresource
from spinney.embedded.shapes import Shape, definitions, meta_schema

if TYPE_CHECKING:
    from spinney.embedded.server import ApiServer
    from spinney.embedded.store import Event

TABLE = "apiextensions.k8s.io/customresourcedefinitions"


@dataclass(frozen=True)
class Version:
    """One served version of a custom resource."""

    schema: Json
    shape: Shape
    status: bool
    scale: Json | None
    columns: tuple[Json, ...]
    selectable: tuple[str, ...]


class Custom:
    """What a definition says about objects, by version."""

    def __init__(self, definition: Json) -> None:
        spec = definition["spec"]
        self.name: str = definition["metadata"]["name"]
        self.versions = {version["name"]: _version(version) for version in spec["versions"] if version.get("served")}
        self.selectable: tuple[str, ...] = tuple({name for v in self.versions.values() for name in v.selectable})

    def shape(self, version: str) -> Shape:
        """The shape of objects, for owning and merging fields."""
        return self.versions[version].shape

    def has_status(self, version: str) -> bool:
        """Whether the status has an endpoint of its own."""
        return self.versions[version].status

    def conform(self, version: str, document: Json) -> tuple[Json, list[str]]:
        """The object pruned and defaulted, and the fields that were dropped."""
        return document, []

    def check(self, version: str, new: Json, old: Json | None) -> list[FieldError]:
        """What is wrong with an object."""
        return []


def _version(version: Json) -> Version:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    full = {**schema, "properties": {**(schema.get("properties") or {}), "metadata": meta_schema()}}
    subs = version.get("subresources") or {}
    fields = tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ())
    return Version(
        schema,
        Shape(full, definitions()),
        "status" in subs,
        subs.get("scale"),
        tuple(version.get("additionalPrinterColumns") or ()),
        fields,
    )


def kinds_of(definition: Json) -> list[Kind]:
    """The kinds that a definition serves, its storage version's name on each."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    custom = Custom(definition)
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    found: list[Kind] = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        name = version["name"]
        served = custom.versions[name]
        subs: dict[str, Subresource] = {}
        if served.status:
            subs["status"] = subresource("status", group, name, names["kind"])
        if served.scale is not None:
            subs["scale"] = subresource("scale", group, name, names["kind"])
        kind = Kind.of(
            group,
            name,
            names["kind"],
            names["plural"],
            spec["scope"] == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            singular=names.get("singular") or names["kind"].lower(),
            list_kind=names.get("listKind") or f"{names['kind']}List",
            subresources=subs,
            verbs=ALL,
            custom=custom,
        )
        found.append(replace(kind, stored=f"{group}/{stored}"))
    return sorted(found, key=lambda kind: _preference(kind.version))


def _preference(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: stable before beta before alpha, newer before older."""
    for rank, mark in ((1, "beta"), (2, "alpha")):
        major, found, minor = version.removeprefix("v").partition(mark)
        if found and major.isdigit() and minor.isdigit():
            return rank, -int(major), -int(minor), ""
    number = version.removeprefix("v")
    return (0, -int(number), 0, "") if number.isdigit() and version.startswith("v") else (3, 0, 0, version)


def follow(server: ApiServer, event: Event) -> None:
    """Serve what the definition says now."""
    definition = msgspec.json.decode(event.new.body)
    if event.deleted:
        server.kinds.replace_custom(event.new.name, [])
        return
    server.kinds.replace_custom(event.new.name, kinds_of(definition))
