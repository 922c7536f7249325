"""PodCliqueScalingGroups as they should be stored."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.grove.model.layout import Group, Layout
from spinney.grove.model.metadata import name_of, replica_metadata
from spinney.kube.desired import Drift, Wanted


def wanted_scaling_group(layout: Layout, group: Group, stored: PodCliqueScalingGroup | None) -> Wanted:
    """A scaling group; its replicas are written once, and later only scaled by others."""
    spec: Json = {"minAvailable": group.config.min_available, "cliqueNames": list(group.config.clique_names)}
    if stored is not None:
        metadata = name_of(stored)
    else:
        metadata = replica_metadata(layout, group.name, labels.SET_SCALING_GROUP)
        metadata["finalizers"] = [labels.SCALING_GROUP_FINALIZER]
        spec["replicas"] = group.config.replicas
    metadata["annotations"] = _annotations(layout.pcs, group)
    return Wanted(PodCliqueScalingGroup.resource, {"metadata": metadata, "spec": spec}, Drift.PATCH_NAMED)


def _annotations(pcs: PodCliqueSet, group: Group) -> dict[str, str]:
    """A scaling group's own annotations, and the set's MNNVL group where it has none."""
    inherited = {key: value for key, value in pcs.metadata.annotations.items() if key == labels.MNNVL_GROUP}
    return {**inherited, **group.config.annotations}
