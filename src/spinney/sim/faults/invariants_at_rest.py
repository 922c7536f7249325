"""The rules that hold whenever the cluster is at rest, each a function that yields a sentence per violation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from spinney.api import labels, reasons
from spinney.api.core import Event, Node, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import BindRequest, PodGroup, Queue
from spinney.api.podgang import PodGang
from spinney.api.quantity import milli
from spinney.sim.faults.groups import FIXED, is_below_minimum, members, queue_of
from spinney.sim.faults.observed import (
    Observed,
    fraction,
    gpus,
    group_key,
    holds_resources,
    is_live,
    is_ready,
    is_reservation,
    queues_are_counted,
    shared_gpus,
    wanted,
)

# A rule about everything.
AtRest = Callable[[Observed], Iterator[str]]


def no_gang_below_minimum(seen: Observed) -> Iterator[str]:
    """At rest a gang has the minimum of each of its pod groups bound, or no pod at all."""
    for gang in seen.of(PodGang):
        bound = {group.name: _bound(seen, gang, group.name) for group in gang.spec.podgroups}
        for group in gang.spec.podgroups:
            if any(bound.values()) and bound[group.name] < group.min_replicas:
                yield f"gang {gang.name}: {bound[group.name]} of {group.min_replicas} pods of {group.name} are bound"
    for other in seen.of(PodGroup):
        if is_below_minimum(seen, other):
            yield f"PodGroup {other.name}: fewer than its minimum of {other.spec.min_member} pods are bound"


def no_orphan(seen: Observed) -> Iterator[str]:
    """At rest every object that has an owner still has it, and nothing is being deleted or waits to be bound."""
    for name, owners, going in seen.everything.values():
        if owners and not any(owner in seen.everything for owner in owners):
            yield f"{name} has lost its owner"
        if going:
            yield f"{name} is still being deleted"
    names = {pod.key for pod in seen.of(Pod)}
    for request in seen.of(BindRequest):
        if (request.namespace, request.spec.pod_name) not in names:
            yield f"BindRequest {request.name} is for a pod that is gone"
        elif request.status.phase not in ("Succeeded", "Failed"):
            yield f"BindRequest {request.name} has not been carried out"
    used = set[str]().union(*(shared_gpus(pod) for pod in seen.of(Pod) if not is_reservation(pod)))
    for pod in seen.of(Pod):
        if is_reservation(pod) and not shared_gpus(pod) & used:
            yield f"{pod.name} holds a GPU for nobody"


def status_equals_reality(seen: Observed) -> Iterator[str]:
    """At rest statuses say what the pods are: cliques, gangs, sets, and what queues have."""
    for clique in seen.of(PodClique):
        pods = [
            pod for pod in seen.of(Pod) if pod.metadata.labels.get(labels.PODCLIQUE) == clique.name and is_live(pod)
        ]
        reported = (clique.status.replicas, clique.status.ready_replicas, clique.status.scheduled_replicas)
        true = (len(pods), sum(map(is_ready, pods)), sum(bool(pod.spec.node_name) for pod in pods))
        if reported != true:
            yield f"PodClique {clique.name} tells {reported} replicas, ready and scheduled; it has {true}"
    for gang in seen.of(PodGang):
        runs = all(_bound(seen, gang, group.name, is_ready) >= group.min_replicas for group in gang.spec.podgroups)
        if runs != (gang.status.phase == "Running"):
            yield f"PodGang {gang.name} is {gang.status.phase}, and {'all' if runs else 'not all'} it needs is ready"
    for pcs in seen.of(PodCliqueSet):
        if pcs.status.replicas != pcs.spec.replicas:
            yield f"PodCliqueSet {pcs.name} tells {pcs.status.replicas} replicas of {pcs.spec.replicas}"
    yield from _wrong_queue_statuses(seen)


def every_gang_that_fits_runs(seen: Observed) -> Iterator[str]:
    """At rest no gang waits whose pods all fit on the nodes, side by side, within the limits of their queue."""
    waiting: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in seen.of(Pod):
        if is_live(pod) and not pod.spec.node_name and not pod.spec.resource_claims and not fraction(pod):
            gang = pod.metadata.labels.get(labels.PODGANG) or pod.metadata.annotations.get(labels.POD_GROUP, pod.name)
            waiting[pod.namespace, gang].append(pod)
    for (_, gang), pods in sorted(waiting.items()):
        if _fit(seen, pods) and not any(_queue_is_full(seen, pod) for pod in pods):
            yield f"{gang} waits with {len(pods)} pods, and there is room for all of them"


def evictions_helped(seen: Observed) -> Iterator[str]:
    """At rest, a gang that pods were evicted for runs, or is gone."""
    for event in seen.of(Event):
        notes = event.metadata.annotations
        if event.reason != reasons.EVICT or labels.EVICTOR_NAME not in notes:
            continue
        group = seen.get(PodGroup, (notes[labels.EVICTOR_NAMESPACE], notes[labels.EVICTOR_NAME]))
        if group is not None and not any(pod.spec.node_name for pod in members(seen, group)):
            yield f"{event.involved_object.name} was evicted for {group.name}, which does not run"


AT_REST: tuple[AtRest, ...] = (
    no_gang_below_minimum,
    no_orphan,
    status_equals_reality,
    every_gang_that_fits_runs,
    evictions_helped,
)


def _bound(seen: Observed, gang: PodGang, group: str, also: Callable[[Pod], bool] = lambda pod: True) -> int:
    names = {
        (reference.namespace, reference.name)
        for each in gang.spec.podgroups
        if each.name == group
        for reference in each.pod_references
    }
    pods = [pod for key in names if (pod := seen.get(Pod, key)) is not None]
    return sum(bool(pod.spec.node_name) and is_live(pod) and also(pod) for pod in pods)


def _wrong_queue_statuses(seen: Observed) -> Iterator[str]:
    if not queues_are_counted(seen):
        return
    used: Counter[str] = Counter()
    for pod in seen.of(Pod):
        if holds_resources(pod) and not pod.spec.resource_claims:
            used[queue_of(seen, pod)] += gpus(pod)
    parents = {queue.spec.parent_queue for queue in seen.of(Queue)}
    for queue in seen.of(Queue):
        reported = milli(queue.status.allocated.get(labels.GPU_RESOURCE, "0"))
        has_claims = any(name != labels.GPU_RESOURCE and "gpu" in name for name in queue.status.allocated)
        if queue.name not in parents and not has_claims and reported != used[queue.name]:
            yield f"queue {queue.name} tells {reported / 1000:g} GPUs, its pods have {used[queue.name] / 1000:g}"


def _queue_is_full(seen: Observed, pod: Pod) -> bool:
    """Whether the pod's queue, or one above it, has a limit or a quota for it: then it may wait for more than room."""
    group = seen.get(PodGroup, group_key(pod))
    if group is not None and group.spec.preemptibility == FIXED:
        return True
    queues = {queue.name: queue for queue in seen.of(Queue)}
    name = queue_of(seen, pod)
    while (queue := queues.get(name)) is not None:
        if queue.spec.resources is None or queue.spec.resources.gpu.limit >= 0:
            return True
        name = queue.spec.parent_queue
    return False


def _fit(seen: Observed, pods: list[Pod]) -> bool:
    rooms = []
    for node in seen.of(Node):
        ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
        if node.spec.unschedulable or not ready:
            continue
        room = {name: milli(amount) for name, amount in node.status.allocatable.items()}
        for other in seen.of(Pod):
            if other.spec.node_name == node.name and holds_resources(other):
                for name, amount in wanted(other).items():
                    room[name] = room.get(name, 0) - amount
        rooms.append((node, room))
    for pod in pods:
        request = wanted(pod)
        selector = pod.spec.node_selector
        for node, room in rooms:
            placed = selector.items() <= node.metadata.labels.items()
            if placed and all(room.get(name, 0) >= amount for name, amount in request.items()):
                for name, amount in request.items():
                    room[name] -= amount
                break
        else:
            return False
    return True
