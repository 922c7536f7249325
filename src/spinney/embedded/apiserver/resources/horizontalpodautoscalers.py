"""HorizontalPodAutoscalers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, OtherVersion, Resource, Table

_SOURCES = ("ContainerResource", "External", "Object", "Pods", "Resource")
# Members in the order of the checks.
_MEMBERS = {
    "object": "Object",
    "external": "External",
    "pods": "Pods",
    "resource": "Resource",
    "containerResource": "ContainerResource",
}
_TARGETS = ("Utilization", "Value", "AverageValue")
_LONGEST_WINDOW, _LONGEST_PERIOD = 3600, 1800
_SHOWN_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_TARGETS_SHOWN = 2


def check(document: Json) -> list[FieldError]:
    """An autoscaler."""
    if document.get("apiVersion") == "autoscaling/v1":
        document = _from_v1(document)
    spec = document.get("spec") or {}
    errors: list[FieldError] = []
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    errors += _reference(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    metrics = spec.get("metrics") or ()
    for at, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{at}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden_field("spec.metrics", detail))
    for side in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(side)
        if rules is not None:
            errors += _rules(rules, f"spec.behavior.{side}")
    return errors


def _reference(target: Json, path: str, *, grouped: bool = True) -> list[FieldError]:
    """Check a reference to an object."""
    errors: list[FieldError] = []
    for key in ("kind", "name"):
        value = target.get(key)
        if not value:
            errors.append(required(f"{path}.{key}"))
        else:
            errors += [invalid(f"{path}.{key}", value, why) for why in naming.path_problems(value)]
    version = target.get("apiVersion") or ""
    if version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    elif grouped and "/" not in version and version != "v1":
        errors.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return errors


def _metric(metric: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = metric.get("type", "")
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    unknown = unsupported(f"{path}.type", kind, _SOURCES)
    if kind not in _SOURCES:
        errors.append(unknown)
    given = [member for member in _MEMBERS if metric.get(member) is not None]
    for member in given[:1]:
        errors += _source(member, metric[member], f"{path}.{member}")
    wanted = next((member for member, name in _MEMBERS.items() if name == kind), "")
    if not wanted:
        errors.append(unknown)
    elif wanted not in given:
        errors.append(required(f"{path}.{wanted}", "must populate information for the given metric source"))
    if len(given) != 1:
        detail = "must populate the given metric source only"
        errors += [forbidden_field(f"{path}.{member}", detail) for member in given if member != wanted]
    return errors


def _source(member: str, source: Json, path: str) -> list[FieldError]:
    target, where = source.get("target") or {}, f"{path}.target"
    errors: list[FieldError] = []
    if member == "object":
        errors += _reference(source.get("describedObject") or {}, f"{path}.describedObject", grouped=False)
    if member in ("object", "external", "pods"):
        errors += _identifier(source.get("metric") or {}, f"{path}.metric")
    elif not source.get("name"):
        errors.append(required(f"{path}.name", "must specify a resource name"))
    if member == "containerResource":
        container = source.get("container", "")
        if not container:
            errors.append(required(f"{path}.container", "must specify a container"))
        else:
            problems = naming.label_problems(container)
            errors += [invalid(f"{path}.container", container, problem) for problem in problems]
    errors += _target(target, where)
    value, average, share = (target.get(key) for key in ("value", "averageValue", "averageUtilization"))
    if member == "object" and value is None and average is None:
        errors.append(required(f"{where}.averageValue", "must set either a target value or averageValue"))
    if member == "pods" and average is None:
        errors.append(required(f"{where}.averageValue", "must specify a positive target averageValue"))
    if member == "external":
        if value is None and average is None:
            detail = "must set either a target value for metric or a per-pod target"
            errors.append(required(f"{where}.averageValue", detail))
        if value is not None and average is not None:
            detail = "may not set both a target value for metric and a per-pod target"
            errors.append(forbidden_field(f"{where}.value", detail))
    if member in ("resource", "containerResource"):
        if share is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            errors.append(required(f"{where}.averageUtilization", detail))
        if share is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            errors.append(forbidden_field(f"{where}.averageValue", detail))
    return errors


def _identifier(metric: Json, path: str) -> list[FieldError]:
    name = metric.get("name", "")
    errors = [invalid(f"{path}.name", name, why) for why in naming.path_problems(name)]
    if not name:
        errors.append(required(f"{path}.name", "must specify a metric name"))
    return errors


def _target(target: Json, path: str) -> list[FieldError]:
    kind = target.get("type", "")
    errors = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in _TARGETS:
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for key in ("value", "averageValue"):
        if target.get(key) is not None and quantity.exact(target[key]) <= 0:
            errors.append(invalid(f"{path}.{key}", target[key], "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors


def _rules(rules: Json, path: str) -> list[FieldError]:
    """Check the scaling rules of one direction."""
    errors: list[FieldError] = []
    window, chosen, policies = (rules.get(key) for key in ("stabilizationWindowSeconds", "selectPolicy", "policies"))
    if window is not None and window < 0:
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW:
        detail = f"must be less than or equal to {_LONGEST_WINDOW}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if chosen is not None and chosen not in ("Disabled", "Max", "Min"):
        errors.append(unsupported(f"{path}.selectPolicy", chosen, ("Disabled", "Max", "Min")))
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for at, policy in enumerate(policies or ()):
        where, period = f"{path}.policies[{at}]", policy.get("periodSeconds", 0)
        if policy.get("type") not in ("Pods", "Percent"):
            errors.append(unsupported(f"{where}.type", policy.get("type", ""), ("Percent", "Pods")))
        if policy.get("value", 0) <= 0:
            errors.append(invalid(f"{where}.value", policy.get("value", 0), "must be greater than zero"))
        if period <= 0:
            errors.append(invalid(f"{where}.periodSeconds", period, "must be greater than zero"))
        if period > _LONGEST_PERIOD:
            detail = f"must be less than or equal to {_LONGEST_PERIOD}"
            errors.append(invalid(f"{where}.periodSeconds", period, detail))
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.exact(tolerance) < 0:
        errors.append(invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0"))
    return errors


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
    source = _SHOWN_SOURCES.get(metric.get("type", ""), "")
    if not source:
        return "<unknown type>"
    entry = metric.get(source) or {}
    wanted, current = entry.get("target") or {}, (current_metric.get(source) or {}).get("current") or {}
    if source in ("resource", "containerResource"):
        if "averageValue" in wanted:
            return f"{entry.get('name')}: {current.get('averageValue', '<unknown>')}/{wanted['averageValue']}"
        now_at = f"{current['averageUtilization']}%" if "averageUtilization" in current else "<unknown>"
        aim = f"{wanted['averageUtilization']}%" if "averageUtilization" in wanted else "<auto>"
        return f"{entry.get('name')}: {now_at}/{aim}"
    if "averageValue" in wanted:
        note = "" if source == "pods" else " (avg)"
        return f"{current.get('averageValue', '<unknown>')}/{wanted['averageValue']}{note}"
    return f"{current.get('value', '<unknown>')}/{wanted.get('value', '0')}"


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
    checks=Checks(object=check),
    table=Table("Name,Reference,Targets,MinPods,MaxPods,Replicas,Age", _cells),
)
