"""Endpoints and EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required, too_many, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table, Warnings
from spinney.embedded.apiserver.resources.validation import names
from spinney.embedded.apiserver.resources.validation.service_specs import check_endpoint_address

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ADDRESSES, _MOST_ENDPOINTS, _MOST_PORTS, _MOST_ZONES = 100, 1000, 20000, 8


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, subset in enumerate(document.get("subsets") or ()):
        where = f"subsets[{at}]"
        addresses, others = subset.get("addresses") or (), subset.get("notReadyAddresses") or ()
        if not addresses and not others:
            errors.append(required(where, "must specify `addresses` or `notReadyAddresses`"))
        for key, listed in (("addresses", addresses), ("notReadyAddresses", others)):
            for number, address in enumerate(listed):
                errors += _address(address, f"{where}.{key}[{number}]")
        ports = subset.get("ports") or ()
        for number, port in enumerate(ports):
            errors += _old_port(port, f"{where}.ports[{number}]", named=len(ports) > 1)
    return errors


def _address(address: Json, path: str) -> list[FieldError]:
    text = address.get("ip", "")
    errors = check_endpoint_address(text, f"{path}.ip")
    if names.check_address(text, path):
        errors.append(invalid(f"{path}.ip", text, "must be a valid IP address"))
    name, node = address.get("hostname"), address.get("nodeName")
    if name:
        errors += [invalid(f"{path}.hostname", name, problem) for problem in naming.label_problems(name)]
    if node is not None:
        errors += [invalid(f"{path}.nodeName", node, problem) for problem in naming.subdomain_problems(node)]
    return errors


def _old_port(port: Json, path: str, *, named: bool) -> list[FieldError]:
    name = port.get("name", "")
    errors = [required(f"{path}.name")] if named and not name else []
    if name:
        errors += [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
    errors += names.check_port(port.get("port", 0), f"{path}.port")
    return errors + _protocols(port, path)


def _protocols(port: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    protocol, app_protocol = port.get("protocol", "TCP"), port.get("appProtocol")
    if protocol not in _PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    if app_protocol is not None:
        errors += [
            invalid(f"{path}.appProtocol", app_protocol, problem) for problem in naming.qualified_problems(app_protocol)
        ]
    return errors


def _check_slice(document: Json) -> list[FieldError]:
    kind = document.get("addressType")
    if not kind:
        return [required("addressType")]
    if kind not in _ADDRESS_TYPES:
        return [unsupported("addressType", kind, _ADDRESS_TYPES)]
    points, ports = document.get("endpoints") or (), document.get("ports") or ()
    errors: list[FieldError] = []
    if len(points) > _MOST_ENDPOINTS:
        errors.append(too_many("endpoints", len(points), _MOST_ENDPOINTS))
    else:
        for at, point in enumerate(points):
            errors += _endpoint(point, kind, f"endpoints[{at}]")
    if len(ports) > _MOST_PORTS:
        return [*errors, too_many("ports", len(ports), _MOST_PORTS)]
    seen: set[str] = set()
    for at, port in enumerate(ports):
        name, where = port.get("name") or "", f"ports[{at}]"
        if name:
            errors += [invalid(f"{where}.name", name, problem) for problem in naming.label_problems(name)]
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _protocols(port, where)
    return errors


def _endpoint(point: Json, kind: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    addresses, where = point.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        errors.append(required(where, "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        errors.append(too_many(where, len(addresses), _MOST_ADDRESSES))
    for at, address in enumerate(addresses):
        errors += _slice_address(address, kind, where, f"{where}[{at}]")
    if point.get("nodeName") is not None:
        node = point["nodeName"]
        errors += [invalid(f"{path}.nodeName", node, problem) for problem in naming.subdomain_problems(node)]
    if point.get("hostname") is not None:
        name = point["hostname"]
        errors += [invalid(f"{path}.hostname", name, problem) for problem in naming.label_problems(name)]
    hints = point.get("hints") or {}
    for key in ("forZones", "forNodes"):
        errors += _hints([hint.get("name", "") for hint in hints.get(key) or ()], f"{path}.hints.{key}")
    return errors


def _hints(listed: list[str], path: str) -> list[FieldError]:
    if len(listed) > _MOST_ZONES:
        return [too_many(path, len(listed), _MOST_ZONES)]
    errors: list[FieldError] = []
    for at, name in enumerate(listed):
        if name in listed[:at]:
            errors.append(duplicate(f"{path}[{at}].name", name))
        errors += [invalid(f"{path}[{at}].name", name, problem) for problem in naming.value_problems(name)]
    return errors


def _slice_address(address: str, kind: str, listed: str, path: str) -> list[FieldError]:
    if kind == "FQDN":
        return [invalid(path, address, problem) for problem in naming.subdomain_problems(address)]
    if names.check_address(address, path):
        return names.check_address(address, path)
    errors: list[FieldError] = []
    if f"IPv{ipaddress.ip_address(address).version}" != kind:
        errors.append(invalid(listed, address, f"must be an {kind} address"))
    return errors + check_endpoint_address(address, path)


def _check_slice_update(new: Json, old: Json) -> list[FieldError]:
    if new.get("addressType") == old.get("addressType"):
        return []
    return [invalid("addressType", new.get("addressType", ""), "field is immutable")]


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


def _warn_of_slice(document: Json) -> Iterator[str]:
    if document.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"


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
    checks=Checks(object=_check),
    warnings=Warnings(
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
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
    checks=Checks(object=_check_slice, update=_check_slice_update),
    warnings=Warnings(create=_warn_of_slice),
    table=Table("Name,AddressType,Ports,Endpoints,Age", _slice_cells),
)
