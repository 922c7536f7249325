"""Services, with the allocation of their cluster IPs and node ports."""

from __future__ import annotations

import ipaddress
from datetime import datetime
from fractions import Fraction
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, invalid, invalid_object
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.node_ports import NodePorts
from spinney.embedded.apiserver.resources.quota import Quota, Usage
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation import service_specs
from spinney.embedded.apiserver.resources.validation.service_specs import (
    check_addresses,
    is_headless,
    is_reachable,
)

RANGE = ipaddress.ip_network("10.0.0.0/16")
_BOTH = ["IPv4", "IPv6"]
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    """Allocate what a new service needs and does not name."""
    document["status"] = {"loadBalancer": {}}
    spec = document["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _families(call, spec, {})
    _address(core, call, spec, {})
    if spec.get("type") in _WITH_NODE_PORTS:
        NodePorts(core, call).first(spec)
    _drop_internal_policy(spec)


def _update(core: Core, call: Call, new: Json, old: Json) -> None:
    """Keep what was allocated to a service, and allocate what it needs in addition."""
    spec, old_spec = dict(new["spec"]), old["spec"]
    if spec.get("ports"):
        spec["ports"] = [dict(port) for port in spec["ports"]]
    new["spec"] = spec
    _keep(spec, old_spec)
    _families(call, spec, old_spec)
    _address(core, call, spec, old_spec)
    if spec.get("type") in _WITH_NODE_PORTS:
        NodePorts(core, call).next(spec, old_spec)
    _drop(spec, old_spec)
    if spec.get("type") != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}
    _drop_internal_policy(spec)


def _drop_internal_policy(spec: Json) -> None:
    if spec.get("type") == "ExternalName":
        spec.pop("internalTrafficPolicy", None)


def _keep(spec: Json, old_spec: Json) -> None:
    """Copy allocated fields that the client left out."""
    if "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        address = spec.get("clusterIP")
        for key in ("clusterIP", "clusterIPs"):
            if not spec.get(key) and old_spec.get(key):
                spec[key] = old_spec[key]
        if address and address != old_spec.get("clusterIP") and spec.get("clusterIPs") == old_spec.get("clusterIPs"):
            spec["clusterIPs"] = [address]
    if spec.get("type") in _WITH_NODE_PORTS and old_spec.get("type") in _WITH_NODE_PORTS:
        ports = spec.get("ports") or ()
        named = {port.get("name", ""): port.get("nodePort") for port in old_spec.get("ports") or ()}
        used = {port.get("nodePort") for port in ports} & set(named.values())
        for port in ports:
            node_port = named.get(port.get("name", ""))
            if not port.get("nodePort") and node_port and node_port not in used:
                port["nodePort"] = node_port


def _drop(spec: Json, old_spec: Json) -> None:
    """Drop fields that the new type does not have, unless the client changed them."""
    kind, before = spec.get("type"), old_spec.get("type")
    if kind == "ExternalName" != before:
        _drop_same(spec, old_spec, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    if before in _WITH_NODE_PORTS and kind not in _WITH_NODE_PORTS:
        numbers = [[port.get("nodePort") for port in part.get("ports") or ()] for part in (spec, old_spec)]
        if numbers[0] == numbers[1]:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if before == "LoadBalancer" != kind:
        _drop_same(spec, old_spec, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_reachable(old_spec) and not is_reachable(spec):
        _drop_same(spec, old_spec, "externalTrafficPolicy")


def _drop_same(spec: Json, old_spec: Json, *keys: str) -> None:
    for key in keys:
        if key in spec and spec[key] == old_spec.get(key):
            del spec[key]


def _families(call: Call, spec: Json, old_spec: Json) -> None:
    """Set the IP families of a service. This cluster has IPv4 only."""
    if spec.get("type") == "ExternalName":
        return
    bare = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = old_spec.get("ipFamilyPolicy") or ("RequireDualStack" if bare else "SingleStack")
    errors = check_addresses(spec)
    dual = spec["ipFamilyPolicy"] == "RequireDualStack"
    if bare:
        spec.setdefault("ipFamilies", _BOTH if dual else ["IPv4"])
    elif dual:
        detail = "this cluster is not configured for dual-stack services"
        errors.append(invalid("spec.ipFamilyPolicy", "RequireDualStack", detail))
    elif "IPv6" in (spec.get("ipFamilies") or ()):
        at = spec["ipFamilies"].index("IPv6")
        errors.append(invalid(f"spec.ipFamilies[{at}]", "IPv6", "not configured on this cluster"))
    _refuse(call, errors)
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]


def _refuse(call: Call, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_object(call.kind, call.name, errors)


def _address(core: Core, call: Call, spec: Json, old_spec: Json) -> None:
    if spec.get("type") == "ExternalName" or is_headless(spec):
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = core.allocation.next_address()
        spec["clusterIPs"] = [spec["clusterIP"]]
        return
    if old_spec and old_spec.get("type") != "ExternalName":
        return
    for address in spec["clusterIPs"]:
        why = _unavailable(core, address)
        if why:
            detail = f"failed to allocate IP {address}: {why}"
            _refuse(call, [invalid("spec.clusterIPs", spec["clusterIPs"], detail)])


def _unavailable(core: Core, address: str) -> str:
    parsed = ipaddress.ip_address(address)
    if parsed not in RANGE:
        return "the provided network does not match the current range"
    taken = any(item.fields.get("spec.clusterIP") == address for item in core.store.table("/services").range(""))
    return "provided IP is already allocated" if taken else ""


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    fill(spec, sessionAffinity="None", type="ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if is_reachable(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for point in ((document.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if point.get("ip"):
                point.setdefault("ipMode", "VIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)


def _prepare_update(core: Core, call: Call, new: Json, old: Json) -> None:
    if new.get("spec") is not old.get("spec"):
        _update(core, call, new, old)


def _cells(document: Json, now: datetime) -> list[Any]:
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
    kind, addresses = spec.get("type", "ClusterIP"), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        return ",".join([*cells.load_balancer_addresses(document), *addresses]) or "<pending>"
    return cells.or_none(addresses)


def _usage(document: Json) -> Usage:
    spec = document.get("spec") or {}
    kind, ports = spec.get("type"), spec.get("ports") or ()
    held = len(ports)
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        held = sum(1 for port in ports if port.get("nodePort"))
    return {
        "services.nodeports": Fraction(held if kind in _WITH_NODE_PORTS else 0),
        "services.loadbalancers": Fraction(int(kind == "LoadBalancer")),
    }


SERVICES = Resource(
    kind="Service",
    plural="services",
    short_names=("svc",),
    categories=("all",),
    subresources=("proxy", "status"),
    default=_default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    default_status=True,
    allow_create_on_update=True,
    deletion=Deletion(returns_object=True),
    quota=Quota(counted=True, usage=_usage, grows=True),
    checks=Checks(name=naming.dns_1035_problems, object=service_specs.check, update=service_specs.check_update),
    table=Table("Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector", _cells),
    selectable=("spec.clusterIP", "spec.type"),
)
