"""A set as a tree for `spinney status`: gangs, cliques and pods, their state, and what each waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.api import labels, reasons
from spinney.api.conditions import find
from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from spinney.grove.model import pod_state
from spinney.grove.model.metadata import is_part_of

_RACK_KEYS = ("kubernetes.io/rack", "topology.kubernetes.io/rack", "topology.kubernetes.io/zone")


@dataclass(frozen=True)
class Objects:
    """The objects that the trees are built from."""

    sets: Sequence[PodCliqueSet]
    gangs: Sequence[PodGang]
    cliques: Sequence[PodClique]
    pods: Sequence[Pod]
    nodes: Sequence[Node]


def trees(objects: Objects, name: str, now: datetime) -> list[Json]:
    """The trees of all sets, or of those of a name."""
    sets = sorted(objects.sets, key=lambda pcs: (pcs.namespace, pcs.name))
    return [_set(pcs, objects, now) for pcs in sets if not name or pcs.name == name]


def _set(pcs: PodCliqueSet, objects: Objects, now: datetime) -> Json:
    nodes = {node.name: node for node in objects.nodes}
    cliques = {clique.name: clique for clique in objects.cliques if clique.namespace == pcs.namespace}
    by_clique: dict[str, list[Pod]] = {}
    for pod in objects.pods:
        if pod.namespace == pcs.namespace:
            by_clique.setdefault(pod.metadata.labels.get(labels.PODCLIQUE, ""), []).append(pod)
    own = [gang for gang in objects.gangs if is_part_of(gang, pcs)]
    return {
        "name": pcs.name,
        "namespace": pcs.namespace,
        "ready": pcs.status.ready or f"{pcs.status.available_replicas}/{pcs.spec.replicas}",
        "updated": pcs.status.updated_replicas,
        "age": age(pcs, now),
        "waitsFor": _set_waits(pcs),
        "gangs": [_gang(gang, cliques, by_clique, nodes, now) for gang in sorted(own, key=_natural)],
    }


def _gang(
    gang: PodGang,
    cliques: Mapping[str, PodClique],
    by_clique: Mapping[str, list[Pod]],
    nodes: Mapping[str, Node],
    now: datetime,
) -> Json:
    return {
        "name": gang.name,
        "phase": gang.status.phase or reasons.PENDING,
        "backend": gang.metadata.labels.get(labels.SCHEDULER_BACKEND, ""),
        "score": gang.status.placement_score,
        "age": age(gang, now),
        "waitsFor": _gang_waits(gang),
        "cliques": [
            {
                "name": group.name,
                "minimum": group.min_replicas,
                "replicas": cliques[group.name].spec.replicas if group.name in cliques else len(group.pod_references),
                "ready": sum(map(pod_state.is_ready, by_clique.get(group.name, ()))),
                "pods": [
                    _pod(pod, nodes, now, _gang_waits(gang))
                    for pod in sorted(by_clique.get(group.name, ()), key=pod_state.index)
                ],
            }
            for group in gang.spec.podgroups
        ],
    }


def _pod(pod: Pod, nodes: Mapping[str, Node], now: datetime, gang_waits: str) -> Json:
    """A pod; what its gang waits for is not repeated."""
    waits = _pod_waits(pod)
    node = nodes.get(pod.spec.node_name)
    rack = next((node.metadata.labels[key] for key in _RACK_KEYS if key in node.metadata.labels), "") if node else ""
    return {
        "name": pod.name,
        "state": state(pod),
        "node": pod.spec.node_name,
        "rack": rack,
        "age": age(pod, now),
        "waitsFor": "" if waits in gang_waits else waits,
    }


def state(pod: Pod) -> str:
    """A pod's state in one word, much as kubectl shows it."""
    if pod_state.is_terminating(pod):
        return "Terminating"
    if pod_state.is_gated(pod):
        return "Gated"
    if pod_state.is_ready(pod):
        return "Ready"
    waiting = [status.state.waiting.reason for status in pod.status.container_statuses if status.state.waiting]
    return next((reason for reason in waiting if reason), pod.status.phase or "Pending")


def _pod_waits(pod: Pod) -> str:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates:
        return f"gate {', '.join(gates)}"
    scheduled = find(pod.status.conditions, reasons.POD_SCHEDULED)
    # The message about gates stays on a pod until its scheduler has tried it.
    if scheduled is not None and scheduled.status == "False" and scheduled.reason != reasons.SCHEDULING_GATED:
        return scheduled.message
    running = [status.name for status in pod.status.init_container_statuses if status.state.running]
    return f"init container {running[0]}" if running else ""


def _gang_waits(gang: PodGang) -> str:
    for kind in (reasons.SCHEDULED, reasons.READY):
        condition = find(gang.status.conditions, kind)
        if condition is not None and condition.status != "True":
            return condition.message
    return ""


def _set_waits(pcs: PodCliqueSet) -> str:
    progress = pcs.status.update_progress
    if progress is not None and progress.update_ended_at is None:
        turns = ", ".join(str(replica.replica_index) for replica in progress.currently_updating)
        return f"update of replica {turns}" if turns else "an update"
    return "; ".join(error.description for error in pcs.status.last_errors)


def age(item: Object, now: datetime) -> str:
    """The age of an object in its largest unit."""
    created = item.metadata.creation_timestamp
    if created is None:
        return ""
    seconds = max(0, int((now - created).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h" if seconds < 172800 else f"{seconds // 86400}d"


def _natural(item: Object) -> list[tuple[int, str]]:
    """Orders `x-2` before `x-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in item.name.split("-")]
