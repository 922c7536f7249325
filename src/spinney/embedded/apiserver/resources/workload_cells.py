"""What `kubectl get` shows of workloads and what belongs to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.ages import age, duration


def deployment(document: Json, now: datetime) -> list[Any]:
    """A Deployment."""
    spec, status = cells.spec(document), cells.status(document)
    return [
        cells.name(document),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        cells.age(document, now),
        *cells.containers(spec),
        cells.selector(spec),
    ]


def replica_set(document: Json, now: datetime) -> list[Any]:
    """A ReplicaSet or ReplicationController."""
    spec, status = cells.spec(document), cells.status(document)
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [cells.name(document), *counts, cells.age(document, now), *cells.containers(spec), cells.selector(spec)]


def stateful_set(document: Json, now: datetime) -> list[Any]:
    """A StatefulSet."""
    spec, status = cells.spec(document), cells.status(document)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [cells.name(document), ready, cells.age(document, now), *cells.containers(spec)]


def daemon_set(document: Json, now: datetime) -> list[Any]:
    """A DaemonSet."""
    spec, status = cells.spec(document), cells.status(document)
    counts = [
        status.get(key, 0)
        for key in (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        )
    ]
    chosen = ((spec.get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    nodes = ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or "<none>"
    return [
        cells.name(document),
        *counts,
        nodes,
        cells.age(document, now),
        *cells.containers(spec),
        cells.selector(spec),
    ]


def job(document: Json, now: datetime) -> list[Any]:
    """A Job."""
    spec, status = cells.spec(document), cells.status(document)
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 1)
    done = status.get("succeeded", 0)
    if completions is not None:
        shown = f"{done}/{completions}"
    else:
        shown = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    took = ""
    if status.get("startTime"):
        end = datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now
        took = duration(int((end - datetime.fromisoformat(status["startTime"])).total_seconds()))
    return [
        cells.name(document),
        _job_status(document),
        shown,
        took,
        cells.age(document, now),
        *cells.containers(spec),
        cells.selector(spec),
    ]


def _job_status(document: Json) -> str:
    conditions = {
        entry.get("type") for entry in cells.status(document).get("conditions") or () if entry.get("status") == "True"
    }
    for kind in ("Complete", "Failed"):
        if kind in conditions:
            return kind
    if document["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in conditions:
            return kind
    return "Running"


def cron_job(document: Json, now: datetime) -> list[Any]:
    """A CronJob."""
    spec, status = cells.spec(document), cells.status(document)
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else "<none>"
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        cells.name(document),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        str(bool(spec.get("suspend"))).capitalize(),
        len(status.get("active") or ()),
        last,
        cells.age(document, now),
        *cells.containers(inner),
        cells.selector(inner),
    ]


def budget(document: Json, now: datetime) -> list[Any]:
    """A PodDisruptionBudget."""
    spec, status = cells.spec(document), cells.status(document)
    least, most = spec.get("minAvailable", "N/A"), spec.get("maxUnavailable", "N/A")
    return [cells.name(document), str(least), str(most), status.get("disruptionsAllowed", 0), cells.age(document, now)]


def autoscaler(document: Json, now: datetime) -> list[Any]:
    """A HorizontalPodAutoscaler."""
    spec, status = cells.spec(document), cells.status(document)
    target = spec.get("scaleTargetRef") or {}
    return [
        cells.name(document),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        cells.age(document, now),
    ]


_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_TARGETS_SHOWN = 2


def _targets(metrics: list[Json], found: list[Json]) -> str:
    """Where the metrics are and where they should be; the first two of them."""
    pairs = zip(metrics, [*found, *({} for _ in metrics)], strict=False)
    shown = ", ".join(_target(metric, current) for metric, current in list(pairs)[:_TARGETS_SHOWN])
    more = len(metrics) - _TARGETS_SHOWN
    return (f"{shown} + {more} more..." if more > 0 else shown) or "<none>"


def _target(metric: Json, found: Json) -> str:
    source = _SOURCES.get(metric.get("type", ""), "")
    if not source:
        return "<unknown type>"
    entry = metric.get(source) or {}
    wanted, current = entry.get("target") or {}, (found.get(source) or {}).get("current") or {}
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


def revision(document: Json, now: datetime) -> list[Any]:
    """A ControllerRevision."""
    owners = document["metadata"].get("ownerReferences") or ()
    owner = next((entry for entry in owners if entry.get("controller")), None)
    told = "<none>"
    if owner:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        told = f"{'.'.join(filter(None, (owner['kind'], group))).lower()}/{owner['name']}"
    return [cells.name(document), told, document.get("revision", 0), cells.age(document, now)]


def pod_template(document: Json, now: datetime) -> list[Any]:
    """A PodTemplate."""
    labels = ((document.get("template") or {}).get("metadata") or {}).get("labels") or {}
    shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"
    return [cells.name(document), *cells.containers(document), shown]
