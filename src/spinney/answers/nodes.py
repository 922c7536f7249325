"""Nodes and their GPUs, and the topology that they form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from spinney.answers import gpus
from spinney.answers.cluster import Cluster
from spinney.answers.model import Amounts, Gpu, Listing, Node, Sharer, Topology, TopologyDomain
from spinney.answers.ownership import is_stand_in, owner_of
from spinney.api import core, labels
from spinney.api.core import Pod
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests
from spinney.api.times import rfc3339
from spinney.scheduler.intake.cluster_objects import node_spec
from spinney.scheduler.state.refusal import Code
from spinney.scheduler.why.texts import refusal


def nodes(cluster: Cluster) -> Listing[Node]:
    """Every node by name."""
    on = pods_by_node(cluster)
    items = [
        node_of(cluster, node, on.get(node.name, ())) for node in sorted(cluster.nodes, key=lambda node: node.name)
    ]
    return Listing(at=rfc3339(cluster.now), items=items, partial=cluster.partial)


def pods_by_node(cluster: Cluster) -> Mapping[str, Sequence[Pod]]:
    """The pods that take room on each node."""
    on: dict[str, list[Pod]] = defaultdict(list)
    for pod in cluster.pods:
        if gpus.holds_resources(pod):
            on[pod.spec.node_name].append(pod)
    return on


def node_of(cluster: Cluster, node: core.Node, pods: Sequence[Pod]) -> Node:
    """One node with the pods on it."""
    spec = node_spec(node)
    blocked = spec.blocked
    total = {name: milli(value) for name, value in node.status.allocatable.items()}
    used: dict[str, int] = defaultdict(int)
    for pod in pods:
        for name, amount in pod_requests(pod.spec).items():
            used[name] += amount
    devices = _devices(cluster, node, pods)
    return Node(
        name=node.name,
        ready=blocked is None or blocked.code == Code.NODE_UNSCHEDULABLE,
        cordoned=node.spec.unschedulable,
        domain=cluster.domain_of(node.name),
        gpus=devices,
        allocatable=_amounts(total, cluster.gpus_on(node)),
        allocated=_amounts(used, sum(device.used for device in devices)),
        pods=len(pods),
        problem=refusal(blocked) if blocked is not None else None,
    )


def _amounts(thousandths: Mapping[str, int], gpu: float) -> Amounts:
    return Amounts(gpu=gpu, cpu=thousandths.get("cpu", 0) / 1000, memory=thousandths.get("memory", 0) / 1000)


def _devices(cluster: Cluster, node: core.Node, pods: Iterable[Pod]) -> list[Gpu]:
    """The node's devices: those that pods name first, then each group of sharers and each whole one on a free one."""
    count, memory = int(cluster.gpus_on(node)), gpus.memory_of_gpus(node)
    sharers: dict[int, list[Sharer]] = defaultdict(list)
    reservations: dict[str, tuple[int | None, str]] = {}
    whole: list[tuple[Pod, Sequence[int], int]] = []
    shared: list[tuple[Pod, float]] = []
    for pod in pods:
        wanted = gpus.gpus_of(pod, cluster.gpus_asked(pod), memory)
        if is_stand_in(pod) and labels.GPU_GROUP in pod.metadata.labels:
            # A real device plugin names a device by its UUID, which has no index.
            index = next((index for index in wanted.indices if index < count), None)
            reservations[pod.metadata.labels[labels.GPU_GROUP]] = (index, f"{pod.namespace}/{pod.name}")
        elif wanted.fraction is not None:
            shared.append((pod, wanted.fraction))
        elif wanted.count:
            whole.append((pod, wanted.indices, int(wanted.count)))
    place = {group: index for group, (index, _) in reservations.items() if index is not None}
    taken = {*place.values(), *(index for _, indices, _ in whole for index in indices)}
    # Those that are taken later come from here, too.
    free = (index for index in range(count) if index not in taken)
    groups = [*reservations, *(group for pod, _ in shared for group in groups_of(pod))]
    for group in groups:
        if group not in place:
            place[group] = next(free, 0)
            taken.add(place[group])
    for pod, fraction in shared:
        for group in groups_of(pod):
            sharers[place[group]].append(_sharer(cluster, pod, fraction))
    for pod, indices, number in whole:
        # A pod that its kubelet has not refused yet may ask for any number.
        for number_of_pod in range(min(number, count)):
            index = indices[number_of_pod] if number_of_pod < len(indices) else next(free, 0)
            taken.add(index)
            sharers[index].append(_sharer(cluster, pod, 1.0))
    held = {place[group]: name for group, (_, name) in reservations.items()}
    return [_gpu(index, sharers.get(index, ()), held.get(index)) for index in range(count)]


def _gpu(index: int, sharers: Sequence[Sharer], reservation: str | None) -> Gpu:
    used = min(round(sum(sharer.fraction for sharer in sharers), 3), 1.0)
    return Gpu(index=index, sharers=sharers, used=used, reservation=reservation)


def groups_of(pod: Pod) -> list[str]:
    """The groups of shared devices that a pod is in."""
    pod_labels = pod.metadata.labels
    several = sorted(value for key, value in pod_labels.items() if key.startswith(labels.GPU_GROUP_PREFIX))
    return several or [group for group in (pod_labels.get(labels.GPU_GROUP),) if group]


def _sharer(cluster: Cluster, pod: Pod, fraction: float) -> Sharer:
    group = cluster.group_of.get((pod.namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")))
    queue = group.spec.queue if group is not None else pod.metadata.labels.get(labels.QUEUE, "")
    return Sharer(
        namespace=pod.namespace, pod=pod.name, workload=owner_of(cluster, pod).ref, queue=queue, fraction=fraction
    )


def topology(cluster: Cluster) -> Topology:
    """Levels and domains of the cluster, with their nodes and free GPUs."""
    used: dict[str, float] = defaultdict(float)
    for name, pods in pods_by_node(cluster).items():
        memory = gpus.memory_of_gpus(cluster.node_of.get(name))
        used[name] = sum(gpus.amount(cluster.gpus_asked(pod), memory) for pod in pods if not is_stand_in(pod))
    domains: dict[tuple[str, ...], list[float]] = {}
    for node in cluster.nodes:
        path = _path(cluster.levels, node)
        for depth in range(1, len(path) + 1):
            sums = domains.setdefault(path[:depth], [0, 0.0, 0.0])
            total = cluster.gpus_on(node)
            sums[0] += 1
            sums[1] += total
            sums[2] += max(total - used[node.name], 0.0) if node_spec(node).blocked is None else 0.0
    return Topology(
        levels=cluster.levels,
        domains=[
            TopologyDomain(
                level=cluster.levels[len(path) - 1],
                name=".".join(path),
                parent=".".join(path[:-1]) or None,
                nodes=int(sums[0]),
                gpus=sums[1],
                free=sums[2],
            )
            for path, sums in sorted(domains.items())
        ],
    )


def _path(levels: Sequence[str], node: core.Node) -> tuple[str, ...]:
    """Domains of a node from the widest down; ends where a label is missing."""
    path: list[str] = []
    for key in levels:
        if key not in node.metadata.labels:
            break
        path.append(node.metadata.labels[key])
    return tuple(path)
