"""Pods."""

from __future__ import annotations

import operator
from datetime import datetime, timedelta

from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources import pod_admission, pod_cells, pod_defaults, pod_quota, pod_subresources
from spinney.embedded.apiserver.resources.complete import with_members, with_times
from spinney.embedded.apiserver.resources.deletion_marks import mark_deleted
from spinney.embedded.apiserver.resources.quota import Quota
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation import pod_specs, pod_updates
from spinney.embedded.apiserver.resources.validation.pod_subresources import check_ephemeral, check_resize

# Seconds.
_LONGEST_GRACE = 2**31 - 1


def begin(core: Core, pod: Json, finalizers: list[str], options: Json) -> bool:
    """Set the time by which a pod has to stop. A time that was set before can only become earlier."""
    metadata = pod["metadata"]
    grace = _grace(pod, options)
    if not metadata.get("deletionTimestamp"):
        mark_deleted(core, metadata, grace or 0)
    else:
        pending = metadata.get("deletionGracePeriodSeconds")
        if pending and grace is not None and grace < pending:
            _shorten(core, metadata, pending, grace)
    return bool(finalizers) or bool(metadata.get("deletionGracePeriodSeconds"))


def _grace(pod: Json, options: Json) -> int | None:
    """How long a pod may take to stop."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    requested = options.get("gracePeriodSeconds")
    if pod["metadata"].get("deletionTimestamp"):
        return None if requested is None else _bounded(int(requested))
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    period = int(requested) if requested is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    return _bounded(period)


def _bounded(seconds: int) -> int:
    """A negative period means 1, as in Kubernetes; the end of a longer one than 68 years may be no date."""
    return 1 if seconds < 0 else min(seconds, _LONGEST_GRACE)


def _shorten(core: Core, metadata: Json, pending: int, grace: int) -> None:
    due = datetime.fromisoformat(metadata["deletionTimestamp"]) + timedelta(seconds=grace - pending)
    now = core.clock.now()
    if due < now:
        due = now
        grace = 1 if grace else 0
    metadata["deletionTimestamp"] = rfc3339(due)
    metadata["deletionGracePeriodSeconds"] = grace


_CONTAINER_STATUS: Json = {"ready": False, "restartCount": 0, "image": "", "imageID": "", "state": {}, "lastState": {}}


_STATES: dict[str, Json] = {
    "running": {"startedAt": None},
    "terminated": {"exitCode": 0, "startedAt": None, "finishedAt": None},
}


_NONE: Json = {}


def _complete(document: Json) -> Json:
    status = document.get("status")
    if not status:
        return document
    changes: Json = {}
    if status.get("conditions"):
        timed = with_times(status, ("lastProbeTime", "lastTransitionTime"))
        if timed is not status:
            changes["conditions"] = timed["conditions"]
    if status.get("podIP") and not status.get("podIPs"):
        changes["podIPs"] = [{"ip": status["podIP"]}]
    elif status.get("podIPs") and not status.get("podIP"):
        changes["podIP"] = status["podIPs"][0].get("ip", "")
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        statuses = status.get(key)
        if statuses:
            filled = [_complete_container(entry) for entry in statuses]
            if not all(map(operator.is_, filled, statuses)):
                changes[key] = filled
    return {**document, "status": {**status, **changes}} if changes else document


def _complete_container(status: Json) -> Json:
    """Add the required members of a container status and of its states."""
    if not _CONTAINER_STATUS.keys() <= status.keys():
        status = with_members(status, _CONTAINER_STATUS)
    for key in ("state", "lastState"):
        for name, state in (status.get(key) or {}).items():
            members = _STATES.get(name, _NONE)
            if state is not None and not members.keys() <= state.keys():
                status = {**status, key: {name: with_members(state, members)}}
    return status


def _prepare_update(core: Core, call: Call, new: Json, old: Json) -> None:
    if new.get("spec") is not old.get("spec"):
        new["spec"] = pod_admission.readmitted(new.get("spec") or {}, old["spec"])


def _prepare_status(core: Core, new: Json, old: Json) -> None:
    new["status"] = pod_admission.kept_status(new.get("status") or {}, old.get("status") or {})


def _add_ephemeral_containers(new: Json, old: Json) -> Json:
    return _with_part("ephemeralcontainers", new, old)


def _resize(new: Json, old: Json) -> Json:
    return _with_part("resize", new, old)


def _with_part(part: str, new: Json, old: Json) -> Json:
    spec = pod_admission.with_part(part, new.get("spec") or {}, old["spec"])
    # The version that a writer has seen is a condition of the write.
    version = new["metadata"].get("resourceVersion")
    seen = {"resourceVersion": version} if version else {}
    return {**old, "spec": spec, "metadata": {**old["metadata"], **seen}}


PODS = Resource(
    kind="Pod",
    plural="pods",
    short_names=("po",),
    categories=("all",),
    subresources=(
        *("attach", "binding", "ephemeralcontainers", "eviction", "exec"),
        *("log", "portforward", "proxy", "resize", "status"),
    ),
    handlers={
        "binding": pod_subresources.bind,
        "eviction": pod_subresources.evict,
        "log": pod_subresources.log,
        **dict.fromkeys(("attach", "exec", "portforward", "proxy"), pod_subresources.connect),
    },
    default=pod_defaults.pod,
    complete=_complete,
    prepare_create=pod_admission.admit,
    admit_create=pod_admission.start,
    after_webhooks=pod_admission.reset_status,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    prepare_subresources={"ephemeralcontainers": _add_ephemeral_containers, "resize": _resize},
    status_keeps=("ownerReferences",),
    has_generation=True,
    deletion=Deletion(begin=begin, returns_object=True),
    quota=Quota(usage=pod_quota.usage, covers=pod_quota.covers, missing=pod_quota.missing),
    checks=Checks(
        object=pod_specs.check,
        create=pod_specs.check_create,
        update=pod_updates.check_update,
        subresources={
            "ephemeralcontainers": check_ephemeral,
            "resize": check_resize,
            "status": pod_updates.check_status,
        },
    ),
    table=Table(
        "Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates",
        pod_cells.pod_cells,
        pod_cells.row_conditions,
    ),
    selectable=(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
)
