"""Built-in kinds that are served at two versions with different members: events, and autoscalers as `v1` has them."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.record import OtherVersion
from spinney.embedded.apiserver.resources.selectable_fields import FIELDS

_EVENT_MEMBERS = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OPTIONAL_MEMBERS = ("reportingComponent", "reportingInstance")
_KEPT_EVENT_MEMBERS = {new: old for old, new in _EVENT_MEMBERS.items()}


def _event_shown(document: Json) -> Json:
    return {
        _EVENT_MEMBERS.get(key, key): value for key, value in document.items() if value or key not in _OPTIONAL_MEMBERS
    }


def event_kept(document: Json) -> Json:
    """An event of `events.k8s.io` as the core group writes it."""
    return {_KEPT_EVENT_MEMBERS.get(key, key): value for key, value in document.items()}


def _is_cpu_target(metric: Json) -> bool:
    resource = metric.get("resource") or {}
    return resource.get("name") == "cpu" and "averageUtilization" in (resource.get("target") or {})


def _autoscaler_shown(document: Json) -> Json:
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


def autoscaler_kept(document: Json) -> Json:
    spec = dict(document.get("spec") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status = dict(document.get("status") or {})
    status.pop("currentCPUUtilizationPercentage", None)
    return {**document, "spec": spec, "status": status}


EVENTS = OtherVersion(
    group="events.k8s.io",
    version="v1",
    from_stored=_event_shown,
    to_stored=event_kept,
    selectable={
        "reportingController": "reportingComponent",
        **{f"regarding.{name.partition('.')[2]}": name for name in FIELDS["/events"] if "." in name},
        **{name: name for name in ("reason", "source", "type")},
    },
)
AUTOSCALERS = OtherVersion(group="autoscaling", version="v1", from_stored=_autoscaler_shown, to_stored=autoscaler_kept)
