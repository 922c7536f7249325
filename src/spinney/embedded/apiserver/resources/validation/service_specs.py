"""Checks of Services: ports, addresses and traffic policies."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    one_of,
    required,
    unsupported,
)
from spinney.embedded.apiserver.resources.validation import names

_PORTS = "must be between 1 and 65535, inclusive"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_TRAFFIC = ("Cluster", "Local")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_NOT_EXTERNAL = "may not be set for ExternalName services"
_DAY = 86400


def is_headless(spec: Json) -> bool:
    """Whether a service is headless."""
    return bool((spec.get("clusterIPs") or ("",))[0] == "None")


def is_reachable(spec: Json) -> bool:
    """Whether a service is reachable from outside the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


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
        errors += names.check_address(address, f"spec.externalIPs[{at}]")
    errors += one_of("spec.type", spec.get("type", ""), _TYPES)
    return errors + _ports_together(spec, ports) + _traffic(spec)


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
    errors += one_of(f"{path}.protocol", protocol, ("SCTP", "TCP", "UDP"))
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
    address, addresses = spec.get("clusterIP"), spec.get("clusterIPs") or []
    if address and addresses[:1] != [address]:
        errors.append(invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"))
    if not address and addresses:
        errors.append(invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"))
    for at, family in enumerate(spec.get("ipFamilies") or ()):
        errors += one_of(f"spec.ipFamilies[{at}]", family, _FAMILIES)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(unsupported("spec.ipFamilyPolicy", policy, _POLICIES))
    for at, given in enumerate(addresses):
        if at or given != "None":
            errors += names.check_address(given, f"spec.clusterIPs[{at}]")
    return errors


def _ports_together(spec: Json, ports: list[Json] | tuple[()]) -> list[FieldError]:
    """Refuse duplicate ports, and node ports of a service that has none."""
    errors: list[FieldError] = []
    seen: set[tuple[str, str, int]] = set()
    for at, port in enumerate(ports):
        where, protocol = f"spec.ports[{at}]", port.get("protocol", "")
        number, node_port = port.get("port", 0), port.get("nodePort", 0)
        if node_port and spec.get("type") == "ClusterIP":
            errors.append(forbidden_field(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        if node_port and (protocol, "nodePort", node_port) in seen:
            errors.append(duplicate(f"{where}.nodePort", node_port))
        if (protocol, "port", number) in seen:
            errors.append(duplicate(where, {"protocol": protocol, "port": number}))
        seen |= {(protocol, "nodePort", node_port), (protocol, "port", number)}
    return errors


def _traffic(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    outer, inner = spec.get("externalTrafficPolicy", ""), spec.get("internalTrafficPolicy")
    if outer and not is_reachable(spec):
        detail = "may only be set for externally-accessible services"
        errors.append(invalid("spec.externalTrafficPolicy", outer, detail))
    elif outer and outer not in _TRAFFIC:
        errors.append(unsupported("spec.externalTrafficPolicy", outer, _TRAFFIC))
    if inner is not None and inner not in _TRAFFIC:
        errors.append(unsupported("spec.internalTrafficPolicy", inner, _TRAFFIC))
    return errors


def check_update(new: Json, old: Json) -> list[FieldError]:
    """Check that an update keeps the service's address."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or (is_headless(spec) and is_headless(old_spec)):
        return []
    before, now = old_spec.get("clusterIPs") or [], spec.get("clusterIPs") or []
    if before and not now:
        return [invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")]
    if before and before[:1] != now[:1]:
        return [invalid("spec.clusterIPs[0]", now, "may not change once set")]
    return []
