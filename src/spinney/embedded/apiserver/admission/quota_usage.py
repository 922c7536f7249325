"""What an object takes of a quota, and which quotas hold for it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.pod_admission import quality

Usage = dict[str, Fraction]
PODS, CLAIMS, SERVICES = "/pods", "/persistentvolumeclaims", "/services"
_COUNTED = frozenset(
    (
        *("/configmaps", CLAIMS, "/replicationcontrollers"),
        *("/resourcequotas", "/secrets", SERVICES),
    )
)
# Names that count what pods ask for, without `requests.` in front.
SHORT = ("cpu", "memory", "ephemeral-storage")
_BY_CLASS = "storageclass.storage.k8s.io"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def usage(kind: Kind, document: Json) -> Usage:
    """What an object takes of a quota."""
    found: Usage = {f"count/{kind.qualified}": Fraction(1)}
    if kind.table in _COUNTED:
        found[kind.plural] = Fraction(1)
    if kind.table == PODS:
        found |= _pod(document)
    elif kind.table == CLAIMS:
        found |= _claim(document)
    elif kind.table == SERVICES:
        found |= _service(document.get("spec") or {})
    elif kind.table == "resource.k8s.io/resourceclaims":
        found |= _devices(document.get("spec") or {})
    return found


def _pod(document: Json) -> Usage:
    """A pod that has ended takes nothing but a place."""
    if (document.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    spec = document.get("spec") or {}
    found: Usage = {"pods": Fraction(1)}
    for kind in ("requests", "limits"):
        total = _sum(spec, kind)
        for name, amount in (spec.get("overhead") or {}).items():
            if kind == "requests" or name in total:
                total[name] = total.get(name, Fraction()) + quantity.exact(amount)
        # For the whole pod, what it says itself counts.
        total |= _amounts(spec, kind)
        found |= {f"{kind}.{name}": amount for name, amount in total.items()}
        if kind == "requests":
            found |= {name: amount for name, amount in total.items() if name in SHORT or name.startswith("hugepages-")}
    return found


def _sum(spec: Json, kind: str) -> Usage:
    """Containers side by side, or the largest of those that run before them; sidecars run beside both."""
    total: Usage = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, kind))
    before: Usage = {}
    beside: Usage = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(beside, own)
            own = {}
        _add(own, beside)
        before = {name: max(before.get(name, Fraction()), own.get(name, Fraction())) for name in {*before, *own}}
    return {name: max(total.get(name, Fraction()), before.get(name, Fraction())) for name in {*total, *before}}


def _add(total: Usage, more: Usage) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction()) + amount


def _amounts(holder: Json, kind: str) -> Usage:
    given = (holder.get("resources") or {}).get(kind) or {}
    return {name: quantity.exact(amount) for name, amount in given.items()}


def _claim(document: Json) -> Usage:
    spec, annotations = document.get("spec") or {}, document["metadata"].get("annotations") or {}
    asked = _amounts(spec, "requests").get("storage", Fraction())
    name = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName")
    found: Usage = {"requests.storage": asked}
    if name:
        found[f"{name}.{_BY_CLASS}/requests.storage"] = asked
        found[f"{name}.{_BY_CLASS}/persistentvolumeclaims"] = Fraction(1)
    return found


def _service(spec: Json) -> Usage:
    kind, ports = spec.get("type"), spec.get("ports") or ()
    held = len(ports)
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        held = sum(1 for port in ports if port.get("nodePort"))
    return {
        "services.nodeports": Fraction(held if kind in ("NodePort", "LoadBalancer") else 0),
        "services.loadbalancers": Fraction(int(kind == "LoadBalancer")),
    }


def _devices(spec: Json) -> Usage:
    found: Usage = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        exact = request.get("exactly") or {}
        if exact.get("deviceClassName"):
            name = f"{exact['deviceClassName']}.deviceclass.resource.k8s.io/devices"
            found[name] = found.get(name, Fraction()) + int(exact.get("count") or 1)
    return found


def holds_for(quota: Json, kind: Kind, document: Json) -> bool:
    """Whether a quota's scopes cover an object; without scopes it covers all."""
    scopes = [(scope, "Exists", ()) for scope in quota.get("scopes") or ()]
    for entry in (quota.get("scopeSelector") or {}).get("matchExpressions") or ():
        scopes.append((entry["scopeName"], entry["operator"], tuple(entry.get("values") or ())))
    if not scopes:
        return True
    if kind.table == PODS:
        return all(_covers_pod(*scope, document.get("spec") or {}) for scope in scopes)
    return kind.table == CLAIMS and all(_covers_claim(*scope, document) for scope in scopes)


def _covers_pod(scope: str, operator: str, values: tuple[str, ...], spec: Json) -> bool:
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return quality(spec) == "BestEffort"
        case "NotBestEffort":
            return quality(spec) != "BestEffort"
        case "PriorityClass":
            name = spec.get("priorityClassName")
            return _chosen(operator, values, {name} if name else set())
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(spec.get("affinity") or {})
    return False


def _covers_claim(scope: str, operator: str, values: tuple[str, ...], document: Json) -> bool:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    modify = status.get("modifyVolumeStatus") or {}
    names = {
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        modify.get("targetVolumeAttributesClassName"),
    }
    return scope == "VolumeAttributesClass" and _chosen(operator, values, {name for name in names if name})


def _chosen(operator: str, values: Iterable[str], names: set[Any]) -> bool:
    """Whether one of the names is as an expression wants it; to have none is a way to be, too."""
    wanted = set(values)
    match operator:
        case "In":
            return bool(names & wanted)
        case "NotIn":
            return not names or bool(names - wanted)
        case "Exists":
            return bool(names)
    return not names


def _looks_elsewhere(affinity: Json) -> bool:
    """Whether a pod wants to be near to, or far from, pods of other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted.get("podAffinityTerm") or {})
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
