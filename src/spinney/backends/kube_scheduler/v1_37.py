"""Kubernetes 1.37 without CompositePodGroup: a Workload and one flat PodGroup.

One gated pod holds its whole group in 1.37, so the surplus, which is gated, stays outside.
"""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang
from spinney.api.scheduling import PodGroupV1beta1, WorkloadV1beta1
from spinney.backends.building import owned_metadata
from spinney.backends.capabilities import Capabilities, Feature, Loss
from spinney.backends.kube_scheduler.v1_35 import GROUP, controller, policy, total_minimum
from spinney.backends.kube_scheduler.v1_36 import topology
from spinney.backends.required_features import packed_whole
from spinney.kube.desired import Drift, Wanted

GATES = "needs the feature gate GenericWorkload"


class Flat:
    """`scheduling.k8s.io/v1beta1`."""

    resources: tuple[Resource, ...] = (WorkloadV1beta1.resource, PodGroupV1beta1.resource)
    capabilities = Capabilities(
        PodGroupV1beta1.resource.api_version,
        frozenset(
            {
                Feature.TOGETHER,
                Feature.GROUP_MINIMUM,
                Feature.ZERO_MINIMUM,
                Feature.MUTABLE_MINIMUM,
                Feature.GANG_REQUIRED,
                Feature.PRIORITY,
            }
        ),
        surplus_held=True,
        surplus_outside=True,
        status="PodGroup condition PodGroupInitiallyScheduled, pods",
        remarks=(
            GATES,
            "pods beyond the minimum stand outside the gang; they get its required domain as a node selector",
        ),
    )

    def objects(self, gang: PodGang) -> tuple[Wanted, ...]:
        """The Workload and its one PodGroup."""
        group = group_spec(gang, policy(total_minimum(gang)), packed_whole(gang)[0])
        return (
            workload(gang, {"podGroupTemplates": [{"name": GROUP, **group}]}),
            pod_group(gang, gang.name, {**template_of(gang, GROUP), **group}),
        )

    def link(self, pod: Json, gang: PodGang) -> Json:
        """The first pods of each role, up to its minimum, are members; a replacement has the same index."""
        own = pod["metadata"]["labels"]
        minimum = next((g.min_replicas for g in gang.spec.podgroups if g.name == own[labels.PODCLIQUE]), 0)
        inside = int(own.get(labels.POD_INDEX, 0)) < minimum
        return {"schedulingGroup": {"podGroupName": gang.name}} if inside else {}


SHAPE = Flat()


def group_spec(gang: PodGang, scheduling_policy: Json, key: str) -> Json:
    """The fields that groups, composite groups and their templates have in common."""
    fields: Json = {"schedulingPolicy": scheduling_policy, **topology(key), "disruptionMode": {"all": {}}}
    # Every pod's priority must equal its group's, all the way up to the root.
    if gang.spec.priority_class_name:
        fields["priorityClassName"] = gang.spec.priority_class_name
    return fields


def template_of(gang: PodGang, name: str) -> Json:
    """The reference of a group to its template in the gang's Workload."""
    return {"workloadRef": {"workloadName": gang.name, "templateName": name}}


def workload(gang: PodGang, templates: Json) -> Wanted:
    """The Workload, which kube-scheduler does not read."""
    body = {"metadata": owned_metadata(gang, gang.name), "spec": {"controllerRef": controller(gang), **templates}}
    return Wanted(WorkloadV1beta1.resource, body, Drift.IGNORE)


def pod_group(gang: PodGang, name: str, spec: Json) -> Wanted:
    """A group of pods; of its spec only the minimum can change, and a gang cannot become basic."""
    body = {"metadata": owned_metadata(gang, name), "spec": spec}
    return Wanted(PodGroupV1beta1.resource, body, Drift.PATCH, gated(gang, spec), frozenset({"schedulingPolicy"}))


def gated(gang: PodGang, spec: Json) -> dict[str, Loss | None]:
    """The API server drops topology silently if TopologyAwareWorkloadScheduling is off."""
    if "schedulingConstraints" not in spec:
        return {}
    key = spec["schedulingConstraints"]["topology"][0]["key"]
    return {"schedulingConstraints": Loss(Feature.GANG_REQUIRED, "spec.topologyConstraint", key)}
