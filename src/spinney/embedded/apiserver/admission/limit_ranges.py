"""Limit ranges: default requests and limits of containers, and bounds for pods and claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, forbidden
from spinney.embedded.apiserver.resources.quota import written
from spinney.embedded.apiserver.store.store import load

if TYPE_CHECKING:
    from spinney.embedded.apiserver.calls import Call

_ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, str]


def admit_pod(core: Core, call: Call, pod: Json) -> None:
    """Fill in the defaults of the namespace's limit ranges, then check their bounds."""
    limits = list(_limits(core, call.namespace))
    if not limits:
        return
    for limit in limits:
        if limit.get("type") == "Container":
            _fill(pod, limit)
    spec = pod["spec"]
    problems: list[str] = []
    for limit in limits:
        if limit.get("type") == "Container":
            for container in _containers(spec):
                resources = container.get("resources") or {}
                problems += _problems(limit, resources.get("requests") or {}, resources.get("limits") or {})
        elif limit.get("type") == "Pod":
            problems += _problems(limit, _total(spec, "requests"), _total(spec, "limits"))
    if problems:
        raise _refused(call, problems)


def admit_claim(core: Core, call: Call, claim: Json) -> None:
    """Check a claim against the bounds of its namespace."""
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    problems: list[str] = []
    for limit in _limits(core, call.namespace):
        if limit.get("type") != "PersistentVolumeClaim":
            continue
        for name, bound in (limit.get("min") or {}).items():
            problems += _too_small(name, "PersistentVolumeClaim", bound, requests, {})
        for name, bound in (limit.get("max") or {}).items():
            if name in requests and quantity.exact(requests[name]) > quantity.exact(bound):
                problems.append(
                    f"maximum {name} usage per PersistentVolumeClaim is {bound}, but request is {requests[name]}"
                )
    if problems:
        raise _refused(call, problems)


def _refused(call: Call, problems: list[str]) -> Refusal:
    message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return forbidden(call.kind, call.name, message)


def _limits(core: Core, namespace: str) -> Iterator[Json]:
    for item in core.store.table("/limitranges").range(namespace):
        yield from (load(item).get("spec") or {}).get("limits") or ()


def _containers(spec: Json) -> Iterable[Json]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _fill(pod: Json, limit: Json) -> None:
    lines: list[str] = []
    for key, label in (("initContainers", "init container"), ("containers", "container")):
        for container in pod["spec"].get(key) or ():
            resources = container.setdefault("resources", {})
            for kind, source in (("requests", "defaultRequest"), ("limits", "default")):
                amounts = resources.get(kind) or {}
                missing = {name: value for name, value in (limit.get(source) or {}).items() if name not in amounts}
                if missing:
                    resources[kind] = {**amounts, **missing}
                    names = ", ".join(sorted(missing))
                    lines.append(f"{names} {kind[:-1]} for {label} {container['name']}")
    if lines:
        metadata = pod["metadata"]
        note = {_ANNOTATION: f"LimitRanger plugin set: {'; '.join(lines)}"}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **note}


def _problems(limit: Json, requests: Amounts, limits: Amounts) -> list[str]:
    kind = limit["type"]
    problems: list[str] = []
    for name, bound in (limit.get("min") or {}).items():
        problems += _too_small(name, kind, bound, requests, limits)
    for name, bound in (limit.get("max") or {}).items():
        problems += _too_large(name, kind, bound, requests, limits)
    for name, bound in (limit.get("maxLimitRequestRatio") or {}).items():
        problems += _too_far(name, kind, bound, requests, limits)
    return problems


def _too_small(name: str, kind: str, bound: str, requests: Amounts, limits: Amounts) -> list[str]:
    least = quantity.exact(bound)
    if name not in requests:
        return [f"minimum {name} usage per {kind} is {bound}.  No request is specified"]
    if quantity.exact(requests[name]) < least:
        return [f"minimum {name} usage per {kind} is {bound}, but request is {requests[name]}"]
    if name in limits and quantity.exact(limits[name]) < least:
        return [f"minimum {name} usage per {kind} is {bound}, but limit is {limits[name]}"]
    return []


def _too_large(name: str, kind: str, bound: str, requests: Amounts, limits: Amounts) -> list[str]:
    most = quantity.exact(bound)
    if name not in limits:
        return [f"maximum {name} usage per {kind} is {bound}.  No limit is specified"]
    if quantity.exact(limits[name]) > most:
        return [f"maximum {name} usage per {kind} is {bound}, but limit is {limits[name]}"]
    if name in requests and quantity.exact(requests[name]) > most:
        return [f"maximum {name} usage per {kind} is {bound}, but request is {requests[name]}"]
    return []


def _too_far(name: str, kind: str, bound: str, requests: Amounts, limits: Amounts) -> list[str]:
    where = f"{name} max limit to request ratio per {kind} is {bound}"
    if not quantity.exact(requests.get(name, "0")):
        return [f"{where}, but no request is specified or request is 0"]
    if not quantity.exact(limits.get(name, "0")):
        return [f"{where}, but no limit is specified or limit is 0"]
    ratio = quantity.exact(limits[name]) / quantity.exact(requests[name])
    return [f"{where}, but provided ratio is {float(ratio):f}"] if ratio > quantity.exact(bound) else []


def _total(spec: Json, kind: str) -> Amounts:
    """The requests of a whole pod: the sum of its containers, or its largest init container."""
    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or ():
        for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
            total[name] = total.get(name, Fraction()) + quantity.exact(amount)
    for container in spec.get("initContainers") or ():
        for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
            total[name] = max(total.get(name, Fraction()), quantity.exact(amount))
    return {name: written(name, amount) for name, amount in total.items()}
