"""Koordinator's PodGroup, which it serves under scheduling.sigs.k8s.io, without a status subresource."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from spinney.api.meta import Object, Resource, Struct
from spinney.api.quantity import ResourceList
from spinney.api.schema import Definition, Int32

# The administrator's; we only look at it.
CLUSTER_NETWORK_TOPOLOGY = Resource(
    "scheduling.koordinator.sh/v1alpha1", "ClusterNetworkTopology", "clusternetworktopologies", namespaced=False
)

# A quota, which the label of a pod names; quotas of all namespaces share their names.
ELASTIC_QUOTA = Resource("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "elasticquotas")


class PodGroupSpec(Struct, frozen=True):
    """The minimum of pods, and how long to wait for them."""

    min_member: Int32 = 0
    min_resources: ResourceList = {}
    schedule_timeout_seconds: Int32 | None = None


class PodGroupStatus(Struct, frozen=True):
    """The status of a group."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: Int32 = 0
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    schedule_start_time: datetime | None = None


class PodGroup(Object, frozen=True):
    """A gang, as Koordinator reads it."""

    resource: ClassVar[Resource] = Resource("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "podgroups")
    crd: ClassVar[Definition] = Definition(
        status=False,
        # The API server refuses a k8s.io group without the approval that its owners published.
        annotations={"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"},
    )

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
