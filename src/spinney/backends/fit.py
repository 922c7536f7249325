"""Whether a gang would fit on the room that is free now: it says yes only with a placement in hand.

A "no" may be wrong, since placements are not searched exhaustively; a gang that is told no is only asked again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spinney.api.affinity import selects_node
from spinney.api.core import Node
from spinney.api.labels import GPU_RESOURCE, HOSTNAME
from spinney.api.pod import Pod
from spinney.api.quantity import milli
from spinney.api.reasons import NODE_READY
from spinney.api.requests import pod_requests
from spinney.api.selector import matches
from spinney.kube.conditions import find

Amounts = Mapping[str, int]
_PODS = "pods"


@dataclass
class Room:
    """What is free on one node, in thousandths."""

    node: Node
    free: dict[str, int]
    placed: list[Pod] = field(default_factory=list)

    def holds(self, request: Amounts) -> bool:
        """Whether a request fits."""
        return all(self.free.get(name, 0) >= amount for name, amount in request.items() if amount)

    def take(self, pod: Pod, request: Amounts) -> None:
        """Put a pod here."""
        self.placed.append(pod)
        for name, amount in request.items():
            self.free[name] = self.free.get(name, 0) - amount


def request_of(pod: Pod) -> dict[str, int]:
    """What a pod takes, its own place among a node's pods included."""
    return {**pod_requests(pod.spec), _PODS: 1000}


def rooms(nodes: Iterable[Node], pods: Iterable[Pod], above: int | None = None) -> list[Room]:
    """What is free on every usable node; pods of a priority below `above` count as gone."""
    found = {
        node.name: Room(node, {name: milli(amount) for name, amount in node.status.allocatable.items()})
        for node in nodes
        if _usable(node)
    }
    for pod in pods:
        room = found.get(pod.spec.node_name)
        if room is None or (above is not None and (pod.spec.priority or 0) < above):
            continue
        for name, amount in request_of(pod).items():
            room.free[name] = room.free.get(name, 0) - amount
    return list(found.values())


def misfit(pods: Sequence[Pod], free: Sequence[Room]) -> Pod | None:
    """The first pod for which no room was found; None where all of them fit together.

    Largest first, each on the node where it leaves the least: the order in which pods are let go.
    """
    requests = [(pod, request_of(pod)) for pod in pods]
    requests.sort(key=lambda item: size(item[1]), reverse=True)
    trial = [Room(room.node, dict(room.free)) for room in free]
    for pod, request in requests:
        chosen = min(
            (room for room in trial if room.holds(request) and allowed(pod, room)),
            key=lambda room: size(room.free),
            default=None,
        )
        if chosen is None:
            return pod
        chosen.take(pod, request)
    return None


def size(amounts: Amounts) -> tuple[int, int, int]:
    """How large a request is, or how much is free: by GPUs, then CPU, then memory."""
    return amounts.get(GPU_RESOURCE, 0), amounts.get("cpu", 0), amounts.get("memory", 0)


def allowed(pod: Pod, room: Room) -> bool:
    """Whether a pod may be on a node at all, as far as the node and the gang's own pods on it say."""
    node, spec = room.node, pod.spec
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity
    if affinity and affinity.node_affinity:
        required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if required is not None and not selects_node(required, node.name, labels):
            return False
    hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    if not all(any(toleration.tolerates(taint) for toleration in spec.tolerations) for taint in hard):
        return False
    return not any(_repels(pod, other) for other in room.placed)


def _repels(pod: Pod, other: Pod) -> bool:
    """Whether a pod must not share a host with another one of its gang."""
    affinity = pod.spec.affinity
    if not affinity or not affinity.pod_anti_affinity:
        return False
    terms = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    return any(term.topology_key == HOSTNAME and matches(term.label_selector, other.metadata.labels) for term in terms)


def _usable(node: Node) -> bool:
    ready = find(node.status.conditions, NODE_READY)
    return not node.spec.unschedulable and (ready is None or ready.status == "True")
