"""The objects between a set and its pods, as they should be: scaling groups, cliques and headless Services."""

from __future__ import annotations

from typing import Any

from spinney.api import labels
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.labels import MNNVL_GROUP
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_reference
from spinney.grove.model import environment, mnnvl, names, revisions, startup_order
from spinney.grove.model.layout import Clique, Group, Layout
from spinney.grove.model.metadata import managed


def service(layout: Layout) -> Json:
    """The headless Service that gives a replica's pods their DNS names."""
    pcs = layout.pcs
    name = names.replica(pcs.name, layout.index)
    config = pcs.spec.template.headless_service_config
    return {
        "metadata": {
            "name": name,
            "namespace": pcs.namespace,
            "labels": {
                **managed(pcs.name, name, labels.HEADLESS_SERVICE),
                labels.SET_REPLICA_INDEX: str(layout.index),
            },
            "ownerReferences": [controller_reference(pcs)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {
                labels.MANAGED_BY: labels.GROVE_OPERATOR,
                labels.PART_OF: pcs.name,
                labels.SET_REPLICA_INDEX: str(layout.index),
            },
            "publishNotReadyAddresses": config.publish_not_ready_addresses if config else True,
        },
    }


def scaling_group(layout: Layout, group: Group) -> Json:
    """A scaling group; its replicas are written once, then belong to whoever scales it."""
    pcs = layout.pcs
    return {
        "metadata": {
            "name": group.name,
            "namespace": pcs.namespace,
            "labels": {
                **managed(pcs.name, group.name, labels.SET_SCALING_GROUP),
                labels.SET_REPLICA_INDEX: str(layout.index),
            },
            "annotations": group_annotations(pcs, group),
            "ownerReferences": [controller_reference(pcs)],
            "finalizers": [labels.SCALING_GROUP_FINALIZER],
        },
        "spec": {
            "replicas": group.config.replicas,
            "minAvailable": group.config.min_available,
            "cliqueNames": list(group.config.clique_names),
        },
    }


def group_annotations(pcs: PodCliqueSet, group: Group) -> dict[str, str]:
    """A scaling group's own annotations, and the set's MNNVL group where it has none."""
    inherited = {key: value for key, value in pcs.metadata.annotations.items() if key == MNNVL_GROUP}
    return {**inherited, **group.config.annotations}


def clique_labels(layout: Layout, clique: Clique) -> dict[str, str]:
    """Where a clique stands, and what the user put on it; without its revision."""
    place = {
        **clique.template.labels,
        **managed(layout.pcs.name, clique.name, labels.GROUP_CLIQUE if clique.group else labels.SET_CLIQUE),
        labels.SET_REPLICA_INDEX: str(layout.index),
        labels.PODGANG: clique.gang,
    }
    if clique.base_gang:
        place[labels.BASE_PODGANG] = clique.base_gang
    if clique.group:
        place[labels.SCALING_GROUP] = clique.group
        place[labels.SCALING_GROUP_REPLICA_INDEX] = str(clique.group_index)
    return place


def clique_spec(layout: Layout, clique: Clique) -> Json:
    """What a clique's pods are made from; everything of its spec but the replicas, which others may scale."""
    template = clique.template.spec
    pod_spec = environment.with_variables(template.pod_spec, environment.group_variables(layout, clique))
    spec: Json = {
        "roleName": template.role_name or clique.template.name,
        "podSpec": mnnvl.joined(pod_spec, layout, clique),
        "minAvailable": clique.declared_minimum,
    }
    parents = startup_order.parents(layout, clique)
    if parents:
        spec["startsAfter"] = [parent.name for parent in parents]
    if template.auto_scaling_config is not None:
        scaling = template.auto_scaling_config
        spec["autoScalingConfig"] = {
            "minReplicas": scaling.min_replicas if scaling.min_replicas is not None else template.replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": list(scaling.metrics),
        }
    return spec


def clique(layout: Layout, clique: Clique, owner: PodCliqueSet | PodCliqueScalingGroup) -> Json:
    """A new clique, owned by the set, or by its scaling group."""
    pcs = layout.pcs
    revision = revisions.template_hash(clique.template, pcs.spec.template.priority_class_name)
    return {
        "metadata": {
            "name": clique.name,
            "namespace": pcs.namespace,
            "labels": {**clique_labels(layout, clique), labels.POD_TEMPLATE_HASH: revision},
            "annotations": dict(clique.template.annotations),
            "ownerReferences": [controller_reference(owner)],
            "finalizers": [labels.CLIQUE_FINALIZER],
        },
        "spec": {**clique_spec(layout, clique), "replicas": clique.template.spec.replicas},
    }


def clique_patch(layout: Layout, clique: Clique, found: PodClique) -> Json:
    """What an existing clique must change to follow its template; empty where it does."""
    pcs = layout.pcs
    template = clique.template
    wanted_labels = clique_labels(layout, clique)
    patch: Json = {}
    if not revisions.is_current(found, template, pcs.spec.template.priority_class_name):
        wanted_labels[labels.POD_TEMPLATE_HASH] = revisions.template_hash(
            template, pcs.spec.template.priority_class_name
        )
        patch["spec"] = _spec_patch(layout, clique, found)
    elif found.spec.min_available != clique.declared_minimum:
        patch["spec"] = {"minAvailable": clique.declared_minimum}
    metadata = _metadata_patch(found, wanted_labels, template.annotations)
    if metadata:
        patch["metadata"] = metadata
    return patch


def _spec_patch(layout: Layout, clique: Clique, found: PodClique) -> Json:
    """The new pod spec as a merge patch: members that went are named with null, lists go whole."""
    wanted = clique_spec(layout, clique)
    return {**wanted, "podSpec": merge_patch(found.spec.pod_spec, wanted["podSpec"])}


def merge_patch(old: Json, new: Json) -> Json:
    """The merge patch that turns one map into another."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        known: Any = old.get(key)
        if known == value:
            continue
        patch[key] = merge_patch(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return patch


def _metadata_patch(found: Object, wanted: dict[str, str], annotations: dict[str, str]) -> Json:
    patch: Json = {}
    changed = {key: value for key, value in wanted.items() if found.metadata.labels.get(key) != value}
    if changed:
        patch["labels"] = changed
    noted = {key: value for key, value in annotations.items() if found.metadata.annotations.get(key) != value}
    if noted:
        patch["annotations"] = noted
    return patch


def group_patch(layout: Layout, group: Group, found: PodCliqueScalingGroup) -> Json:
    """What an existing scaling group must change to follow its configuration; never its replicas."""
    patch: Json = {}
    wanted = {"minAvailable": group.config.min_available, "cliqueNames": list(group.config.clique_names)}
    if (found.spec.min_available, list(found.spec.clique_names)) != tuple(wanted.values()):
        patch["spec"] = wanted
    metadata = _metadata_patch(found, {}, group_annotations(layout.pcs, group))
    if metadata:
        patch["metadata"] = metadata
    return patch
