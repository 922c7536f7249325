"""What Kubernetes writes even where nobody said it: counts that are zero, and halves of a pair that mean the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
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
    "networking.k8s.io/ingresses": {"loadBalancer": {}},
    "storage.k8s.io/volumeattachments": {"attached": False},
    "/nodes": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": dict.fromkeys(_NODE_INFO, "")},
}
# Members of the object itself that are always there.
_OBJECT: dict[str, Json] = {
    "/events": {
        "source": {},
        "reportingComponent": "",
        "reportingInstance": "",
        **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime")),
    },
    "discovery.k8s.io/endpointslices": {"endpoints": None, "ports": None},
    "rbac.authorization.k8s.io/roles": {"rules": None},
    "rbac.authorization.k8s.io/clusterroles": {"rules": None},
}
# Members of the spec that are always there.
_SPEC: dict[str, Json] = {"/limitranges": {"limits": None}, "storage.k8s.io/csinodes": {"drivers": None}}
# Times of a condition, which Go writes as null where they were never set.
_TIMES: dict[str, tuple[str, ...]] = {
    "/pods": ("lastProbeTime", "lastTransitionTime"),
    "/nodes": ("lastHeartbeatTime", "lastTransitionTime"),
    "/persistentvolumeclaims": ("lastProbeTime", "lastTransitionTime"),
}
_CLAIMS = "/persistentvolumeclaims"
_CONTAINER_STATUS: Json = {"ready": False, "restartCount": 0, "image": "", "imageID": "", "state": {}, "lastState": {}}
_STATES: dict[str, Json] = {
    "running": {"startedAt": None},
    "terminated": {"exitCode": 0, "startedAt": None, "finishedAt": None},
}
_NONE: Json = {}
_TABLES = frozenset({*_STATUS, *_OBJECT, *_SPEC, *_TIMES})


def status_members(members: Json | None = None, times: tuple[str, ...] = ()) -> Callable[[Json], Json]:
    """Complete a status by members that are always there, and its conditions by times that may never have been set."""
    always = members or {}

    def complete(document: Json) -> Json:
        status = document.get("status") or {}
        if times and status.get("conditions"):
            status = with_times(status, times)
        missing = {key: value for key, value in always.items() if key not in status}
        if not missing and status is document.get("status"):
            return document
        return {**document, "status": {**missing, **status}}

    return complete


def object_members(*names: str, **members: Any) -> Callable[[Json], Json]:
    """Complete an object by members that are always there, null where only their name is given."""
    always = {**members, **dict.fromkeys(names)}

    def complete(document: Json) -> Json:
        return {**document, **{key: value for key, value in always.items() if document.get(key, []) == []}}

    return complete


def spec_member(name: str) -> Callable[[Json], Json]:
    """Complete a spec by a member that is null where it is empty."""

    def complete(document: Json) -> Json:
        spec = document.get("spec") or {}
        return {**document, "spec": {**spec, name: None}} if spec.get(name, []) == [] else document

    return complete


def complete(table: str, document: Json) -> Json:
    """The object with these members; what is nested is shared with the one given and never changed."""
    if table not in _TABLES:
        return document
    if table == "/pods":
        return _pod(document)
    if table == _CLAIMS:
        document = _claim(document)
    if table in _SPEC:
        spec = document.get("spec") or {}
        missing = {key: value for key, value in _SPEC[table].items() if spec.get(key, []) == []}
        return {**document, "spec": {**spec, **missing}}
    if table in _OBJECT:
        return {**document, **{key: value for key, value in _OBJECT[table].items() if document.get(key, []) == []}}
    status = document.get("status") or {}
    if table == "/nodes":
        document, status = _node(document, status)
    if status.get("conditions"):
        status = with_times(status, _TIMES.get(table, ()))
    missing = {key: value for key, value in _STATUS.get(table, {}).items() if key not in status}
    return (
        {**document, "status": {**missing, **status}} if missing or status is not document.get("status") else document
    )


def _claim(document: Json) -> Json:
    """A claim's source says its group, even if it has none."""
    spec: Json = document.get("spec") or {}
    bare = [key for key in ("dataSource", "dataSourceRef") if spec.get(key) is not None and "apiGroup" not in spec[key]]
    if not bare:
        return document
    return {**document, "spec": {**spec, **{key: {"apiGroup": None, **spec[key]} for key in bare}}}


def with_times(status: Json, times: tuple[str, ...]) -> Json:
    """The status with these times in all of its conditions."""
    conditions, members = status["conditions"], dict.fromkeys(times)
    filled = [each if each.keys() >= members.keys() else _filled(each, members) for each in conditions]
    return status if all(map(operator.is_, filled, conditions)) else {**status, "conditions": filled}


def _pod(document: Json) -> Json:
    status = document.get("status")
    if not status:
        return document
    changes: Json = {}
    if status.get("conditions"):
        timed = with_times(status, _TIMES["/pods"])
        if timed is not status:
            changes["conditions"] = timed["conditions"]
    if status.get("podIP") and not status.get("podIPs"):
        changes["podIPs"] = [{"ip": status["podIP"]}]
    elif status.get("podIPs") and not status.get("podIP"):
        changes["podIP"] = status["podIPs"][0].get("ip", "")
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        found = status.get(key)
        if found:
            filled = [_container(each) for each in found]
            if not all(map(operator.is_, filled, found)):
                changes[key] = filled
    return {**document, "status": {**status, **changes}} if changes else document


def _container(status: Json) -> Json:
    """A container's status with its required members, and those of its states."""
    if not _CONTAINER_STATUS.keys() <= status.keys():
        status = _filled(status, _CONTAINER_STATUS)
    for key in ("state", "lastState"):
        for name, found in (status.get(key) or {}).items():
            members = _STATES.get(name, _NONE)
            if found is not None and not members.keys() <= found.keys():
                status = {**status, key: {name: _filled(found, members)}}
    return status


def _node(document: Json, status: Json) -> tuple[Json, Json]:
    spec: Any = document.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        document = {**document, "spec": {**spec, "podCIDRs": [spec["podCIDR"]]}}
    if status.get("capacity") and not status.get("allocatable"):
        status = {**status, "allocatable": dict(status["capacity"])}
    return document, status


def _filled(given: Json, members: Json) -> Json:
    """What is given, and after it the members that are missing."""
    return {**given, **members, **given}
