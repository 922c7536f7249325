"""CustomResourceDefinitions from the wire types: ours, and those of other projects that `spinney up` installs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spinney.api import grove, kai, koordinator, nvidia, podgang, volcano
from spinney.api.meta import Json, Object
from spinney.api.schema import Column, Definition
from spinney.api.structural import object_schema

OURS: tuple[type[Object], ...] = (
    grove.PodCliqueSet,
    grove.PodClique,
    grove.PodCliqueScalingGroup,
    grove.ClusterTopologyBinding,
    podgang.PodGang,
    kai.PodGroup,
    kai.Queue,
    kai.BindRequest,
    kai.Topology,
    kai.Config,
    kai.SchedulingShard,
)
FOREIGN: tuple[type[Object], ...] = (
    volcano.PodGroup,
    volcano.Queue,
    volcano.HyperNode,
    koordinator.PodGroup,
    nvidia.ComputeDomain,
)
OUR_GROUPS = tuple(dict.fromkeys(kind.resource.group for kind in OURS))
FOREIGN_GROUPS = tuple(dict.fromkeys(kind.resource.group for kind in FOREIGN))
GROUPS = OUR_GROUPS + FOREIGN_GROUPS


def crds(groups: Collection[str] = OUR_GROUPS) -> list[Json]:
    """The definitions of some API groups; by default ours."""
    return [definition(kind) for kind in OURS + FOREIGN if kind.resource.group in groups]


def definition(kind: type[Object]) -> Json:
    """The CustomResourceDefinition of one wire type."""
    resource = kind.resource
    # Only types that become CRDs carry a definition, so the base class does not declare it.
    about: Definition = getattr(kind, "crd")  # noqa: B009 - mypy sees no attribute on the base class
    metadata: Json = {"name": f"{resource.plural}.{resource.group}"}
    if about.annotations:
        metadata["annotations"] = dict(about.annotations)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": resource.group,
            "names": _names(kind, about),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(kind, about)],
        },
    }


def _names(kind: type[Object], about: Definition) -> Json:
    names: Json = {
        "kind": kind.resource.kind,
        "listKind": f"{kind.resource.kind}List",
        "plural": kind.resource.plural,
        "singular": kind.resource.kind.lower(),
    }
    if about.short_names:
        names["shortNames"] = list(about.short_names)
    if about.categories:
        names["categories"] = list(about.categories)
    return names


def _version(kind: type[Object], about: Definition) -> Json:
    version: Json = {
        "name": kind.resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": object_schema(kind)},
        "subresources": _subresources(about),
    }
    if about.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in about.columns]
    return version


def _subresources(about: Definition) -> Json:
    subresources: dict[str, Any] = {}
    if about.status:
        subresources["status"] = {}
    if about.scale:
        subresources["scale"] = {
            "specReplicasPath": about.scale.spec,
            "statusReplicasPath": about.scale.status,
            "labelSelectorPath": about.scale.selector,
        }
    return subresources


def _column(column: Column) -> Json:
    document: Json = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**document, "priority": 1} if column.wide else document
