"""What `kubectl get` shows of the network: services, their endpoints, ingresses, policies and addresses."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import cells

_SHOWN = 3


def _some(items: list[str]) -> str:
    """The first three items, and how many more there are."""
    more = len(items) - _SHOWN
    return ",".join(items[:_SHOWN]) + (f" + {more} more..." if more > 0 else "")


def _balanced(document: Json) -> list[str]:
    """The addresses of a load balancer."""
    entries = (cells.status(document).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""})


def service(document: Json, now: datetime) -> list[Any]:
    """A Service."""
    spec = cells.spec(document)
    ports = []
    for port in spec.get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        cells.name(document),
        spec.get("type", "ClusterIP"),
        spec.get("clusterIP") or "<none>",
        _external(document),
        ",".join(ports) or "<none>",
        cells.age(document, now),
        selector or "<none>",
    ]


def _external(document: Json) -> str:
    spec = cells.spec(document)
    kind, given = spec.get("type", "ClusterIP"), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        return ",".join([*_balanced(document), *given]) or "<pending>"
    return cells.or_none(given)


def endpoints(document: Json, now: datetime) -> list[Any]:
    """Endpoints."""
    found = []
    for subset in document.get("subsets") or ():
        for port in subset.get("ports") or [{}]:
            for address in subset.get("addresses") or ():
                found.append(_joined(address.get("ip", ""), port.get("port")))
    shown = _some(found) if document.get("subsets") else "<none>"
    return [cells.name(document), shown, cells.age(document, now)]


def _joined(address: str, port: int | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def endpoint_slice(document: Json, now: datetime) -> list[Any]:
    """An EndpointSlice."""
    ports = [str(port.get("port", port.get("name", "*"))) for port in document.get("ports") or ()]
    addresses = [address for entry in document.get("endpoints") or () for address in entry.get("addresses") or ()]
    return [
        cells.name(document),
        document.get("addressType", ""),
        _some(ports) or "<unset>",
        _some(addresses) or "<unset>",
        cells.age(document, now),
    ]


def policy(document: Json, now: datetime) -> list[Any]:
    """A NetworkPolicy."""
    chosen = selectors.formatted(cells.spec(document).get("podSelector")) or "<none>"
    return [cells.name(document), chosen, cells.age(document, now)]


def ingress(document: Json, now: datetime) -> list[Any]:
    """An Ingress."""
    spec = cells.spec(document)
    return [
        cells.name(document),
        spec.get("ingressClassName", "<none>"),
        _hosts([rule.get("host", "") for rule in spec.get("rules") or ()]),
        ",".join(_balanced(document)),
        "80, 443" if spec.get("tls") else "80",
        cells.age(document, now),
    ]


def _hosts(hosts: list[str]) -> str:
    """The hosts of rules; what is more than three is counted by rules, those without a host too."""
    shown: list[str] = []
    for at, host in enumerate(hosts):
        if host:
            shown.append(host)
        if len(shown) == _SHOWN:
            more = f" + {len(hosts) - _SHOWN} more..." if at + 1 < len(hosts) else ""
            return ",".join(shown) + more
    return ",".join(shown) or "*"


def ingress_class(document: Json, now: datetime) -> list[Any]:
    """An IngressClass."""
    spec = cells.spec(document)
    found = spec.get("parameters")
    told = f"{_qualified(found.get('kind', ''), found.get('apiGroup'))}/{found.get('name', '')}" if found else "<none>"
    return [cells.name(document), spec.get("controller", ""), told, cells.age(document, now)]


def address(document: Json, now: datetime) -> list[Any]:
    """An IPAddress; its age is in the row, though no column tells of it."""
    parent = cells.spec(document).get("parentRef")
    told = "<none>"
    if parent:
        resource = _qualified(parent.get("resource", ""), parent.get("group")).lower()
        told = "/".join(_given((resource, parent.get("namespace"), parent.get("name"))))
    return [cells.name(document), told, cells.age(document, now)]


def address_range(document: Json, now: datetime) -> list[Any]:
    """A ServiceCIDR."""
    return [cells.name(document), ",".join(cells.spec(document).get("cidrs") or ()), cells.age(document, now)]


def _qualified(name: str, group: str | None) -> str:
    return ".".join(_given((name, group)))


def _given(parts: Iterable[str | None]) -> Iterable[str]:
    return (part for part in parts if part)
