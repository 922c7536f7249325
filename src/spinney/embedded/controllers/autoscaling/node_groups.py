"""What a cluster autoscaler does next: which nodes it adds for unschedulable pods, and which stand idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spinney.api.affinity import selects_node, tolerates
from spinney.api.conditions import find
from spinney.api.core import Node, Pod
from spinney.api.labels import GPU_RESOURCE, NODE_GROUP
from spinney.api.meta import Json, convert
from spinney.api.owners import controller_of
from spinney.api.pod_state import is_finished
from spinney.api.quantity import milli
from spinney.api.reasons import POD_SCHEDULED, UNSCHEDULABLE
from spinney.api.requests import pod_requests
from spinney.embedded.nodes.profile import Profile

_RACK_LABELS = ("kubernetes.io/rack", "topology.kubernetes.io/rack")


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one kind, between a least and a greatest number; they stand in a rack of their own."""

    name: str
    least: int
    most: int
    profile: Profile
    # How long a node stands idle before it is removed.
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most or not self.most:
            raise ValueError(
                f"node group {self.name}: min {self.least} and max {self.most} must be 0 ≤ min ≤ max, max ≥ 1"
            )

    def manifest(self, index: int) -> Json:
        """The node of an index."""
        labels = {NODE_GROUP: self.name, **dict.fromkeys(_RACK_LABELS, self.name), **self.profile.labels}
        own = replace(self.profile, prefix=self.name, count=self.most, racks=1, blocks=1, zones=1, labels=labels)
        return own.node(index)


@dataclass
class ScalingPlan:
    """Nodes to add and the pods they are for, pods that no new node would help, and nodes to remove."""

    add: list[tuple[NodeGroup, Json]] = field(default_factory=list)
    triggered: list[tuple[Pod, NodeGroup]] = field(default_factory=list)
    refused: list[tuple[Pod, str]] = field(default_factory=list)
    idle: list[Node] = field(default_factory=list)


@dataclass
class _Room:
    """What is free on a node, in thousandths."""

    node: Node
    free: dict[str, int]
    is_used: bool = False

    def takes(self, pod: Pod, wanted: Mapping[str, int]) -> bool:
        """Whether a pod fits; the room is taken if it does."""
        if any(amount > self.free.get(name, 0) for name, amount in wanted.items()) or not _may_run(pod, self.node):
            return False
        for name, amount in wanted.items():
            self.free[name] -= amount
        self.is_used = True
        return True


def plan_scaling(groups: Sequence[NodeGroup], nodes: Iterable[Node], pods: Iterable[Pod]) -> ScalingPlan:
    """Fill what is free with unschedulable pods, largest first; add nodes of the first group that takes the others."""
    plan = ScalingPlan()
    rooms = {node.name: _room(node) for node in sorted(nodes, key=lambda node: node.name)}
    waiting = []
    for pod in pods:
        if _is_unschedulable(pod):
            waiting.append(pod)
        elif pod.spec.node_name in rooms and not is_finished(pod):
            _take(rooms[pod.spec.node_name], pod)
    for group in groups:
        while len(_of(group, rooms)) < group.least:
            _add(plan, group, rooms)
    for pod in sorted(waiting, key=_size, reverse=True):
        _place(plan, groups, rooms, pod)
    added = {manifest["metadata"]["name"] for _, manifest in plan.add}
    for group in groups:
        plan.idle += [room.node for room in _of(group, rooms) if not room.is_used and room.node.name not in added]
    return plan


def _place(plan: ScalingPlan, groups: Sequence[NodeGroup], rooms: dict[str, _Room], pod: Pod) -> None:
    wanted = _requests(pod)
    if any(room.takes(pod, wanted) for room in rooms.values()):
        return
    full = []
    for group in groups:
        if not _room(convert(Node, group.manifest(0))).takes(pod, wanted):
            continue
        if len(_of(group, rooms)) >= group.most:
            full.append(group.name)
            continue
        _add(plan, group, rooms).takes(pod, wanted)
        plan.triggered.append((pod, group))
        return
    text = f"max node group size reached: {', '.join(full)}" if full else "it fits no node group"
    plan.refused.append((pod, text))


def _add(plan: ScalingPlan, group: NodeGroup, rooms: dict[str, _Room]) -> _Room:
    manifests = (group.manifest(index) for index in range(group.most))
    manifest = next(manifest for manifest in manifests if manifest["metadata"]["name"] not in rooms)
    plan.add.append((group, manifest))
    room = rooms[manifest["metadata"]["name"]] = _room(convert(Node, manifest))
    return room


def _of(group: NodeGroup, rooms: Mapping[str, _Room]) -> list[_Room]:
    return [room for room in rooms.values() if room.node.metadata.labels.get(NODE_GROUP) == group.name]


def _room(node: Node) -> _Room:
    return _Room(node, {name: milli(amount) for name, amount in node.status.allocatable.items()})


def _take(room: _Room, pod: Pod) -> None:
    # The place of a pod that is being deleted is as good as free: whoever it is freed for needs no node.
    if pod.metadata.deletion_timestamp is None:
        for name, amount in _requests(pod).items():
            room.free[name] = room.free.get(name, 0) - amount
    owner = controller_of(pod.metadata)
    room.is_used = room.is_used or owner is None or owner.kind != "DaemonSet"


def _requests(pod: Pod) -> dict[str, int]:
    return {**{name: amount for name, amount in pod_requests(pod.spec).items() if amount}, "pods": 1000}


def _size(pod: Pod) -> tuple[int, int, str]:
    wanted = _requests(pod)
    return wanted.get(GPU_RESOURCE, 0), wanted.get("cpu", 0), pod.name


def _is_unschedulable(pod: Pod) -> bool:
    """Whether a scheduler has said that a pod finds no place."""
    if pod.spec.node_name or pod.metadata.deletion_timestamp is not None or pod.spec.scheduling_gates:
        return False
    scheduled = find(pod.status.conditions, POD_SCHEDULED)
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == UNSCHEDULABLE


def _may_run(pod: Pod, node: Node) -> bool:
    """Whether selectors, required node affinity and taints let a pod on a node."""
    if node.spec.unschedulable or not pod.spec.node_selector.items() <= node.metadata.labels.items():
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if not selects_node(required, node.name, node.metadata.labels):
        return False
    hard = [taint for taint in node.spec.taints if taint.effect != "PreferNoSchedule"]
    return all(tolerates(pod.spec.tolerations, taint) for taint in hard)
