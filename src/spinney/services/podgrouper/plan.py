"""What has to change for a group and a pod to be as wanted."""

from __future__ import annotations

import msgspec

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from spinney.kube.desired import Drift, Step, Wanted, owner_uids, plan
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


def plan_group(live: PodGroup | None, grouping: Grouping, settings: Settings) -> Step | None:
    """The step that makes a group as wanted; None if it already is."""
    if live is None:
        # Where a sibling pod's reconcile was faster than our cache, its group is the same as ours.
        return plan(Wanted(PodGroup.resource, _new_group(grouping), adopt=True), None)
    current: Json = msgspec.json.decode(msgspec.json.encode(live))
    wanted = Wanted(PodGroup.resource, _changed_group(current, grouping, settings), Drift.PATCH_EXACTLY, adopt=True)
    return plan(wanted, current)


def _new_group(grouping: Grouping) -> Json:
    return {
        "metadata": {
            "name": grouping.name,
            "namespace": grouping.namespace,
            "labels": grouping.labels,
            "annotations": grouping.annotations,
            "ownerReferences": [grouping.owner],
        },
        "spec": grouping.spec(),
    }


def _changed_group(live: Json, grouping: Grouping, settings: Settings) -> Json:
    """The group as wanted, but for what others decide."""
    wanted = _new_group(grouping)
    metadata, spec, current = wanted["metadata"], wanted["spec"], live["spec"]
    # Where the group is scheduled was decided once; editing the group's own label moves it.
    decided = (settings.node_pool_label, settings.queue_label)
    metadata["labels"] = {key: value for key, value in grouping.labels.items() if key not in decided}
    if grouping.owner["uid"] in owner_uids(live):
        del metadata["ownerReferences"]
    wanted["metadata"] = {key: value for key, value in metadata.items() if value}
    spec.update({key: current[key] for key in _KEPT if key in current})
    if not grouping.topology.name and "topologyConstraint" in current:
        spec["topologyConstraint"] = current["topologyConstraint"]
    return wanted
