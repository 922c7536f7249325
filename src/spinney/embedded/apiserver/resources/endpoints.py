"""Endpoints and EndpointSlices: where the pods of a service are."""

from __future__ import annotations

import ipaddress

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required, too_many, unsupported
from spinney.embedded.apiserver.resources.validation import names
from spinney.embedded.apiserver.resources.validation.service_specs import check_endpoint_address

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ADDRESSES, _MOST_ENDPOINTS, _MOST_PORTS, _MOST_ZONES = 100, 1000, 20000, 8


def check_endpoints(document: Json) -> list[FieldError]:
    """An Endpoints object."""
    found: list[FieldError] = []
    for at, subset in enumerate(document.get("subsets") or ()):
        where = f"subsets[{at}]"
        addresses, others = subset.get("addresses") or (), subset.get("notReadyAddresses") or ()
        if not addresses and not others:
            found.append(required(where, "must specify `addresses` or `notReadyAddresses`"))
        for key, listed in (("addresses", addresses), ("notReadyAddresses", others)):
            for number, address in enumerate(listed):
                found += _address(address, f"{where}.{key}[{number}]")
        ports = subset.get("ports") or ()
        for number, port in enumerate(ports):
            found += _old_port(port, f"{where}.ports[{number}]", named=len(ports) > 1)
    return found


def _address(address: Json, path: str) -> list[FieldError]:
    text = address.get("ip", "")
    found = check_endpoint_address(text, f"{path}.ip")
    if names.check_address(text, path):
        found.append(invalid(f"{path}.ip", text, "must be a valid IP address"))
    name, node = address.get("hostname"), address.get("nodeName")
    if name:
        found += [invalid(f"{path}.hostname", name, problem) for problem in naming.label_problems(name)]
    if node is not None:
        found += [invalid(f"{path}.nodeName", node, problem) for problem in naming.subdomain_problems(node)]
    return found


def _old_port(port: Json, path: str, *, named: bool) -> list[FieldError]:
    name = port.get("name", "")
    found = [required(f"{path}.name")] if named and not name else []
    if name:
        found += [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
    found += names.check_port(port.get("port", 0), f"{path}.port")
    return found + _protocols(port, path)


def _protocols(port: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    protocol, known = port.get("protocol", "TCP"), port.get("appProtocol")
    if protocol not in _PROTOCOLS:
        found.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    if known is not None:
        found += [invalid(f"{path}.appProtocol", known, problem) for problem in naming.qualified_problems(known)]
    return found


def check_slice(document: Json) -> list[FieldError]:
    """An EndpointSlice."""
    kind = document.get("addressType")
    if not kind:
        return [required("addressType")]
    if kind not in _ADDRESS_TYPES:
        return [unsupported("addressType", kind, _ADDRESS_TYPES)]
    points, ports = document.get("endpoints") or (), document.get("ports") or ()
    found: list[FieldError] = []
    if len(points) > _MOST_ENDPOINTS:
        found.append(too_many("endpoints", len(points), _MOST_ENDPOINTS))
    else:
        for at, point in enumerate(points):
            found += _endpoint(point, kind, f"endpoints[{at}]")
    if len(ports) > _MOST_PORTS:
        return [*found, too_many("ports", len(ports), _MOST_PORTS)]
    seen: set[str] = set()
    for at, port in enumerate(ports):
        name, where = port.get("name") or "", f"ports[{at}]"
        if name:
            found += [invalid(f"{where}.name", name, problem) for problem in naming.label_problems(name)]
        if name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen.add(name)
        found += _protocols(port, where)
    return found


def _endpoint(point: Json, kind: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    addresses, where = point.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        found.append(required(where, "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        found.append(too_many(where, len(addresses), _MOST_ADDRESSES))
    for at, address in enumerate(addresses):
        found += _slice_address(address, kind, where, f"{where}[{at}]")
    if point.get("nodeName") is not None:
        node = point["nodeName"]
        found += [invalid(f"{path}.nodeName", node, problem) for problem in naming.subdomain_problems(node)]
    if point.get("hostname") is not None:
        name = point["hostname"]
        found += [invalid(f"{path}.hostname", name, problem) for problem in naming.label_problems(name)]
    hints = point.get("hints") or {}
    for key in ("forZones", "forNodes"):
        found += _hints([hint.get("name", "") for hint in hints.get(key) or ()], f"{path}.hints.{key}")
    return found


def _hints(listed: list[str], path: str) -> list[FieldError]:
    if len(listed) > _MOST_ZONES:
        return [too_many(path, len(listed), _MOST_ZONES)]
    found: list[FieldError] = []
    for at, name in enumerate(listed):
        if name in listed[:at]:
            found.append(duplicate(f"{path}[{at}].name", name))
        found += [invalid(f"{path}[{at}].name", name, problem) for problem in naming.value_problems(name)]
    return found


def _slice_address(address: str, kind: str, listed: str, path: str) -> list[FieldError]:
    if kind == "FQDN":
        return [invalid(path, address, problem) for problem in naming.subdomain_problems(address)]
    if names.check_address(address, path):
        return names.check_address(address, path)
    found: list[FieldError] = []
    if f"IPv{ipaddress.ip_address(address).version}" != kind:
        found.append(invalid(listed, address, f"must be an {kind} address"))
    return found + check_endpoint_address(address, path)


def check_slice_update(new: Json, old: Json) -> list[FieldError]:
    """A slice keeps the type of its addresses."""
    if new.get("addressType") == old.get("addressType"):
        return []
    return [invalid("addressType", new.get("addressType", ""), "field is immutable")]
