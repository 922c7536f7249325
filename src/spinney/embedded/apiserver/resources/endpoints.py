"""Endpoints and EndpointSlices."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Resource, Table, Warnings


def _default(document: Json) -> None:
    for subset in document.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _default_slice(document: Json) -> None:
    for endpoint in document.get("endpoints") or ():
        endpoint.setdefault("conditions", {})
        endpoint.pop("deprecatedTopology", None)
    for port in document.get("ports") or ():
        fill(port, name="", protocol="TCP")


def _cells(document: Json, now: datetime) -> list[Any]:
    """Endpoints."""
    addresses = []
    for subset in document.get("subsets") or ():
        for port in subset.get("ports") or [{}]:
            for address in subset.get("addresses") or ():
                addresses.append(_joined(address.get("ip", ""), port.get("port")))
    shown = cells.some(addresses) if document.get("subsets") else "<none>"
    return [cells.name(document), shown, cells.age(document, now)]


def _joined(address: str, port: int | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice_cells(document: Json, now: datetime) -> list[Any]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in document.get("ports") or ()]
    addresses = [address for entry in document.get("endpoints") or () for address in entry.get("addresses") or ()]
    return [
        cells.name(document),
        document.get("addressType", ""),
        cells.some(ports) or "<unset>",
        cells.some(addresses) or "<unset>",
        cells.age(document, now),
    ]


ENDPOINTS = Resource(
    kind="Endpoints",
    plural="endpoints",
    short_names=("ep",),
    default=_default,
    allow_create_on_update=True,
    warnings=Warnings(deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    table=Table("Name,Endpoints,Age", _cells),
)
ENDPOINT_SLICES = Resource(
    group="discovery.k8s.io",
    kind="EndpointSlice",
    plural="endpointslices",
    default=_default_slice,
    complete=complete.object_members("endpoints", "ports"),
    has_generation=True,
    generation_covers="labels",
    table=Table("Name,AddressType,Ports,Endpoints,Age", _slice_cells),
)
