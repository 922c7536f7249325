"""PodCliqueScalingGroups as they should be stored."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.grove.model.layout import Group, Layout
from spinney.grove.model.metadata import metadata_patch, replica_metadata


def scaling_group_body(layout: Layout, group: Group) -> Json:
    """A new scaling group; its replicas are written once, and later only scaled by others."""
    return {
        "metadata": {
            **replica_metadata(layout, group.name, labels.SET_SCALING_GROUP),
            "annotations": _annotations(layout.pcs, group),
            "finalizers": [labels.SCALING_GROUP_FINALIZER],
        },
        "spec": {
            "replicas": group.config.replicas,
            "minAvailable": group.config.min_available,
            "cliqueNames": list(group.config.clique_names),
        },
    }


def scaling_group_patch(layout: Layout, group: Group, stored: PodCliqueScalingGroup) -> Json:
    """What a stored scaling group must change to follow its configuration; never its replicas."""
    patch: Json = {}
    wanted = {"minAvailable": group.config.min_available, "cliqueNames": list(group.config.clique_names)}
    if (stored.spec.min_available, list(stored.spec.clique_names)) != tuple(wanted.values()):
        patch["spec"] = wanted
    if metadata := metadata_patch(stored, {}, _annotations(layout.pcs, group)):
        patch["metadata"] = metadata
    return patch


def _annotations(pcs: PodCliqueSet, group: Group) -> dict[str, str]:
    """A scaling group's own annotations, and the set's MNNVL group where it has none."""
    inherited = {key: value for key, value in pcs.metadata.annotations.items() if key == labels.MNNVL_GROUP}
    return {**inherited, **group.config.annotations}
