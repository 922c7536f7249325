"""Checks of Services: ports, addresses, traffic policies, and load balancer status."""

from __future__ import annotations

import ipaddress

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import names

_PORTS = "must be between 1 and 65535, inclusive"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL = "may not be set for ExternalName services"
_DAY = 86400


def is_headless(spec: Json) -> bool:
    """Whether a service is headless."""
    return bool((spec.get("clusterIPs") or ("",))[0] == "None")


def is_reachable(spec: Json) -> bool:
    """Whether a service is reachable from outside the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def is_health_checked(spec: Json) -> bool:
    """Whether load balancers check each node for pods of the service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check(document: Json) -> list[FieldError]:
    """Check a Service."""
    spec = document.get("spec") or {}
    ports = spec.get("ports") or ()
    errors: list[FieldError] = []
    if not ports and not is_headless(spec) and spec.get("type") != "ExternalName":
        errors.append(required("spec.ports"))
    errors += _kind(spec)
    seen: set[str] = set()
    for at, port in enumerate(ports):
        errors += _port(port, f"spec.ports[{at}]", seen, named=len(ports) > 1)
    errors += names.check_labels(spec.get("selector"), "spec.selector")
    errors += _affinity(spec)
    errors += check_addresses(spec)
    for at, address in enumerate(spec.get("externalIPs") or ()):
        errors += check_endpoint_address(address, f"spec.externalIPs[{at}]")
    if spec.get("type") not in _TYPES:
        errors.append(unsupported("spec.type", spec.get("type", ""), _TYPES))
    return errors + _ports_together(spec, ports) + _balancing(spec) + _check_class(spec) + _traffic(spec)


def _kind(spec: Json) -> list[FieldError]:
    """Check the fields that the type of a service requires."""
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")]
    if kind != "ExternalName":
        return []
    errors = [
        forbidden_field(f"spec.{key}", _NOT_EXTERNAL)
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key)
    ]
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + [invalid("spec.externalName", name, problem) for problem in naming.subdomain_problems(name)]


def _port(port: Json, path: str, seen: set[str], *, named: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name", "")
    if named and not name:
        errors.append(required(f"{path}.name"))
    elif name:
        errors += [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
    if not 1 <= port.get("port", 0) <= 65535:
        errors.append(invalid(f"{path}.port", port.get("port", 0), _PORTS))
    protocol = port.get("protocol", "TCP")
    if protocol not in ("SCTP", "TCP", "UDP"):
        errors.append(unsupported(f"{path}.protocol", protocol, ("SCTP", "TCP", "UDP")))
    errors += names.check_port(port.get("targetPort", 0), f"{path}.targetPort")
    if port.get("appProtocol") is not None:
        name = port["appProtocol"]
        errors += [invalid(f"{path}.appProtocol", name, problem) for problem in naming.qualified_problems(name)]
    return errors


def _affinity(spec: Json) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "None")
    if affinity not in ("ClientIP", "None"):
        return [unsupported("spec.sessionAffinity", affinity, ("ClientIP", "None"))]
    config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    timeout = config.get("timeoutSeconds", 1)
    if affinity == "ClientIP" and not 0 < timeout <= _DAY:
        detail = f"must be greater than 0 and less than {_DAY}"
        return [invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", timeout, detail)]
    return []


def check_addresses(spec: Json) -> list[FieldError]:
    """Check the addresses of a service and their families, without regard to the cluster's own."""
    if spec.get("type") == "ExternalName":
        return []
    errors: list[FieldError] = []
    address, addresses, families = spec.get("clusterIP"), spec.get("clusterIPs") or [], spec.get("ipFamilies") or ()
    if address and addresses[:1] != [address]:
        errors.append(invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"))
    if not address and addresses:
        errors.append(invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"))
    for at, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(unsupported(f"spec.ipFamilies[{at}]", family, _FAMILIES))
        if family in families[:at]:
            errors.append(duplicate(f"spec.ipFamilies[{at}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(unsupported("spec.ipFamilyPolicy", policy, _POLICIES))
    wrong: list[FieldError] = []
    if addresses[:1] == ["None"] and len(addresses) > 1:
        wrong.append(invalid("spec.clusterIPs", addresses, "'None' must be the first and only value"))
    for at, each in enumerate(addresses):
        if at or each != "None":
            wrong += names.check_address(each, f"spec.clusterIPs[{at}]")
    if len(addresses) > 2:
        errors.append(invalid("spec.clusterIPs", addresses, "may only hold up to 2 values"))
    if wrong:
        return errors + wrong
    if len(addresses) > 1 and len({family_of(each) for each in addresses}) < 2:
        errors.append(invalid("spec.clusterIPs", addresses, "may specify no more than one IP for each IP family"))
    if addresses and not is_headless(spec):
        for at, (each, family) in enumerate(zip(addresses, families, strict=False)):
            if family in _FAMILIES and family_of(each) != family:
                detail = f"expected an {family} value as indicated by `ipFamilies[{at}]`"
                errors.append(invalid(f"spec.clusterIPs[{at}]", each, detail))
    return errors


def family_of(address: str) -> str:
    """IPv4 or IPv6."""
    return f"IPv{ipaddress.ip_address(address).version}"


def check_endpoint_address(address: str, path: str) -> list[FieldError]:
    """Check the address of an endpoint."""
    errors = names.check_address(address, path)
    if errors:
        return errors
    parsed = ipaddress.ip_address(address)
    if parsed.is_unspecified:
        errors.append(invalid(path, address, f"may not be unspecified ({address})"))
    if parsed.is_loopback:
        errors.append(invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if parsed.is_link_local:
        errors.append(invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if parsed in ipaddress.ip_network("224.0.0.0/24" if parsed.version == 4 else "ff02::/16"):
        errors.append(invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))
    return errors


def _ports_together(spec: Json, ports: list[Json] | tuple[()]) -> list[FieldError]:
    """Refuse duplicate ports."""
    errors: list[FieldError] = []
    if spec.get("type") == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        errors += [
            forbidden_field(f"spec.ports[{at}].nodePort", detail)
            for at, port in enumerate(ports)
            if port.get("nodePort")
        ]
    seen: set[tuple[str, int]] = set()
    for at, port in enumerate(ports):
        mark = (port.get("protocol", ""), port.get("nodePort", 0))
        if mark[1] and mark in seen:
            errors.append(duplicate(f"spec.ports[{at}].nodePort", mark[1]))
        seen.add(mark)
    seen = set()
    for at, port in enumerate(ports):
        mark = (port.get("protocol", ""), port.get("port", 0))
        if mark in seen:
            errors.append(duplicate(f"spec.ports[{at}]", {"protocol": mark[0], "port": mark[1]}))
        seen.add(mark)
    return errors


def _balancing(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    balanced = spec.get("type") == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not balanced:
        errors.append(forbidden_field("spec.LoadBalancerSourceRanges", _BALANCED))
    for at, text in enumerate(ranges):
        errors += names.check_cidr(text.strip(), f"spec.LoadBalancerSourceRanges[{at}]")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        errors.append(forbidden_field("spec.allocateLoadBalancerNodePorts", _BALANCED))
    return errors


def _check_class(spec: Json) -> list[FieldError]:
    """Check the class of a load balancer."""
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [forbidden_field("spec.loadBalancerClass", _BALANCED)]
    return [invalid("spec.loadBalancerClass", name, problem) for problem in naming.qualified_problems(name)]


def _traffic(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    outer, inner = spec.get("externalTrafficPolicy", ""), spec.get("internalTrafficPolicy")
    if not is_reachable(spec):
        if outer:
            detail = "may only be set for externally-accessible services"
            errors.append(invalid("spec.externalTrafficPolicy", outer, detail))
    elif outer not in _TRAFFIC:
        errors.append(unsupported("spec.externalTrafficPolicy", outer, _TRAFFIC))
    health = spec.get("healthCheckNodePort", 0)
    if health and not is_health_checked(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", health, detail))
    if inner is not None and inner not in _TRAFFIC:
        errors.append(unsupported("spec.internalTrafficPolicy", inner, _TRAFFIC))
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in _DISTRIBUTIONS:
        errors.append(unsupported("spec.trafficDistribution", spread, _DISTRIBUTIONS))
    return errors


def check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a Service."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    if "ExternalName" not in (spec.get("type"), old_spec.get("type")):
        errors += _moved(spec, old_spec)
    balanced = spec.get("type") == old_spec.get("type") == "LoadBalancer"
    if balanced and spec.get("loadBalancerClass") != old_spec.get("loadBalancerClass"):
        errors.append(invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set"))
    errors += _check_class(spec)
    checked = is_health_checked(spec) and is_health_checked(old_spec)
    if checked and spec.get("healthCheckNodePort") != old_spec.get("healthCheckNodePort"):
        errors.append(forbidden_field("spec.healthCheckNodePort", "field is immutable"))
    return errors


def _moved(spec: Json, old_spec: Json) -> list[FieldError]:
    """Refuse a change of a service's address or families."""
    if is_headless(spec) and is_headless(old_spec):
        return []
    errors: list[FieldError] = []
    before, now = old_spec.get("clusterIPs") or [], spec.get("clusterIPs") or []
    if before and not now:
        errors.append(invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset"))
    elif before[:1] != now[:1] and before:
        errors.append(invalid("spec.clusterIPs[0]", now, "may not change once set"))
    families = spec.get("ipFamilies") or []
    if is_headless(spec) == is_headless(old_spec) and families[:1] != (old_spec.get("ipFamilies") or [])[:1]:
        errors.append(invalid("spec.ipFamilies[0]", families, "may not change once set"))
    return errors


def check_status(new: Json, old: Json) -> list[FieldError]:
    """Check the load balancer status of a service."""
    path = "status.loadBalancer.ingress"
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    if points and new["spec"].get("type") != "LoadBalancer":
        return [forbidden_field(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    errors: list[FieldError] = []
    for at, point in enumerate(points):
        where = f"{path}[{at}]"
        if point.get("ip"):
            errors += names.check_address(point["ip"], f"{where}.ip")
        mode = point.get("ipMode")
        if mode is not None and not point.get("ip"):
            errors.append(forbidden_field(f"{where}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None and mode not in ("Proxy", "VIP"):
            errors.append(unsupported(f"{where}.ipMode", mode, ("Proxy", "VIP")))
        if point.get("hostname"):
            errors += names.check_host(point["hostname"], f"{where}.hostname")
    return errors
