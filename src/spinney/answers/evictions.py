"""The list of evictions, from the events that schedulers write: who, for whom, by which right, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from spinney.answers.cluster import Cluster, moment_of
from spinney.answers.model import Eviction, Listing, WorkloadRef
from spinney.answers.ownership import ref_of
from spinney.api import labels, reasons
from spinney.api.core import Event
from spinney.api.kai import PodGroup
from spinney.api.numbers import whole_number
from spinney.api.times import rfc3339

# GPUs of one pod: a larger amount in an event is not genuine.
_MOST_GPUS = 1e6
# How schedulers name their actions → the right that they evict by.
_RIGHTS = {"consolidation": "consolidate", "stalegangeviction": "stale-gang"}


def evictions(cluster: Cluster, namespace: str = "") -> Listing[Eviction]:
    """Every eviction of which there is still an event, the latest first."""
    events = [event for event in cluster.events if event.reason == reasons.EVICT]
    if namespace:
        events = [event for event in events if event.involved_object.namespace == namespace]
    by_pod = [event for event in events if event.involved_object.kind == "Pod"]
    # KAI's own scheduler writes events about PodGroups only.
    recorded = {event.message for event in by_pod}
    of_groups = [
        event for event in events if event.involved_object.kind == "PodGroup" and event.message not in recorded
    ]
    items = [_eviction(cluster, event) for event in sorted((*by_pod, *of_groups), key=moment_of, reverse=True)]
    return Listing(at=rfc3339(cluster.now), items=items, partial=cluster.partial)


def right_of(action: str) -> str:
    """The right that an action of a scheduler evicts by."""
    return _RIGHTS.get(action, action) or "other"


def _eviction(cluster: Cluster, event: Event) -> Eviction:
    notes = event.metadata.annotations
    subject = event.involved_object
    at = event.last_timestamp or event.event_time or event.metadata.creation_timestamp or cluster.now
    action = notes.get(labels.EVICTOR_ACTION, "")
    group = cluster.group_of.get((subject.namespace, subject.name)) if subject.kind == "PodGroup" else None
    evictor = cluster.group_of.get((notes.get(labels.EVICTOR_NAMESPACE, ""), notes.get(labels.EVICTOR_NAME, "")))
    gpus = _gpus(notes.get(labels.EVICTED_GPUS, ""))
    by_workload = _ref(notes.get(labels.EVICTOR_WORKLOAD, "")) or _named_group(notes)
    by_queue = notes.get(labels.EVICTOR_QUEUE) or (evictor.spec.queue if evictor is not None else None)
    text = event.message
    if _is_hidden(cluster, notes.get(labels.EVICTOR_NAMESPACE, "")):
        by_workload, text = None, _without_name(text, notes, by_queue or "")
    return Eviction(
        at=rfc3339(at),
        pod=f"{subject.namespace}/{_pod_name(event)}",
        workload=_ref(notes.get(labels.EVICTED_WORKLOAD, "")) or _group_ref(group),
        queue=notes.get(labels.EVICTED_QUEUE, "") or (group.spec.queue if group is not None else ""),
        by_workload=by_workload,
        by_queue=by_queue,
        right=right_of(action),
        text=text,
        gpus=gpus,
        alternatives=whole_number(notes.get(labels.EVICTED_OTHERS, "")),
        gpu_hours_lost=_lost(notes.get(labels.EVICTED_STARTED, ""), at, gpus),
    )


def _is_hidden(cluster: Cluster, namespace: str) -> bool:
    """True if the user may read one namespace only, and it is not this one: names in others must not be shown."""
    return bool(cluster.namespace and namespace and namespace != cluster.namespace)


def _without_name(text: str, notes: Mapping[str, str], queue: str) -> str:
    name = f"{notes[labels.EVICTOR_NAMESPACE]}/{notes.get(labels.EVICTOR_NAME, '')}"
    return text.replace(name, f"a gang of queue {queue}" if queue else "a gang of another namespace")


def _pod_name(event: Event) -> str:
    """The pod of an eviction: the subject, else the one that the message begins with."""
    if event.involved_object.kind == "Pod":
        return event.involved_object.name
    words = event.message.split()
    return words[1] if len(words) > 1 and words[0] == "Pod" else event.involved_object.name


def _ref(text: str) -> WorkloadRef | None:
    """A workload from `apiVersion Kind namespace/name`."""
    version, _, rest = text.partition(" ")
    kind, _, key = rest.partition(" ")
    namespace, _, name = key.partition("/")
    return WorkloadRef(kind=kind, api_version=version, namespace=namespace, name=name) if name else None


def _named_group(notes: Mapping[str, str]) -> WorkloadRef | None:
    """The PodGroup that a pod was evicted for, which may be gone."""
    name, resource = notes.get(labels.EVICTOR_NAME, ""), PodGroup.resource
    namespace = notes.get(labels.EVICTOR_NAMESPACE, "")
    if not name:
        return None
    return WorkloadRef(kind=resource.kind, api_version=resource.api_version, namespace=namespace, name=name)


def _group_ref(group: PodGroup | None) -> WorkloadRef | None:
    return ref_of(group) if group is not None else None


def _gpus(text: str) -> float:
    """An amount of GPUs; 0 for what is no amount, since anybody with the right to write events chooses the text."""
    try:
        amount = float(text)
    except ValueError:
        return 0.0
    return amount if 0 <= amount < _MOST_GPUS else 0.0


def _lost(started: str, at: datetime, gpus: float) -> float | None:
    """GPU-hours between a pod's start and its eviction; None where the start is not known."""
    try:
        since = datetime.fromisoformat(started)
    except ValueError:
        return None
    if since.tzinfo is None:
        return None
    return round(max((at - since).total_seconds(), 0.0) / 3600 * gpus, 4)
