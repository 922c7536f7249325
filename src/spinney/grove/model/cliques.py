"""PodCliques as they should be stored."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.grove.model import environment, mnnvl, revisions, startup_order
from spinney.grove.model.layout import Clique, Layout
from spinney.grove.model.metadata import managed, name_of
from spinney.kube.desired import Drift, Wanted


def new_clique(layout: Layout, clique: Clique, owner: PodCliqueSet | PodCliqueScalingGroup) -> Wanted:
    """A clique that is not stored yet, owned by the set or by its scaling group."""
    metadata = {
        "name": clique.name,
        "namespace": layout.pcs.namespace,
        "ownerReferences": [controller_reference(owner)],
        "finalizers": [labels.CLIQUE_FINALIZER],
    }
    spec = {**_spec(layout, clique), "replicas": clique.template.spec.replicas}
    return _wanted(layout, clique, metadata, spec, _revision(layout, clique))


def changed_clique(layout: Layout, clique: Clique, stored: PodClique) -> Wanted:
    """A stored clique that follows its template; where it has the content already, revision and pod spec stay."""
    if revisions.is_current(stored, clique.template, layout.pcs.spec.template.priority_class_name):
        return _wanted(layout, clique, name_of(stored), {"minAvailable": clique.declared_minimum}, {})
    return _wanted(layout, clique, name_of(stored), _spec(layout, clique), _revision(layout, clique))


def _wanted(layout: Layout, clique: Clique, metadata: Json, spec: Json, revision: Json) -> Wanted:
    metadata["labels"] = {**_labels(layout, clique), **revision}
    metadata["annotations"] = clique.template.annotations
    return Wanted(PodClique.resource, {"metadata": metadata, "spec": spec}, Drift.PATCH_NAMED)


def _revision(layout: Layout, clique: Clique) -> Json:
    priority = layout.pcs.spec.template.priority_class_name
    return {labels.POD_TEMPLATE_HASH: revisions.template_hash(clique.template, priority)}


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
