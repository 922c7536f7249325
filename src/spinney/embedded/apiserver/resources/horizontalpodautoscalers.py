"""HorizontalPodAutoscalers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, OtherVersion, Resource, Table

_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_TARGETS = {"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}
_TARGETS_SHOWN = 2


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    least, most, target = spec.get("minReplicas", 1), spec.get("maxReplicas", 0), spec.get("scaleTargetRef") or {}
    errors: list[FieldError] = []
    if least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    errors += [required(f"spec.scaleTargetRef.{key}") for key in ("kind", "name") if not target.get(key)]
    for at, metric in enumerate(spec.get("metrics") or ()):
        errors += _metric(metric, f"spec.metrics[{at}]")
    for side, rules in (spec.get("behavior") or {}).items():
        for at, policy in enumerate(rules.get("policies") or ()):
            where = f"spec.behavior.{side}.policies[{at}]"
            errors += one_of(f"{where}.type", policy.get("type", ""), ("Percent", "Pods"))
            for key in ("value", "periodSeconds"):
                if policy.get(key, 0) <= 0:
                    errors.append(invalid(f"{where}.{key}", policy.get(key, 0), "must be greater than zero"))
    return errors


def _metric(metric: Json, path: str) -> list[FieldError]:
    """Check that a metric has its source, with a target above zero."""
    kind = metric.get("type", "")
    if kind not in _SOURCES:
        return [unsupported(f"{path}.type", kind, sorted(_SOURCES))]
    where = f"{path}.{_SOURCES[kind]}"
    source = metric.get(_SOURCES[kind])
    if source is None:
        return [required(where, "must populate information for the given metric source")]
    target = source.get("target") or {}
    value = _TARGETS.get(target.get("type", ""))
    if value is None:
        detail = "must be either Utilization, Value, or AverageValue"
        return [invalid(f"{where}.target.type", target.get("type", ""), detail)]
    if quantity.exact(target.get(value) or 0) <= 0:
        return [required(f"{where}.target.{value}", "must be positive")]
    if kind in ("Resource", "ContainerResource") and not source.get("name"):
        return [required(f"{where}.name", "must specify a resource name")]
    return []


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if document.get("apiVersion") == "autoscaling/v1":
        spec.setdefault("targetCPUUtilizationPercentage", 80)
    if document.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if spec.get("behavior") is not None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up, down = spec["behavior"].setdefault("scaleUp", {}), spec["behavior"].setdefault("scaleDown", {})
        fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        fill(up, policies=[{"type": "Pods", "value": 4, "periodSeconds": 15}, percent])
        fill(down, selectPolicy="Max", policies=[percent])


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    target = spec.get("scaleTargetRef") or {}
    return [
        cells.name(document),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _shown_targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        cells.age(document, now),
    ]


def _shown_targets(metrics: list[Json], current_metrics: list[Json]) -> str:
    """Current values and targets of the first two metrics."""
    pairs = zip(metrics, [*current_metrics, *({} for _ in metrics)], strict=False)
    shown = ", ".join(_shown_target(metric, current) for metric, current in list(pairs)[:_TARGETS_SHOWN])
    more = len(metrics) - _TARGETS_SHOWN
    return (f"{shown} + {more} more..." if more > 0 else shown) or "<none>"


def _shown_target(metric: Json, current_metric: Json) -> str:
    source = _SOURCES[metric.get("type", "")]
    entry, current = metric.get(source) or {}, (current_metric.get(source) or {}).get("current") or {}
    name = entry.get("name") or (entry.get("metric") or {}).get("name", "")
    target = entry.get("target") or {}
    key, sign = _TARGETS[target.get("type", "")], "%" if target.get("type") == "Utilization" else ""
    value = f"{current[key]}{sign}" if key in current else "<unknown>"
    return f"{name}: {value}/{target.get(key)}{sign}"


def _is_cpu_target(metric: Json) -> bool:
    resource = metric.get("resource") or {}
    return resource.get("name") == "cpu" and "averageUtilization" in (resource.get("target") or {})


def _to_v1(document: Json) -> Json:
    spec = dict(document.get("spec") or {})
    cpu = next((metric for metric in spec.pop("metrics", None) or () if _is_cpu_target(metric)), None)
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    spec.pop("behavior", None)
    status = dict(document.get("status") or {})
    current = next((item for item in status.pop("currentMetrics", None) or () if _is_cpu_current(item)), None)
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current["resource"]["current"]["averageUtilization"]
    status.pop("conditions", None)
    return {**document, "spec": spec, "status": {"currentReplicas": 0, **status}}


def _is_cpu_current(metric: Json) -> bool:
    resource = metric.get("resource") or {}
    return resource.get("name") == "cpu" and "averageUtilization" in (resource.get("current") or {})


def _from_v1(document: Json) -> Json:
    spec = dict(document.get("spec") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status = dict(document.get("status") or {})
    status.pop("currentCPUUtilizationPercentage", None)
    return {**document, "spec": spec, "status": status}


HORIZONTAL_POD_AUTOSCALERS = Resource(
    group="autoscaling",
    version="v2",
    kind="HorizontalPodAutoscaler",
    plural="horizontalpodautoscalers",
    short_names=("hpa",),
    categories=("all",),
    subresources=("status",),
    other_versions=(OtherVersion(group="autoscaling", version="v1", from_stored=_to_v1, to_stored=_from_v1),),
    default=_default,
    complete=complete.status_members({"desiredReplicas": 0, "currentMetrics": None}, times=("lastTransitionTime",)),
    checks=Checks(object=_check),
    table=Table("Name,Reference,Targets,MinPods,MaxPods,Replicas,Age", _cells),
)
