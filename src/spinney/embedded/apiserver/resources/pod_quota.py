"""What a pod takes of resource quotas, and which scopes cover it."""

from __future__ import annotations

from fractions import Fraction

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.pod_admission import qos_class_of
from spinney.embedded.apiserver.resources.quota import Scope, Usage, amounts

# Names that count what pods request, without `requests.` in front.
_SHORT_NAMES = ("cpu", "memory", "ephemeral-storage")
# Every container has to specify these where a quota limits them.
_SPECIFIED = ("cpu", "memory")


def usage(pod: Json) -> Usage:
    """The requests and limits of a pod that has not ended."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    spec = pod.get("spec") or {}
    used: Usage = {"pods": Fraction(1)}
    for kind in ("requests", "limits"):
        total = _sum(spec, kind)
        for name, amount in (spec.get("overhead") or {}).items():
            if kind == "requests" or name in total:
                total[name] = total.get(name, Fraction()) + quantity.exact(amount)
        # What the pod specifies for itself counts for all of its containers.
        total |= amounts(spec, kind)
        used |= {f"{kind}.{name}": amount for name, amount in total.items()}
        if kind == "requests":
            short = {name for name in total if name in _SHORT_NAMES or name.startswith("hugepages-")}
            used |= {name: total[name] for name in short}
    return used


def _sum(spec: Json, kind: str) -> Usage:
    """The sum of all containers, or the largest init container; sidecars run beside both."""
    total: Usage = {}
    for container in spec.get("containers") or ():
        _add(total, amounts(container, kind))
    largest: Usage = {}
    sidecars: Usage = {}
    for container in spec.get("initContainers") or ():
        own = amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            own = {}
        _add(own, sidecars)
        largest = _maximum(largest, own)
    return _maximum(total, largest)


def _add(total: Usage, more: Usage) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction()) + amount


def _maximum(a: Usage, b: Usage) -> Usage:
    return {name: max(a.get(name, Fraction()), b.get(name, Fraction())) for name in {*a, *b}}


def missing(hard: Json, pod: Json) -> list[str]:
    """The requests and limits that containers leave out although a quota limits them."""
    spec = pod["spec"]
    lacks: list[str] = []
    for name in sorted(hard):
        kind, _, resource = name.rpartition(".") if name not in _SPECIFIED else ("requests", "", name)
        if kind not in ("requests", "limits") or resource not in _SPECIFIED:
            continue
        containers = [
            container["name"]
            for container in (*spec["containers"], *(spec.get("initContainers") or ()))
            if resource not in ((container.get("resources") or {}).get(kind) or {})
        ]
        if containers:
            lacks.append(f"{name} for: {','.join(sorted(containers))}")
    return lacks


def covers(scope: Scope, pod: Json) -> bool:
    """Whether a scope of a quota covers a pod."""
    spec = pod.get("spec") or {}
    match scope.name:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class_of(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class_of(spec) != "BestEffort"
        case "PriorityClass":
            name = spec.get("priorityClassName")
            return scope.selects({name} if name else set())
        case "CrossNamespacePodAffinity":
            return _selects_other_namespaces(spec.get("affinity") or {})
    return False


def _selects_other_namespaces(affinity: Json) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted.get("podAffinityTerm") or {})
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
