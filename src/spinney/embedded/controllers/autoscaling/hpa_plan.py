"""How many replicas an autoscaler wants, by metrics, stabilization windows and scaling policies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.pod_state import is_ready
from spinney.api.quantity import exact

TOLERANCE = 0.1
_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Percent", "value": 100, "periodSeconds": 15},
        {"type": "Pods", "value": 4, "periodSeconds": 15},
    ],
}
_DOWN: Json = {
    "stabilizationWindowSeconds": 300,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class NoMetric(Exception):
    """A metric is not available; the reason is that of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Proposal:
    """The replicas that one metric asks for, and its current value."""

    replicas: int
    current: Json


def propose(metric: Json, pods: Sequence[Pod], used: dict[str, dict[str, Fraction]], replicas: int) -> Proposal:
    """The replicas that a resource metric asks for; `used` is pod → container → amount of that resource."""
    kind = metric["type"]
    if kind not in ("Resource", "ContainerResource"):
        reason = {"Pods": "FailedGetPodsMetric", "Object": "FailedGetObjectMetric"}.get(kind, "FailedGetExternalMetric")
        raise NoMetric(reason, f"unable to get {kind} metrics: this cluster serves resource metrics only")
    source = metric["resource" if kind == "Resource" else "containerResource"]
    resource, container = source["name"], source.get("container", "")
    ready = [pod for pod in pods if is_ready(pod) and pod.name in used]
    if not ready:
        reason = "FailedGetResourceMetric"
        raise NoMetric(reason, f"unable to get metric {resource}: no metrics known for pods that are ready")
    total = sum((_amount(used[pod.name], container) for pod in ready), Fraction(0))
    average = total / len(ready)
    current: Json = {"averageValue": _value(resource, average)}
    target = source["target"]
    if target["type"] == "Utilization":
        requested = sum((_request(pod, resource, container) for pod in ready), Fraction(0))
        if not requested:
            raise NoMetric("FailedGetResourceMetric", f"missing request for {resource}")
        percent = total * 100 / requested
        current["averageUtilization"] = int(percent)
        ratio = percent / target["averageUtilization"]
    else:
        ratio = average / exact(target["averageValue"])
    wanted = replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(ratio * len(ready))
    # Pods that are not ready yet count as idle when growing: no overshoot while they start.
    if wanted > replicas and len(pods) > len(ready):
        spread = ratio * len(ready) / len(pods)
        wanted = replicas if spread <= 1 + TOLERANCE else max(replicas, math.ceil(spread * len(pods)))
    name = "resource" if kind == "Resource" else "containerResource"
    shown = {"name": resource, "current": current, **({"container": container} if container else {})}
    return Proposal(wanted, {"type": kind, name: shown})


def _amount(containers: dict[str, Fraction], container: str) -> Fraction:
    return containers.get(container, Fraction(0)) if container else sum(containers.values(), Fraction(0))


def _request(pod: Pod, resource: str, container: str) -> Fraction:
    return sum(
        (
            exact(spec.resources.requests.get(resource, "0"))
            for spec in pod.spec.containers
            if container in ("", spec.name)
        ),
        Fraction(0),
    )


def _value(resource: str, amount: Fraction) -> str:
    return f"{int(amount * 1000)}m" if resource == "cpu" else str(int(amount))


@dataclass(frozen=True)
class Event:
    """A past recommendation, or a past change of scale."""

    at: float
    replicas: int


def stabilized(wanted: int, current: int, past: Sequence[Event], behavior: Json, now: float) -> int:
    """The recommendation that holds over the whole stabilization window."""
    up = _rules(behavior, "scaleUp", _UP)["stabilizationWindowSeconds"]
    down = _rules(behavior, "scaleDown", _DOWN)["stabilizationWindowSeconds"]
    lowest = min([wanted, *(event.replicas for event in past if event.at > now - up)])
    highest = max([wanted, *(event.replicas for event in past if event.at > now - down)])
    return max(current, lowest) if lowest > current else min(current, highest)


def limited(wanted: int, current: int, steps: Sequence[Event], behavior: Json, now: float) -> int:
    """The nearest size that the policies allow now; `steps` are past changes, signed."""
    if wanted > current:
        rules = _rules(behavior, "scaleUp", _UP)
        return min(wanted, _bound(rules, current, [e for e in steps if e.replicas > 0], now, growing=True))
    if wanted < current:
        rules = _rules(behavior, "scaleDown", _DOWN)
        return max(wanted, _bound(rules, current, [e for e in steps if e.replicas < 0], now, growing=False))
    return wanted


def _bound(rules: Json, current: int, steps: Sequence[Event], now: float, *, growing: bool) -> int:
    if rules["selectPolicy"] == "Disabled":
        return current
    bounds: list[int] = []
    for policy in rules["policies"]:
        recent = sum(event.replicas for event in steps if event.at > now - policy["periodSeconds"])
        start = current - recent
        change = policy["value"] if policy["type"] == "Pods" else math.ceil(start * policy["value"] / 100)
        if not growing and policy["type"] != "Pods":
            change = start - math.ceil(start * (100 - policy["value"]) / 100)
        bounds.append(start + change if growing else start - change)
    widest = rules["selectPolicy"] == "Max"
    return max(bounds) if growing == widest else min(bounds)


def _rules(behavior: Json, way: str, default: Json) -> dict[str, Any]:
    set_rules = {key: value for key, value in (behavior.get(way) or {}).items() if value is not None}
    return {**default, **set_rules}
