"""Kubernetes 1.35: one Workload with one group for the whole gang.

The groups of a Workload are independent, so all roles of a gang become one group with the sum of their minimums. That
is exact because only the minimum of each role is released at first. The surplus is linked too, but stays gated until
the gang is bound.
"""

from __future__ import annotations

from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang
from spinney.api.scheduling import WorkloadV1alpha1
from spinney.backends.building import owned_metadata
from spinney.backends.capabilities import Capabilities, Feature
from spinney.kube.desired import Drift, Wanted

GROUP = "gang"


class Kubernetes135:
    """`scheduling.k8s.io/v1alpha1`."""

    resources: tuple[Resource, ...] = (WorkloadV1alpha1.resource,)
    capabilities = Capabilities(
        WorkloadV1alpha1.resource.api_version,
        frozenset({Feature.TOGETHER, Feature.GROUP_MINIMUM, Feature.ZERO_MINIMUM, Feature.PRIORITY}),
        surplus_held=True,
        in_turn=True,
        remarks=("needs the feature gates GenericWorkload and GangScheduling", "priority by pods only"),
    )

    def objects(self, gang: PodGang) -> tuple[Wanted, ...]:
        """The Workload."""
        body: Json = {
            "metadata": owned_metadata(gang, gang.name),
            "spec": {
                "controllerRef": controller(gang),
                "podGroups": [{"name": GROUP, "policy": policy(total_minimum(gang))}],
            },
        }
        return (Wanted(WorkloadV1alpha1.resource, body, drift=Drift.RECREATE),)

    def link(self, pod: Json, gang: PodGang) -> Json:
        """Every pod is a member."""
        return {"workloadRef": {"name": gang.name, "podGroup": GROUP}}


SHAPE = Kubernetes135()


def controller(gang: PodGang) -> Json:
    """The `controllerRef` of a Workload."""
    return {"apiGroup": PodGang.resource.group, "kind": PodGang.resource.kind, "name": gang.name}


def total_minimum(gang: PodGang) -> int:
    """The sum of the roles' minimums."""
    return sum(group.min_replicas for group in gang.spec.podgroups)


def policy(minimum: int) -> Json:
    """The policy for a minimum; without one, pods are placed one by one, as a gang of 0 is refused."""
    return {"gang": {"minCount": minimum}} if minimum > 0 else {"basic": {}}
