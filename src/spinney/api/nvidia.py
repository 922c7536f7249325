"""NVIDIA's ComputeDomain: nodes that share memory over NVLink."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from spinney.api.meta import Json, Object, Resource, Struct
from spinney.api.schema import REQUIRED, Definition, default, enum, list_map, rule, schema

_READY = enum("Ready", "NotReady")


class ChannelTemplate(Struct, frozen=True):
    """The claim template that the driver creates for pods."""

    name: Annotated[str, REQUIRED] = ""


class Channel(Struct, frozen=True):
    """The channel through which pods use a domain."""

    resource_claim_template: Annotated[ChannelTemplate, REQUIRED] = ChannelTemplate()
    allocation_mode: Annotated[str, enum("All", "Single"), default("Single")] = "Single"


class ComputeDomainSpec(Struct, frozen=True):
    """The size of a domain, and its channel."""

    rules: ClassVar[tuple[Json, ...]] = (rule("self == oldSelf", "A computeDomain.spec is immutable"),)

    num_nodes: Annotated[int, schema(minimum=0), default(0)] = 0
    channel: Annotated[Channel, REQUIRED] = Channel()


class ComputeDomainNode(Struct, frozen=True):
    """A node of a domain."""

    name: Annotated[str, REQUIRED] = ""
    ip_address: Annotated[str, REQUIRED] = ""
    clique_id: Annotated[str, REQUIRED] = msgspec.field(default="", name="cliqueID")
    index: int = 0
    status: Annotated[str, _READY, default("NotReady")] = "NotReady"


class ComputeDomainStatus(Struct, frozen=True):
    """Whether a domain is usable."""

    status: Annotated[str, _READY, default("NotReady"), REQUIRED] = "NotReady"
    nodes: Annotated[tuple[ComputeDomainNode, ...], list_map("name")] = ()


class ComputeDomain(Object, frozen=True):
    """Nodes that share memory over NVLink."""

    resource: ClassVar[Resource] = Resource("resource.nvidia.com/v1beta1", "ComputeDomain", "computedomains")
    crd: ClassVar[Definition] = Definition()

    spec: ComputeDomainSpec = ComputeDomainSpec()
    status: ComputeDomainStatus = ComputeDomainStatus()
