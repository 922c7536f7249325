"""discovery.k8s.io: EndpointSlices."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Json, Object, Resource


class EndpointSlice(Object, frozen=True):
    """Some of the addresses behind a service."""

    resource: ClassVar[Resource] = Resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")

    address_type: str = ""
    endpoints: tuple[Json, ...] | None = None
    ports: tuple[Json, ...] | None = None
