"""PodCliqueSets: one group per PodGang."""

from __future__ import annotations

from dataclasses import replace

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.preemption import PREEMPTIBILITIES
from spinney.services.podgrouper.context import Context, annotations_of, dig, labels_of
from spinney.services.podgrouper.defaults import group_under
from spinney.services.podgrouper.grouping import Grouping, GroupingError, SubGroup, Topology

PODGANG = ("scheduler.grove.io/v1alpha1", "PodGang")


async def pod_clique_set(context: Context) -> Grouping:
    """A subgroup per pod group of the gang, and a parent per topology constraint group."""
    name = context.pod.metadata.labels.get(labels.PODGANG)
    if not name:
        raise GroupingError(f"pod {context.pod.name} of a PodCliqueSet has no label {labels.PODGANG}")
    gang = await context.lookup.get(*PODGANG, context.pod.namespace, name)
    if gang is None:
        raise GroupingError(f"PodGang {name} of pod {context.pod.name} is not there yet")
    owner = _with_metadata_of(gang, context.top)
    topology = annotations_of(owner).get(labels.TOPOLOGY_NAME) or annotations_of(owner).get(labels.TOPOLOGY, "")
    roles: list[Json] = dig(gang, "spec", "podgroups") or []
    parents, parent_of = _parents(gang, topology)
    leaves = [
        SubGroup(
            role["name"],
            min_member=int(role.get("minReplicas") or 0),
            parent=parent_of.get(role["name"], ""),
            topology=_constraint(role, topology),
        )
        for role in roles
    ]
    grouping = group_under(context, owner)
    priority_class = labels_of(owner).get(labels.PRIORITY_CLASS) or dig(gang, "spec", "priorityClassName")
    return replace(
        grouping,
        priority_class=priority_class or grouping.priority_class,
        min_member=sum(leaf.min_member or 0 for leaf in leaves),
        subgroups=(*parents, *leaves),
        topology=_filled(_constraint(gang["spec"], topology), grouping.topology),
        pod_subgroup=_role_of(context, roles),
    )


def _filled(own: Topology, wished: Topology) -> Topology:
    """The gang's constraint, completed by that of annotations."""
    return Topology(own.name or wished.name, own.required or wished.required, own.preferred or wished.preferred)


def _with_metadata_of(gang: Json, top: Json) -> Json:
    """The gang with the set's labels and annotations below its own."""
    preemptibility = labels_of(gang).get(labels.PREEMPTIBILITY) or labels_of(top).get(labels.PREEMPTIBILITY)
    if preemptibility and preemptibility not in PREEMPTIBILITIES:
        allowed = " or ".join(PREEMPTIBILITIES)
        raise GroupingError(f"label {labels.PREEMPTIBILITY} is {preemptibility!r}; it must be {allowed}")
    metadata = {
        **gang["metadata"],
        "labels": {**labels_of(top), **labels_of(gang)},
        "annotations": {**annotations_of(top), **annotations_of(gang)},
    }
    return {**gang, "metadata": metadata}


def _parents(gang: Json, topology: str) -> tuple[list[SubGroup], dict[str, str]]:
    parents: list[SubGroup] = []
    parent_of: dict[str, str] = {}
    for config in dig(gang, "spec", "topologyConstraintGroupConfigs") or []:
        names: list[str] = config.get("podGroupNames") or []
        if not names:
            continue
        parents.append(SubGroup(config["name"], min_subgroup=len(names), topology=_constraint(config, topology)))
        parent_of.update(dict.fromkeys(names, config["name"]))
    return parents, parent_of


def _constraint(holder: Json, topology: str) -> Topology:
    pack = dig(holder, "topologyConstraint", "packConstraint") or {}
    required, preferred = pack.get("required") or "", pack.get("preferred") or ""
    if not (required or preferred):
        return Topology()
    if not topology:
        raise GroupingError(
            f"the gang has a topology constraint; annotation {labels.TOPOLOGY_NAME} must name the topology"
        )
    return Topology(topology, required, preferred)


def _role_of(context: Context, roles: list[Json]) -> str:
    own = {"namespace": context.pod.namespace, "name": context.pod.name}
    for role in roles:
        for reference in role.get("podReferences") or []:
            if reference.get("namespace", own["namespace"]) != own["namespace"]:
                raise GroupingError(f"role {role['name']} refers to a pod in namespace {reference['namespace']}")
            if reference["name"] == own["name"]:
                return str(role["name"])
    return ""
