"""All workloads of a cluster: every kind that the grouper knows, PodCliqueSets, and bare pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from spinney.answers import gpus
from spinney.answers.cluster import Cluster, Owner
from spinney.answers.model import ExpectedStart, Listing, Phase, Reason, Workload, WorkloadRef
from spinney.answers.ownership import is_stand_in, is_top, owner_of, ref_of
from spinney.answers.whatif.forecast import forecast, latest_start
from spinney.answers.why import of_surplus, refused_in_part, unplaced, why
from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, Object
from spinney.api.pod_state import is_finished, is_ready
from spinney.api.times import rfc3339
from spinney.api.untyped import Untyped
from spinney.api.workloads import creates_workloads, is_suspended, wanted_pods
from spinney.scheduler.intake.cluster_objects import job_key

_DEFAULT_PRIORITY = 50


@dataclass
class Parts:
    """A workload with the objects that make it up."""

    owner: Owner
    pods: list[Pod] = field(default_factory=list)
    groups: list[PodGroup] = field(default_factory=list)

    @property
    def alive(self) -> list[Pod]:
        """Pods that have not ended."""
        return [pod for pod in self.pods if not is_finished(pod)]


def parts_of(cluster: Cluster) -> dict[WorkloadRef, Parts]:
    """Every workload, with its pods and PodGroups; those without pods come from their own objects."""
    by_workload: dict[WorkloadRef, Parts] = {}
    for item in _workload_objects(cluster):
        ref = ref_of(item)
        by_workload[ref] = Parts(Owner(ref, item.uid, item))
    for pod in cluster.pods:
        if is_stand_in(pod):
            continue
        owner = owner_of(cluster, pod)
        parts = by_workload.get(owner.ref)
        if parts is None:
            parts = by_workload[owner.ref] = Parts(owner)
        parts.pods.append(pod)
    for parts in by_workload.values():
        parts.groups = _groups(cluster, parts)
    return by_workload


def _workload_objects(cluster: Cluster) -> Iterable[Object]:
    yield from cluster.sets
    # By UID: a kind that is served in several versions is read in each of them.
    for item in cluster.by_uid.values():
        if isinstance(item, Untyped) and is_top(item) and not creates_workloads(item.resource.kind):
            yield item


def _groups(cluster: Cluster, parts: Parts) -> list[PodGroup]:
    """The PodGroups of a workload's pods; a set whose pods are refused has those of its gangs."""
    names = dict.fromkeys((pod.namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")) for pod in parts.pods)
    groups = [cluster.group_of[key] for key in names if key in cluster.group_of]
    if groups or not isinstance(parts.owner.object, PodCliqueSet):
        return groups
    gangs = cluster.below.get((parts.owner.ref.namespace, parts.owner.uid), ())
    return [group for gang in gangs for group in cluster.groups_of_owner.get((gang.namespace, gang.uid), ())]


def workloads(cluster: Cluster, namespace: str = "") -> Listing[Workload]:
    """All workloads, or those of a namespace, by namespace, kind and name."""
    prospects = prospects_of(cluster)
    items = [
        workload_of(cluster, parts, prospects)
        for ref, parts in parts_of(cluster).items()
        if not namespace or ref.namespace == namespace
    ]
    items.sort(key=lambda each: (each.ref.namespace, each.ref.kind.lower(), each.ref.name))
    return Listing(at=rfc3339(cluster.now), items=items, partial=cluster.partial)


@dataclass(frozen=True)
class Prospects:
    """What is worked out once for all workloads: places in line, expected starts, and the smallest GPU."""

    lines: Mapping[str, int]
    starts: Mapping[str, ExpectedStart]
    smallest_gpu: int


def prospects_of(cluster: Cluster) -> Prospects:
    """The prospects of all waiting gangs."""
    return Prospects(places_in_line(cluster), forecast(cluster), gpus.smallest_memory(cluster.nodes))


def places_in_line(cluster: Cluster) -> dict[str, int]:
    """The place of each waiting gang in the line of its queue, from 1."""
    lines: dict[str, int] = {}
    if cluster.schedule is None:
        return lines
    longest: dict[str, int] = {}
    placed = {decision.job for decision in cluster.schedule.plan.decisions if decision.kind == "bind"}
    for turn in cluster.schedule.plan.turns:
        if turn.job not in placed:
            longest[turn.queue] = lines[turn.job] = longest.get(turn.queue, 0) + 1
    return lines


def workload_of(cluster: Cluster, parts: Parts, prospects: Prospects) -> Workload:
    """A workload as an answer."""
    alive = parts.alive
    placed = [pod for pod in alive if pod.spec.node_name]
    ready = [pod for pod in placed if is_ready(pod)]
    minimum = _minimum(cluster, parts)
    phase = _phase(parts, len(placed), len(ready), minimum or 1)
    keys = [job_key(group.namespace, group.name) for group in parts.groups]
    places = [prospects.lines[key] for key in keys if key in prospects.lines]
    return Workload(
        ref=parts.owner.ref,
        uid=parts.owner.uid,
        queue=_queue(parts),
        priority=_priority(cluster, parts, keys),
        priority_class=_priority_class(parts),
        scheduler=_scheduler(parts),
        phase=phase,
        placed=len(placed),
        minimum=minimum,
        total=max(_wanted(cluster, parts), len(alive)),
        ready=len(ready),
        gpus=_gpus(cluster, alive, prospects.smallest_gpu),
        created=_time(_created(parts)) or "",
        started=_time(_started(parts, minimum or 1)),
        line=min(places) if places and phase == "Waiting" else None,
        expected_start=latest_start(prospects.starts, keys) if phase == "Waiting" else None,
        why=reason_to_wait(cluster, parts, phase),
        gangs=_gangs(parts),
    )


def reason_to_wait(cluster: Cluster, parts: Parts, phase: Phase) -> Reason | None:
    """Why a workload waits, or those pods of a running one that it can do without; None if nothing does."""
    item, pods = parts.owner.object, parts.pods
    if phase == "Running" and not unplaced(pods):
        return refused_in_part(cluster, item, pods)
    if phase not in ("Waiting", "Starting", "Running"):
        return None
    reason = why(cluster, item, pods, parts.groups)
    return of_surplus(reason, pods) if reason is not None and phase == "Running" else reason


def _phase(parts: Parts, placed: int, ready: int, minimum: int) -> Phase:
    item = parts.owner.object
    if item is not None and item.metadata.deletion_timestamp is not None:
        return "Terminating"
    spec, status = _plain(item)
    if (ended := _ended(status)) is not None:
        return ended
    if not parts.alive:
        if is_suspended(parts.owner.ref.kind, spec):
            return "Suspended"
        if parts.pods:
            return "Failed" if any(pod.status.phase == "Failed" for pod in parts.pods) else "Succeeded"
        return "Waiting"
    succeeded = sum(pod.status.phase == "Succeeded" for pod in parts.pods)
    needed = max(minimum - succeeded, 1)
    if ready >= needed:
        return "Running"
    return "Starting" if placed >= needed else "Waiting"


def _plain(item: Object | None) -> tuple[Json, Json]:
    """Spec and status of a workload as plain data."""
    if isinstance(item, Untyped):
        return item.spec, item.status
    if isinstance(item, PodCliqueSet):
        return {"replicas": item.spec.replicas}, {}
    return {}, {}


def _ended(status: Json) -> Phase | None:
    """How a workload ended, by its conditions or the word that its kind uses."""
    conditions = [each for each in status.get("conditions") or () if isinstance(each, dict)]
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    if true & {"Complete", "Completed", "Succeeded"} or status.get("jobStatus") == "SUCCEEDED":
        return "Succeeded"
    return "Failed" if "Failed" in true or status.get("jobStatus") == "FAILED" else None


def _minimum(cluster: Cluster, parts: Parts) -> int | None:
    """How many pods must be placed together: of its PodGroups, else of its PodGangs, else one; None if unknown."""
    if parts.groups:
        return sum(_members(group) for group in parts.groups)
    keys = [(parts.owner.ref.namespace, name) for name in _gangs(parts)]
    gangs = [cluster.gang_of[key] for key in keys if key in cluster.gang_of]
    if gangs:
        return sum(group.min_replicas for gang in gangs for group in gang.spec.podgroups)
    return None if any(minimum_of_one(cluster, pod) is None for pod in parts.pods) else 1


def minimum_of_one(cluster: Cluster, pod: Pod) -> int | None:
    """The minimum of a pod without a known gang: it is on its own, unless it has one that may not be read."""
    has_gang = bool(pod.metadata.labels.get(labels.PODGANG)) and bool(cluster.unread("PodGang"))
    has_group = bool(pod.metadata.annotations.get(labels.POD_GROUP)) and bool(cluster.unread("PodGroup"))
    return None if has_gang or has_group else 1


def _members(group: PodGroup) -> int:
    if group.spec.min_member is not None:
        return group.spec.min_member
    leaves = {each.name for each in group.spec.sub_groups} - {each.parent for each in group.spec.sub_groups}
    return sum(each.min_member or 0 for each in group.spec.sub_groups if each.name in leaves) or 1


def _wanted(cluster: Cluster, parts: Parts) -> int:
    item = parts.owner.object
    if isinstance(item, PodCliqueSet):
        return sum(
            clique.spec.replicas
            for clique in cluster.cliques
            if clique.namespace == item.namespace and clique.metadata.labels.get(labels.PART_OF) == item.name
        )
    return wanted_pods(parts.owner.ref.kind, item.spec) if isinstance(item, Untyped) else 0


def _gangs(parts: Parts) -> list[str]:
    """Names of its gangs: PodGangs where an operator made them, else PodGroups."""
    names = dict.fromkeys(pod.metadata.labels.get(labels.PODGANG, "") for pod in parts.pods)
    gangs = [name for name in names if name]
    return gangs or [group.name for group in parts.groups]


def _queue(parts: Parts) -> str:
    holders: Sequence[Object] = [*parts.groups, *([parts.owner.object] if parts.owner.object else []), *parts.pods]
    for item in holders:
        queue = item.spec.queue if isinstance(item, PodGroup) else item.metadata.labels.get(labels.QUEUE, "")
        if queue:
            return queue
    return ""


def _priority_class(parts: Parts) -> str:
    names = (group.spec.priority_class_name for group in parts.groups)
    return next((name for name in (*names, *(pod.spec.priority_class_name for pod in parts.pods)) if name), "")


def _priority(cluster: Cluster, parts: Parts, keys: Sequence[str]) -> int | None:
    if cluster.schedule is not None:
        jobs = cluster.schedule.state.jobs
        values = [jobs[key].spec.priority for key in keys if key in jobs]
        if values:
            return max(values)
    name = _priority_class(parts)
    value = next((each.value for each in cluster.classes if each.name == name), None)
    if value is not None:
        return value
    if cluster.unread("PriorityClass") and any(pod.metadata.annotations.get(labels.POD_GROUP) for pod in parts.pods):
        # The class of the PodGroup counts, or the global default: not what is on the pods.
        return None
    return next((pod.spec.priority for pod in parts.pods if pod.spec.priority is not None), _DEFAULT_PRIORITY)


def _scheduler(parts: Parts) -> str:
    for pod in parts.pods:
        return pod.metadata.labels.get(labels.SCHEDULER_BACKEND, "") or pod.spec.scheduler_name
    return ""


def _gpus(cluster: Cluster, pods: Iterable[Pod], smallest: int) -> float | None:
    """The GPUs that pods ask for; None if they ask for memory and the memory of a GPU is unknown."""
    total = 0.0
    for pod in pods:
        request = cluster.gpus_asked(pod)
        if request.memory and cluster.unread("Node"):
            return None
        total += gpus.amount(request, cluster.gpu_memory_of.get(pod.spec.node_name, smallest))
    return total


def _created(parts: Parts) -> datetime | None:
    item = parts.owner.object
    if item is not None and item.metadata.creation_timestamp is not None:
        return item.metadata.creation_timestamp
    moments = [pod.metadata.creation_timestamp for pod in parts.pods if pod.metadata.creation_timestamp is not None]
    return min(moments, default=None)


def _started(parts: Parts, minimum: int) -> datetime | None:
    """When the last pod of the minimum started."""
    moments = sorted(pod.status.start_time for pod in parts.pods if pod.status.start_time is not None)
    return moments[minimum - 1] if moments and 0 < minimum <= len(moments) else None


def _time(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
