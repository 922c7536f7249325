"""JobSets and LeaderWorkerSets."""

from __future__ import annotations

from dataclasses import replace

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.services.podgrouper.context import Context, annotations_of, dig
from spinney.services.podgrouper.defaults import group_under, topology_from
from spinney.services.podgrouper.grouping import Grouping, GroupingError, SubGroup, Topology, member_count
from spinney.services.podgrouper.kinds.kubernetes import min_member_annotation
from spinney.services.podgrouper.kinds.segments import MAX_SEGMENTS
from spinney.services.podgrouper.kinds.segments import leader_worker_set as lws_segments


async def job_set(context: Context) -> Grouping:
    """A parent subgroup per replicated job, a leaf per replica of it."""
    listed: list[Json] = dig(context.top, "spec", "replicatedJobs") or []
    # One without replicas has no pods to wait for.
    jobs = [job for job in listed if _replicas(job)]
    if not jobs:
        raise GroupingError(f"JobSet {context.top['metadata']['name']} has no replicatedJobs with replicas")
    grouping = group_under(context, context.top)
    # A flat group of an older release stays flat.
    if context.lookup.group_has_subgroups(grouping.namespace, grouping.name) is False:
        return replace(grouping, min_member=sum(_replicas(job) * _leaf_minimum(job) for job in jobs))
    needed = min_member_annotation(annotations_of(context.top))
    if needed is None:
        in_order = dig(context.top, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
        needed = 1 if in_order else len(jobs)
    replicas = sum(map(_replicas, jobs))
    if replicas > MAX_SEGMENTS:
        raise GroupingError(f"replicatedJobs have {replicas} replicas; at most {MAX_SEGMENTS}")
    subgroups = tuple(group for job in jobs for group in _replicated_job(job))
    return replace(
        grouping,
        min_member=None,
        min_subgroup=min(needed, len(jobs)),
        subgroups=subgroups,
        pod_subgroup=_leaf_of(context, subgroups),
    )


def _replicated_job(job: Json) -> list[SubGroup]:
    topology = topology_from(annotations_of(job.get("template") or {}))
    constraint = topology if topology.name and (topology.required or topology.preferred) else Topology()
    parent = SubGroup(job["name"], min_subgroup=_replicas(job))
    leaves = [
        SubGroup(
            f"{job['name']}-replica-{index}", min_member=_leaf_minimum(job), parent=job["name"], topology=constraint
        )
        for index in range(_replicas(job))
    ]
    return [parent, *leaves]


def _replicas(job: Json) -> int:
    return int(job.get("replicas", 1))


def _leaf_minimum(job: Json) -> int:
    template = job.get("template") or {}
    minimum = min_member_annotation(annotations_of(template))
    parallelism = dig(template, "spec", "parallelism")
    default = 1 if parallelism is None else int(parallelism)
    return default if minimum is None else minimum


def _leaf_of(context: Context, subgroups: tuple[SubGroup, ...]) -> str:
    pod_labels = context.pod.metadata.labels
    leaf = f"{pod_labels.get(labels.JOBSET_REPLICATED_JOB, '')}-replica-{pod_labels.get(labels.JOBSET_JOB_INDEX, '')}"
    if leaf not in {group.name for group in subgroups}:
        raise GroupingError(
            f"pod {context.pod.name}: labels {labels.JOBSET_REPLICATED_JOB} and {labels.JOBSET_JOB_INDEX} "
            f"name no replica of JobSet {context.top['metadata']['name']}"
        )
    return leaf


async def leader_worker_set(context: Context) -> Grouping:
    """One group per LWS group: a leader and its workers, or segments of them."""
    size = _group_size(context)
    pod_labels = context.pod.metadata.labels
    index = pod_labels.get(labels.LWS_WORKER_INDEX, "")
    if index and whole_number(index) is None:
        raise GroupingError(f"pod {context.pod.name}: label {labels.LWS_WORKER_INDEX} is {index!r}, not a number")
    grouping = group_under(context, context.top)
    if labels.LWS_GROUP_INDEX in pod_labels:
        grouping = replace(grouping, name=f"{grouping.name}-group-{pod_labels[labels.LWS_GROUP_INDEX]}")
    if _groups_leader_only(context, index):
        return replace(grouping, min_member=1, subgroups=(SubGroup("leader", min_member=1),), pod_subgroup="leader")
    segmented = lws_segments(context, size)
    if segmented is not None:
        return replace(grouping, min_member=size, subgroups=segmented.subgroups, pod_subgroup=segmented.leaf)
    subgroups = [SubGroup("leader", min_member=1)]
    if size > 1:
        subgroups.append(SubGroup("workers", min_member=size - 1))
    leaf = "leader" if index == "0" else "workers"
    return replace(grouping, min_member=size, subgroups=tuple(subgroups), pod_subgroup=leaf)


def _group_size(context: Context) -> int:
    top = context.top
    size = dig(top, "spec", "leaderWorkerTemplate", "size")
    if dig(top, "spec", "startupPolicy") == "LeaderReady":
        own = member_count(context.pod.metadata.annotations.get(labels.LWS_SIZE, ""))
        size = size if own is None else own
    if not isinstance(size, int) or size < 1:
        raise GroupingError(
            f"LeaderWorkerSet {top['metadata']['name']}: spec.leaderWorkerTemplate.size is {size!r}; "
            "it must be at least 1"
        )
    return size


def _groups_leader_only(context: Context, index: str) -> bool:
    """Whether only the leader is grouped: with LeaderReady, workers are created once it runs."""
    policy = dig(context.top, "spec", "startupPolicy") or "LeaderCreated"
    if policy not in ("LeaderCreated", "LeaderReady"):
        raise GroupingError(f"LeaderWorkerSet {context.top['metadata']['name']}: unknown spec.startupPolicy {policy!r}")
    return policy == "LeaderReady" and index == "0" and not context.pod.spec.node_name
