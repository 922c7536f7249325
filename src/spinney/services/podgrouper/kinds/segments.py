"""Segments: workers in subgroups of a fixed size, each with a topology constraint."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.services.podgrouper.context import Context, annotations_of, dig
from spinney.services.podgrouper.grouping import GroupingError, SubGroup, Topology

# More segments than this, or subgroups for replicas, are a mistake in the object.
MAX_SEGMENTS = 10_000


@dataclass(frozen=True)
class Segmented:
    """The subgroups in place of a flat one, and the leaf of the pod."""

    subgroups: tuple[SubGroup, ...]
    leaf: str = ""


def pytorch_workers(context: Context, workers: int, least: int) -> Segmented | None:
    """`worker` as a parent of `worker-0`, `worker-1`…; None without a segment size."""
    template = dig(context.top, "spec", "pytorchReplicaSpecs", "Worker", "template") or {}
    on_template, on_pod = annotations_of(template), context.pod.metadata.annotations
    text = on_pod.get(labels.SEGMENT_SIZE) or on_template.get(labels.SEGMENT_SIZE)
    if text is None:
        return None
    size = _size(text)
    count = -(-workers // size)
    if count == 0:
        return None
    if count > MAX_SEGMENTS:
        raise GroupingError(
            f"{labels.SEGMENT_SIZE} {size} makes {count} segments of {workers} workers; at most {MAX_SEGMENTS}"
        )
    constraint = segment_topology(on_pod, on_template, annotations_of(context.top))
    needed = -(-least // size)
    leaves = [
        SubGroup(
            f"worker-{index}",
            min_member=min(size, workers - index * size) if index < needed else 0,
            parent="worker",
            topology=constraint,
        )
        for index in range(count)
    ]
    return Segmented((SubGroup("worker", min_subgroup=count), *leaves), _pytorch_leaf(context, size))


def _pytorch_leaf(context: Context, size: int) -> str:
    pod_labels = context.pod.metadata.labels
    if pod_labels.get(labels.TRAINING_REPLICA_TYPE, "").lower() != "worker":
        return ""
    return f"worker-{_position(context, labels.TRAINING_REPLICA_INDEX) // size}"


def _position(context: Context, label: str) -> int:
    """A pod's index among its siblings, which decides its segment."""
    text = context.pod.metadata.labels.get(label, "")
    position = whole_number(text)
    if position is None:
        raise GroupingError(
            f"pod {context.pod.name}: label {label} is {text!r}; it must be a number to find its segment"
        )
    return position


def leader_worker_set(context: Context, group_size: int) -> Segmented | None:
    """The segments of one group of a LeaderWorkerSet; None where it has none."""
    size = _lws_segment_size(context.top)
    if size is None:
        return None
    index = _position(context, labels.LWS_WORKER_INDEX)
    if not 1 < size <= group_size:
        raise GroupingError(f"segment size {size} must be more than 1 and at most the group size {group_size}")
    template = dig(context.top, "spec", "leaderWorkerTemplate", "workerTemplate") or {}
    constraint = segment_topology(
        context.pod.metadata.annotations, annotations_of(template), annotations_of(context.top)
    )
    workers = group_size - 1
    if workers // size > MAX_SEGMENTS:
        raise GroupingError(
            f"segment size {size} makes {workers // size} segments of {workers} workers; at most {MAX_SEGMENTS}"
        )
    policy = dig(
        context.top, "spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupPolicyType"
    )  # LeaderWorker unless told
    even = workers % size == 0
    if policy == "LeaderExcluded":
        return _leader_excluded(workers, size, index, constraint, even)
    # If the workers fill whole segments, the leader is added to segment 0.
    sizes = [size] * (workers // size) if even else [min(size, group_size - at) for at in range(0, group_size, size)]
    if even:
        sizes[0] += 1
        position = 0 if index == 0 else (index - 1) // size
    else:
        position = index // size
    leaves = [SubGroup(f"segment-{at}", min_member=count, topology=constraint) for at, count in enumerate(sizes)]
    first = SubGroup("segment-0", min_subgroup=2, topology=constraint)
    inside = (
        SubGroup("leader", min_member=1, parent="segment-0"),
        SubGroup("workers", min_member=sizes[0] - 1, parent="segment-0"),
    )
    leaf = "leader" if index == 0 else "workers" if position == 0 else f"segment-{position}"
    return Segmented((first, *leaves[1:], *inside), leaf)


def segment_topology(*sources: dict[str, str]) -> Topology:
    """The constraint of each segment, from the first source of each annotation; none without a topology name."""
    name, required, preferred = (
        next((source[key] for source in sources if source.get(key)), "")
        for key in (labels.TOPOLOGY, labels.SEGMENT_TOPOLOGY_REQUIRED, labels.SEGMENT_TOPOLOGY_PREFERRED)
    )
    return Topology(name, required, preferred) if name and (required or preferred) else Topology()


def _leader_excluded(workers: int, size: int, index: int, constraint: Topology, even: bool) -> Segmented:
    if not even:
        raise GroupingError(
            f"subGroupPolicyType LeaderExcluded needs workers ({workers}) divisible by the segment size ({size})"
        )
    leaves = [SubGroup(f"segment-{at}", min_member=size, topology=constraint) for at in range(workers // size)]
    leaf = "leader" if index == 0 else f"segment-{(index - 1) // size}"
    return Segmented((SubGroup("leader", min_member=1), *leaves), leaf)


def _lws_segment_size(owner: Json) -> int | None:
    template = dig(owner, "spec", "leaderWorkerTemplate") or {}
    policy = dig(template, "subGroupPolicy", "subGroupSize")
    if policy is not None:
        return int(policy)
    for source in (owner, dig(template, "workerTemplate") or {}):
        text = annotations_of(source).get(labels.SEGMENT_SIZE)
        if text is not None:
            return _size(text)
    return None


def _size(text: str) -> int:
    size = whole_number(text)
    if not size:
        raise GroupingError(f"annotation {labels.SEGMENT_SIZE} is {text!r}; it must be a whole number of at least 1")
    return size
