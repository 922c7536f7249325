"""What has to change for a group and a pod to be as wanted."""

from __future__ import annotations

import msgspec

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from spinney.kube.difference import exact_merge_patch, merge_patch
from spinney.services.podgrouper.context import Settings
from spinney.services.podgrouper.grouping import Grouping

# Parts of a live group's spec that others own: the scheduler, and whoever moved the group to another queue.
_KEPT = ("markUnschedulable", "schedulingBackoff", "queue")


def plan_pod(pod: Pod, grouping: Grouping) -> Json | None:
    """The merge patch that points a pod to its group; None where it does already."""
    metadata: Json = {}
    if pod.metadata.annotations.get(labels.POD_GROUP) != grouping.name:
        metadata["annotations"] = {labels.POD_GROUP: grouping.name}
    if pod.metadata.labels.get(labels.SUBGROUP, "") != grouping.pod_subgroup:
        metadata["labels"] = {labels.SUBGROUP: grouping.pod_subgroup or None}
    return {"metadata": metadata} if metadata else None


def plan_group(live: PodGroup, grouping: Grouping, settings: Settings) -> Json | None:
    """The merge patch that brings a live group to what is wanted; None where it is there already."""
    metadata: Json = {}
    own_labels = {
        key: value
        for key, value in grouping.labels.items()
        # Where the group is scheduled was decided once; editing the group's own label moves it.
        if key not in (settings.node_pool_label, settings.queue_label)
    }
    if missing := merge_patch(live.metadata.labels, own_labels):
        metadata["labels"] = missing
    if missing := merge_patch(live.metadata.annotations, grouping.annotations):
        metadata["annotations"] = missing
    if not any(owner.uid == grouping.owner["uid"] for owner in live.metadata.owner_references):
        metadata["ownerReferences"] = [grouping.owner]
    current = msgspec.to_builtins(live.spec)
    wanted = grouping.spec()
    wanted.update({key: current[key] for key in _KEPT if key in current})
    if not grouping.topology.name and "topologyConstraint" in current:
        wanted["topologyConstraint"] = current["topologyConstraint"]
    patch: Json = {}
    if metadata:
        patch["metadata"] = metadata
    if spec := exact_merge_patch(current, wanted):
        patch["spec"] = spec
    return patch or None
