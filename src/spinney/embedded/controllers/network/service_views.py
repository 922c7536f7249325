"""What the endpoint controllers read of services, and what they write about them."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from spinney.api.meta import Json, Object, Resource, Struct


class ServicePort(Struct, frozen=True):
    """A port of a service, and where it leads on a pod: a number, or the name of a container's port."""

    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None
    target_port: int | str = 0


class ServiceSpec(Struct, frozen=True):
    """Which pods a service stands for, and whether they have to be ready."""

    type: str = ""
    selector: dict[str, str] = msgspec.field(default_factory=dict)
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False


class Service(Object, frozen=True):
    """A stable name for pods."""

    resource: ClassVar[Resource] = Resource("v1", "Service", "services")

    spec: ServiceSpec = ServiceSpec()

    @property
    def selects(self) -> bool:
        """Whether its endpoints follow from a selector; else somebody else writes them."""
        return bool(self.spec.selector) and self.spec.type != "ExternalName"

    @property
    def headless(self) -> bool:
        """Whether it has no address of its own."""
        return self.spec.cluster_ip in ("", "None")


class Endpoints(Object, frozen=True):
    """The addresses behind a service, all in one object."""

    resource: ClassVar[Resource] = Resource("v1", "Endpoints", "endpoints")

    subsets: tuple[Json, ...] = ()


class EndpointSlice(Object, frozen=True):
    """Some of the addresses behind a service."""

    resource: ClassVar[Resource] = Resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")

    address_type: str = ""
    endpoints: tuple[Json, ...] | None = None
    ports: tuple[Json, ...] | None = None
