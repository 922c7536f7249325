"""Histories of live clusters: what `spinney record` writes, and what a replay makes of it or of a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from spinney.answers.whatif.playing import lifetime_of
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup, Queue, Topology
from spinney.api.meta import Json, Object, convert, without_nulls
from spinney.api.scheduling import PriorityClass
from spinney.scheduler.intake.cluster_objects import (
    job_key,
    job_spec,
    node_spec,
    queue_spec,
    timestamp,
    topology_spec,
)
from spinney.scheduler.intake.pod_tasks import task_spec
from spinney.scheduler.intake.snapshot import Snapshot
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import TaskSpec
from spinney.sim.replay.trace import Trace, TraceError, TraceJob

# What a history holds, by kind.
KINDS: tuple[type[Object], ...] = (Node, Queue, Topology, PriorityClass, PodGroup, Pod)
# The last line, which has no object.
END = "End"
_BY_KIND = {kind.resource.kind: kind for kind in KINDS}
# Parts of a container that a plan looks at; commands and environments may be confidential.
_CONTAINER = ("name", "resources", "ports", "restartPolicy")


_NEVER = datetime.fromtimestamp(0, UTC)

Objects = Mapping[str, Sequence[Object]]
# A pod, and how long it ran or runs; None if unknown.
Timed = tuple[Pod, float | None]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a history: an object at a moment; a deletion repeats the object once."""

    at: str
    kind: str
    deleted: bool = False
    object: dict[str, Any] = {}


def redacted(document: Json) -> Json:
    """An object without what no plan looks at: managed fields, commands, environments."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    kept = {**document, "metadata": metadata}
    spec = document.get("spec")
    if isinstance(spec, dict) and "containers" in spec:
        lists = {
            key: [{part: each[part] for part in _CONTAINER if part in each} for each in spec[key]]
            for key in ("containers", "initContainers")
            if key in spec
        }
        kept["spec"] = {**spec, **lists}
    return kept


def read_history(path: Path) -> Trace:
    """The trace of a history: gangs arrive when they were created, and run as long as they ran then."""
    seen: dict[str, dict[str, tuple[Object, list[Line]]]] = defaultdict(dict)
    moments: list[str] = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        try:
            line = msgspec.json.decode(text, type=Line)
            moments.append(line.at)
            if line.kind == END:
                continue
            item = convert(_BY_KIND[line.kind], without_nulls(line.object))
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
            raise TraceError(f"{path}: line {number} is no line of a history: {error}") from error
        lines = seen[line.kind].get(item.uid or item.name, (item, []))[1]
        seen[line.kind][item.uid or item.name] = (item, [*lines, line])
    pods = {uid: (pod, _runtime(lines)) for uid, (pod, lines) in seen["Pod"].items() if isinstance(pod, Pod)}
    objects = {kind: [item for item, _ in by_uid.values()] for kind, by_uid in seen.items()}
    first, last = (datetime.fromisoformat(at).timestamp() for at in (min(moments), max(moments)))
    jobs = []
    for group, own in _gangs(objects, list(pods.values())):
        began = max(timestamp(group.metadata.creation_timestamp), first)
        jobs.append(_job(group, own, objects, began - first, max(last - began, 1.0), task_of=_as_created))
    return _trace(path.stem, objects, jobs, ["pods that did not end run until the end of the history"])


def _runtime(lines: Sequence[Line]) -> float | None:
    """Seconds between the start of a pod and its end; None while either is not known."""
    began = ended = None
    for line in lines:
        status = line.object.get("status") or {}
        began = began or status.get("startTime")
        if ended is None and (line.deleted or status.get("phase") in ("Succeeded", "Failed")):
            ended = line.at
    if began is None or ended is None:
        return None
    return max((datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds(), 1.0)


def read_snapshot(name: str, snapshot: Snapshot, run_for: float) -> Trace:
    """The trace of a snapshot: what runs goes on, what waits arrives at once; unknown run times are `run_for`."""
    objects = {
        kind.resource.kind: [convert(kind, without_nulls(item)) for item in snapshot.objects.get(kind.resource, [])]
        for kind in KINDS
    }
    pods = {pod.uid: (pod, lifetime_of(pod)) for pod in objects["Pod"] if isinstance(pod, Pod)}
    jobs = [
        _job(group, own, objects, 0.0, run_for, task_of=_as_it_is)
        for group, own in _gangs(objects, list(pods.values()))
    ]
    unknown = sum(runtime is None for _, runtime in pods.values())
    return _trace(name, objects, jobs, [f"{unknown} pods of unknown run time run for {run_for:g} s"] if unknown else [])


def _gangs(objects: Objects, pods: Sequence[Timed]) -> Iterable[tuple[PodGroup, Sequence[Timed]]]:
    """PodGroups with their pods; those without pods never run."""
    members: dict[str, list[Timed]] = defaultdict(list)
    for pod, runtime in pods:
        if group := pod.metadata.annotations.get(labels.POD_GROUP):
            members[job_key(pod.namespace, group)].append((pod, runtime))
    for item in objects.get("PodGroup", ()):
        if isinstance(item, PodGroup) and (own := members.get(job_key(item.namespace, item.name))):
            yield item, own


def _job(
    group: PodGroup,
    own: Sequence[Timed],
    objects: Objects,
    arrival: float,
    unknown_runtime: float,
    *,
    task_of: Callable[[Pod], TaskSpec],
) -> TraceJob:
    classes = [item for item in objects.get("PriorityClass", ()) if isinstance(item, PriorityClass)]
    topologies = {item.name: topology_spec(item) for item in objects.get("Topology", ()) if isinstance(item, Topology)}
    spec = replace(job_spec(group, classes, topologies), last_start=None, last_eviction=None, stale_since=None)
    runtimes = [runtime for _, runtime in own if runtime is not None]
    return TraceJob(spec, [task_of(pod) for pod, _ in own], arrival, max(runtimes, default=unknown_runtime))


def _trace(name: str, objects: Objects, jobs: Sequence[TraceJob], assumed: Sequence[str]) -> Trace:
    return Trace(
        name,
        [node_spec(item) for item in objects.get("Node", ()) if isinstance(item, Node)],
        [queue_spec(item) for item in objects.get("Queue", ()) if isinstance(item, Queue)],
        jobs,
        [topology_spec(item) for item in objects.get("Topology", ()) if isinstance(item, Topology)],
        assumed=assumed,
    )


def _as_created(pod: Pod) -> TaskSpec:
    """A pod's task before it had a node."""
    spec = task_spec(pod, None, pod.metadata.creation_timestamp or _NEVER)
    return replace(spec, status=st.PENDING, node="", gpu_groups=(), ends=None)


def _as_it_is(pod: Pod) -> TaskSpec:
    """A pod's task on the node that it has."""
    spec = task_spec(pod, None, pod.metadata.creation_timestamp or _NEVER)
    return spec if spec.status & st.USED else _as_created(pod)


def line_of(kind: str, document: Json, at: str, deleted: bool) -> bytes:
    """The line of an object as it is at a moment."""
    return msgspec.json.encode(Line(at=at, kind=kind, deleted=deleted, object=redacted(document))) + b"\n"
