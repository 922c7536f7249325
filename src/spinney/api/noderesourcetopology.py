"""topology.node.k8s.io: the NUMA zones of a node, as an agent on it reports them."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Object, Resource, Struct
from spinney.api.quantity import Quantity

VERSION = "topology.node.k8s.io/v1alpha2"


class Attribute(Struct, frozen=True):
    """A name and a value, such as the policy of the kubelet's topology manager."""

    name: str = ""
    value: str = ""


class ZoneResource(Struct, frozen=True):
    """The capacity, allocatable and available amount of a resource in a zone."""

    name: str = ""
    capacity: Quantity = "0"
    allocatable: Quantity = "0"
    available: Quantity = "0"


class Zone(Struct, frozen=True):
    """A part of a node; those of type Node are NUMA nodes."""

    name: str = ""
    type: str = ""
    parent: str = ""
    resources: tuple[ZoneResource, ...] = ()


class NodeResourceTopology(Object, frozen=True):
    """The zones of the node of the same name."""

    resource: ClassVar[Resource] = Resource(VERSION, "NodeResourceTopology", "noderesourcetopologies", namespaced=False)

    attributes: tuple[Attribute, ...] = ()
    topology_policies: tuple[str, ...] = ()
    zones: tuple[Zone, ...] = ()
