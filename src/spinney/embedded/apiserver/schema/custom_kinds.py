"""The kinds that a CustomResourceDefinition serves."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.kinds import Kind, Subresource, subresource
from spinney.embedded.apiserver.resources.record import CUSTOM
from spinney.embedded.apiserver.schema.custom_resources import Custom

# In the order in which the server for custom resources lists them.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def kinds_of(definition: Json, since: int = 0) -> list[Kind]:
    """The kinds that a definition serves, one per version, each with the storage version."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    custom = Custom(definition, since)
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    kinds: list[Kind] = []
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
            verbs=_VERBS,
            custom=custom,
            resource=CUSTOM,
        )
        kinds.append(replace(kind, stored=f"{group}/{stored}"))
    return sorted(kinds, key=lambda kind: _preference(kind.version))


def _preference(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: stable before beta before alpha, newer before older."""
    for rank, mark in ((1, "beta"), (2, "alpha")):
        major, separator, minor = version.removeprefix("v").partition(mark)
        if separator and major.isdigit() and minor.isdigit():
            return rank, -int(major), -int(minor), ""
    number = version.removeprefix("v")
    return (0, -int(number), 0, "") if number.isdigit() and version.startswith("v") else (3, 0, 0, version)
