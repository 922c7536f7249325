"""PodCliques as they should be stored."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.grove.model import environment, mnnvl, revisions, startup_order
from spinney.grove.model.layout import Clique, Layout
from spinney.grove.model.metadata import managed, metadata_patch
from spinney.kube.difference import exact_merge_patch


def clique_body(layout: Layout, clique: Clique, owner: PodCliqueSet | PodCliqueScalingGroup) -> Json:
    """A new clique, owned by the set or by its scaling group."""
    pcs = layout.pcs
    revision = revisions.template_hash(clique.template, pcs.spec.template.priority_class_name)
    return {
        "metadata": {
            "name": clique.name,
            "namespace": pcs.namespace,
            "labels": {**_labels(layout, clique), labels.POD_TEMPLATE_HASH: revision},
            "annotations": dict(clique.template.annotations),
            "ownerReferences": [controller_reference(owner)],
            "finalizers": [labels.CLIQUE_FINALIZER],
        },
        "spec": {**_spec(layout, clique), "replicas": clique.template.spec.replicas},
    }


def clique_patch(layout: Layout, clique: Clique, stored: PodClique) -> Json:
    """What a stored clique must change to follow its template; empty where it does."""
    template, priority = clique.template, layout.pcs.spec.template.priority_class_name
    wanted_labels = _labels(layout, clique)
    patch: Json = {}
    if not revisions.is_current(stored, template, priority):
        wanted_labels[labels.POD_TEMPLATE_HASH] = revisions.template_hash(template, priority)
        patch["spec"] = _spec_patch(layout, clique, stored)
    elif stored.spec.min_available != clique.declared_minimum:
        patch["spec"] = {"minAvailable": clique.declared_minimum}
    if metadata := metadata_patch(stored, wanted_labels, template.annotations):
        patch["metadata"] = metadata
    return patch


def _labels(layout: Layout, clique: Clique) -> dict[str, str]:
    """The clique's position, and the labels of its template; without its revision."""
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


def _spec(layout: Layout, clique: Clique) -> Json:
    """The spec but for its replicas, which others may scale."""
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


def _spec_patch(layout: Layout, clique: Clique, stored: PodClique) -> Json:
    """The new spec; its pod spec as a merge patch, with null for members that are gone."""
    wanted = _spec(layout, clique)
    return {**wanted, "podSpec": exact_merge_patch(stored.spec.pod_spec, wanted["podSpec"])}
