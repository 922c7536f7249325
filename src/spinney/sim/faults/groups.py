"""Pods, the PodGroups that they name, and their queues, as the rules see them."""

from __future__ import annotations

from collections import Counter

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.sim.faults.observed import Observed, group_key

# A group whose pods nobody may preempt.
FIXED = "non-preemptible"


def queue_of(seen: Observed, pod: Pod) -> str:
    """The queue of a pod's group; empty where it has none."""
    group = seen.get(PodGroup, group_key(pod))
    return group.spec.queue if group is not None else ""


def members(seen: Observed, group: PodGroup) -> list[Pod]:
    """The pods that name a group."""
    return [pod for pod in seen.of(Pod) if group_key(pod) == group.key]


def is_below_minimum(seen: Observed, group: PodGroup) -> bool:
    """Whether a group has bound pods, and fewer than its minimum, or than that of one of its subgroups."""
    bound = [pod for pod in members(seen, group) if pod.spec.node_name and pod.metadata.deletion_timestamp is None]
    of_subgroup = Counter(pod.metadata.labels.get(labels.SUBGROUP, "") for pod in bound)
    parents = {subgroup.parent for subgroup in group.spec.sub_groups}
    lacking = any(
        of_subgroup[subgroup.name] < (subgroup.min_member or 0)
        for subgroup in group.spec.sub_groups
        if subgroup.name not in parents
    )
    return bool(bound) and (lacking or len(bound) < (group.spec.min_member or 0))
