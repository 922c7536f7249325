"""Kubernetes 1.36: a Workload, which is only a template, and the one PodGroup that kube-scheduler reads.

Flattened as for 1.35, but the group can be confined to one topology domain, which the linked surplus shares.
"""

from __future__ import annotations

from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang
from spinney.api.scheduling import PodGroupV1alpha2, WorkloadV1alpha2
from spinney.backends.building import owned_metadata
from spinney.backends.capabilities import Capabilities, Feature, Loss
from spinney.backends.kube_scheduler.v1_35 import GROUP, controller, policy, total_minimum
from spinney.backends.required_features import packed_whole
from spinney.kube.desired import Drift, Wanted


class Kubernetes136:
    """`scheduling.k8s.io/v1alpha2`."""

    resources: tuple[Resource, ...] = (WorkloadV1alpha2.resource, PodGroupV1alpha2.resource)
    capabilities = Capabilities(
        PodGroupV1alpha2.resource.api_version,
        frozenset(
            {
                Feature.TOGETHER,
                Feature.GROUP_MINIMUM,
                Feature.ZERO_MINIMUM,
                Feature.GANG_REQUIRED,
                Feature.PRIORITY,
            }
        ),
        surplus_held=True,
        status="PodGroup condition PodGroupScheduled, pods",
        remarks=(
            "needs the feature gates GenericWorkload and GangScheduling",
            "topology needs TopologyAwareWorkloadScheduling, priority of the gang WorkloadAwarePreemption",
        ),
    )

    def objects(self, gang: PodGang) -> tuple[Wanted, ...]:
        """Workload first: the API server refuses a PodGroup whose template does not exist."""
        group = {
            "schedulingPolicy": policy(total_minimum(gang)),
            **topology(packed_whole(gang)[0]),
            "disruptionMode": "PodGroup",
            "priorityClassName": gang.spec.priority_class_name or None,
        }
        template = {"name": GROUP, **{key: value for key, value in group.items() if value is not None}}
        workload: Json = {
            "metadata": owned_metadata(gang, gang.name),
            "spec": {"controllerRef": controller(gang), "podGroupTemplates": [template]},
        }
        pod_group: Json = {
            "metadata": owned_metadata(gang, gang.name),
            "spec": {
                "podGroupTemplateRef": {"workload": {"workloadName": gang.name, "podGroupTemplateName": GROUP}},
                **group,
            },
        }
        return (
            Wanted(WorkloadV1alpha2.resource, workload, Drift.IGNORE),
            Wanted(PodGroupV1alpha2.resource, pod_group, Drift.REPORT, _gated(gang)),
        )

    def link(self, pod: Json, gang: PodGang) -> Json:
        """Every pod is a member."""
        return {"schedulingGroup": {"podGroupName": gang.name}}


SHAPE = Kubernetes136()


def topology(key: str) -> Json:
    """The fields that confine a group to one domain of a node label."""
    return {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}


def _gated(gang: PodGang) -> dict[str, Loss | None]:
    """The fields that the API server drops silently if a feature gate is off, and what is lost with them."""
    key = packed_whole(gang)[0]
    loss = Loss(Feature.GANG_REQUIRED, "spec.topologyConstraint.packConstraint.required", key) if key else None
    return {"schedulingConstraints": loss, "disruptionMode": None, "priorityClassName": None}
