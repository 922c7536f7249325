"""The PodGroups of a gang: their names, their members, and their minimums.

Three things that Koordinator does shape them. It remembers a PodGroup by its name after the PodGroup is gone, so names
hold a part of the gang's UID. With its shipped configuration it never tries pods beyond the minimum, so these are no
members. It counts gated pods as present, so no minimum can be reached before every gate is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from spinney.api import labels
from spinney.api.conditions import is_true
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang, PodGroup
from spinney.api.reasons import SCHEDULED
from spinney.backends.building import LABEL_LIMIT, fitted_name, owned_metadata
from spinney.backends.gang_pods import bound, gated

# A minimum that no gang reaches.
HELD = 2**31 - 1
# The value of the annotation for gangs whose PodGroups are named after their roles alone.
BY_ROLE = "role"
# Koordinator's own default; kube-scheduler's framework cuts anything above 15 minutes.
_TIMEOUT_SECONDS = 600


def group_name(gang: PodGang, role: str) -> str:
    """The name of a role's PodGroup: the same for a gang's whole life, and never used again."""
    if named_by_role(gang):
        return fitted_name(role)
    suffix = f"-{gang.uid[:8]}"
    return f"{fitted_name(role, LABEL_LIMIT - len(suffix))}{suffix}"


def named_by_role(gang: PodGang) -> bool:
    """Whether the gang was written before names had a UID in them; its pods carry these names until it ends."""
    return gang.metadata.annotations.get(labels.KOORDINATOR_NAMES) == BY_ROLE


def is_member(gang: PodGang, pod_labels: Mapping[str, str]) -> bool:
    """Whether a pod is one of the first of its role, up to the minimum; a replacement has the same index."""
    role = pod_labels[labels.PODCLIQUE]
    minimum = next((group.min_replicas for group in gang.spec.podgroups if group.name == role), 0)
    if named_by_role(gang):
        return minimum > 0
    return int(pod_labels.get(labels.POD_INDEX, 0)) < minimum


def groups(gang: PodGang, pods: Sequence[Pod] | None, strategy: list[Json]) -> list[Json]:
    """A PodGroup per role with a minimum; each names all of them. `pods` are the gang's living ones, if known."""
    roles = [group for group in gang.spec.podgroups if group.min_replicas > 0]
    names = [f"{gang.namespace}/{group_name(gang, role.name)}" for role in roles]
    held = pods is not None and is_held(gang, pods)
    return [_group(gang, role, names, HELD if held else _minimum(gang, role, pods), strategy) for role in roles]


def is_held(gang: PodGang, pods: Sequence[Pod]) -> bool:
    """Whether a gang's pods are not all free to be placed yet.

    Koordinator would take gated pods for placeable ones, and bind the others without them.
    """
    if named_by_role(gang) or is_true(gang.status.conditions, SCHEDULED) or any(map(bound, pods)):
        return False
    return any(
        group.pod_references and _count(gang, group, (pod for pod in pods if not gated(pod))) < group.min_replicas
        for group in gang.spec.podgroups
    )


def _minimum(gang: PodGang, role: PodGroup, pods: Sequence[Pod] | None) -> int:
    """The role's minimum; after it was raised, at most the number of members that exist."""
    if pods is None or named_by_role(gang):
        return role.min_replicas
    complete = sum(pod.metadata.labels.get(labels.PODCLIQUE) == role.name for pod in pods) >= len(role.pod_references)
    members = _count(gang, role, pods)
    return min(role.min_replicas, members) if complete and members else role.min_replicas


def _count(gang: PodGang, role: PodGroup, pods: Iterable[Pod]) -> int:
    name = group_name(gang, role.name)
    return sum(pod.metadata.labels.get(labels.KOORDINATOR_POD_GROUP) == name for pod in pods)


def _group(gang: PodGang, role: PodGroup, names: list[str], minimum: int, strategy: list[Json]) -> Json:
    members = max(len(role.pod_references), role.min_replicas) if named_by_role(gang) else role.min_replicas
    annotations = {
        labels.KOORDINATOR_GROUPS: _compact(names),
        labels.KOORDINATOR_MODE: "Strict",
        # With once-satisfied, a gang that lost all its pods would be placed one by one the second time.
        labels.KOORDINATOR_MATCH_POLICY: "once-satisfied" if named_by_role(gang) else "waiting-and-running",
        labels.KOORDINATOR_TOTAL: str(max(members, minimum)),
        labels.KOORDINATOR_TOPOLOGY: _compact({"gatherStrategy": strategy}) if strategy else None,
    }
    return {
        "metadata": owned_metadata(gang, group_name(gang, role.name), annotations),
        "spec": {"minMember": minimum, "scheduleTimeoutSeconds": _TIMEOUT_SECONDS},
    }


def _compact(value: object) -> str:
    return msgspec.json.encode(value).decode()
