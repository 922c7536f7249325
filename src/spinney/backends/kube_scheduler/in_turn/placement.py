"""Find a node for every pod of a gang on the resources that are free now.

The search is not exhaustive, so "no" may be wrong: the gang is tried again later. "Yes" always comes with a placement.
It looks at requests, the number of pods per node, taints, node selectors and affinity, host ports, rules between pods
(`inter_pod_rules`) and claims (`reachable_nodes`). It does not see devices that are not allocated yet, nor how many
volumes a node can attach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spinney.api.affinity import selects_node, tolerates
from spinney.api.core import Node
from spinney.api.labels import GPU_RESOURCE
from spinney.api.pod import Pod
from spinney.api.quantity import milli
from spinney.api.reasons import NODE_READY
from spinney.api.requests import pod_requests
from spinney.api.volumes import Reach
from spinney.backends.kube_scheduler.in_turn.inter_pod_rules import Neighbours, away_terms
from spinney.kube.conditions import find

Amounts = Mapping[str, int]
# The node found for each pod, by name.
Places = Mapping[str, str]
_PODS = "pods"


@dataclass
class Room:
    """What is free on one node, in thousandths, and who is there."""

    node: Node
    free: dict[str, int]
    pods: list[Pod] = field(default_factory=list)

    def holds(self, request: Amounts) -> bool:
        """Whether a request fits."""
        return all(self.free.get(name, 0) >= amount for name, amount in request.items() if amount)

    def take(self, pod: Pod, request: Amounts) -> None:
        """Put a pod here."""
        self.pods.append(pod)
        for name, amount in request.items():
            self.free[name] = self.free.get(name, 0) - amount


@dataclass(frozen=True)
class Ground:
    """What a gang could stand on: the room that is free, or would be without pods below a priority; and its claims."""

    rooms: Callable[[int | None], Sequence[Room]]
    reach: Callable[[Pod], Reach] = lambda _: Reach()


@dataclass(frozen=True)
class Misfit:
    """A pod for which no node was found, and what it lacks on every node, where that is known."""

    pod: Pod
    lacks: str = ""


def request_of(pod: Pod) -> dict[str, int]:
    """What a pod takes, its own place among a node's pods included."""
    return {**pod_requests(pod.spec), _PODS: 1000}


def rooms(nodes: Iterable[Node], pods: Iterable[Pod], above: int | None = None) -> list[Room]:
    """Every node with what is free on it; pods of a priority below `above` count as gone."""
    found = {
        node.name: Room(node, {name: milli(amount) for name, amount in node.status.allocatable.items()})
        for node in nodes
    }
    for pod in pods:
        room = found.get(pod.spec.node_name)
        if room is not None and (above is None or (pod.spec.priority or 0) >= above):
            room.take(pod, request_of(pod))
    return list(found.values())


def fit(pods: Sequence[Pod], ground: Ground, above: int | None = None) -> Places | Misfit:
    """A node for every pod, or the first pod for which none was found.

    Largest first, each on the node where it leaves the least: the order in which pods are let go.
    """
    places: dict[str, str] = {}
    requests = [(pod, request_of(pod)) for pod in pods]
    requests.sort(key=lambda item: size(item[1]), reverse=True)
    trial = [Room(room.node, dict(room.free), list(room.pods)) for room in ground.rooms(above)]
    repellers = [(room, other) for room in trial for other in room.pods if away_terms(other)]
    for pod, request in requests:
        reach = ground.reach(pod)
        selected = [room for room in trial if _selected(pod, room.node)]
        neighbours = Neighbours(pod, trial, selected, repellers)
        chosen = min(
            (
                room
                for room in selected
                if room.holds(request) and _open(pod, room.node) and reach.allows(room.node) and neighbours.allow(room)
            ),
            key=lambda room: size(room.free),
            default=None,
        )
        if chosen is None:
            return Misfit(pod, str(reach.impossible))
        chosen.take(pod, request)
        places[pod.name] = chosen.node.name
        if away_terms(pod):
            repellers.append((chosen, pod))
    return places


def size(amounts: Amounts) -> tuple[int, int, int]:
    """How large a request is, or how much is free: by GPUs, then CPU, then memory."""
    return amounts.get(GPU_RESOURCE, 0), amounts.get("cpu", 0), amounts.get("memory", 0)


def may_use(pod: Pod, node: Node) -> bool:
    """Whether a pod may stand on a node, for all that the two say about each other."""
    return _selected(pod, node) and _open(pod, node)


def _selected(pod: Pod, node: Node) -> bool:
    """Whether a pod's node selector and node affinity choose a node."""
    labels, affinity = node.metadata.labels, pod.spec.affinity
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    rules = affinity.node_affinity if affinity else None
    return rules is None or selects_node(rules.required_during_scheduling_ignored_during_execution, node.name, labels)


def _open(pod: Pod, node: Node) -> bool:
    """Whether a node takes pods, and this one despite its taints."""
    ready = find(node.status.conditions, NODE_READY)
    if node.spec.unschedulable or (ready is not None and ready.status != "True"):
        return False
    hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(tolerates(pod.spec.tolerations, taint) for taint in hard)
