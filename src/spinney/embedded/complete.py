"""What Kubernetes writes even where nobody said it: counts that are zero, and halves of a pair that mean the same."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json

_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
# Members of a status that are always there.
_STATUS: dict[str, Json] = {
    "apps/statefulsets": {"replicas": 0, "availableReplicas": 0},
    "apps/replicasets": {"replicas": 0},
    "apps/daemonsets": dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    ),
    "policy/poddisruptionbudgets": dict.fromkeys(
        ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0
    ),
    "autoscaling/horizontalpodautoscalers": {"desiredReplicas": 0},
    "/nodes": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": dict.fromkeys(_NODE_INFO, "")},
}
# Members of the object itself that are always there.
_OBJECT: dict[str, Json] = {
    "/events": {"source": {}, "reportingComponent": "", "reportingInstance": ""},
    "events.k8s.io/events": {"deprecatedSource": {}},
}
_CONTAINER_STATUS: Json = {"ready": False, "restartCount": 0, "image": "", "imageID": "", "lastState": {}}
_POD_CONDITION: Json = {"lastProbeTime": None}
_TABLES = frozenset({*_STATUS, *_OBJECT, "/pods"})


def complete(table: str, document: Json) -> Json:
    """The object with these members; what is nested is shared with the one given and never changed."""
    if table not in _TABLES:
        return document
    if table == "/pods":
        return _pod(document)
    if table in _OBJECT:
        return {**document, **{key: value for key, value in _OBJECT[table].items() if key not in document}}
    status = document.get("status") or {}
    if table == "/nodes":
        document, status = _node(document, status)
    missing = {key: value for key, value in _STATUS[table].items() if key not in status}
    return (
        {**document, "status": {**missing, **status}} if missing or status is not document.get("status") else document
    )


def _pod(document: Json) -> Json:
    status = document.get("status")
    if not status:
        return document
    changes: Json = {}
    if status.get("podIP") and not status.get("podIPs"):
        changes["podIPs"] = [{"ip": status["podIP"]}]
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        found = status.get(key)
        if found and any(not _CONTAINER_STATUS.keys() <= each.keys() for each in found):
            changes[key] = [_filled(each, _CONTAINER_STATUS) for each in found]
    conditions = status.get("conditions") or ()
    if any("lastProbeTime" not in each for each in conditions):
        changes["conditions"] = [_filled(each, _POD_CONDITION) for each in conditions]
    return {**document, "status": {**status, **changes}} if changes else document


def _node(document: Json, status: Json) -> tuple[Json, Json]:
    spec: Any = document.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        document = {**document, "spec": {**spec, "podCIDRs": [spec["podCIDR"]]}}
    if status.get("capacity") and not status.get("allocatable"):
        status = {**status, "allocatable": dict(status["capacity"])}
    return document, status


def _filled(given: Json, members: Json) -> Json:
    return {**given, **{key: value for key, value in members.items() if key not in given}}
