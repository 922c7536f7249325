"""scheduling.k8s.io: priority classes, and the gang APIs of Kubernetes 1.35, 1.36 and 1.37, which share no version."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Condition, Json, Object, Resource, Struct
from spinney.api.pod import PodResourceClaim, ResourceClaimStatus


class PriorityClass(Object, frozen=True):
    """A named priority."""

    resource: ClassVar[Resource] = Resource(
        "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False
    )

    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
    description: str = ""


class Gang(Struct, frozen=True):
    """The minimum of pods, or of groups in a composite group, that are placed together."""

    min_count: int = 0
    min_group_count: int = 0


class Policy(Struct, frozen=True):
    """How the pods of a group are scheduled: one by one (basic) or together (gang)."""

    basic: Json | None = None
    gang: Gang | None = None


class TypedReference(Struct, frozen=True):
    """The object that a Workload describes."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class PodGroupV1alpha1(Struct, frozen=True):
    """A group inside a Workload of 1.35."""

    name: str = ""
    policy: Policy = Policy()


class TopologyKey(Struct, frozen=True):
    """A node label whose domains bound a group."""

    key: str = ""


class Constraints(Struct, frozen=True):
    """The topology constraint of a group."""

    topology: tuple[TopologyKey, ...] = ()


class PodGroupTemplate(Struct, frozen=True):
    """A group that a Workload announces, 1.36 and later; composite ones (1.37) hold others."""

    name: str = ""
    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints | None = None
    disruption_mode: str | Json | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class WorkloadSpec(Struct, frozen=True):
    """The groups of a workload, in the shape of whichever version serves it."""

    controller_ref: TypedReference | None = None
    pod_groups: tuple[PodGroupV1alpha1, ...] = ()
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class WorkloadV1alpha1(Object, frozen=True):
    """A workload on Kubernetes 1.35; kube-scheduler reads its groups."""

    resource: ClassVar[Resource] = Resource("scheduling.k8s.io/v1alpha1", "Workload", "workloads")

    spec: WorkloadSpec = WorkloadSpec()


class WorkloadV1alpha2(Object, frozen=True):
    """A workload on Kubernetes 1.36; kube-scheduler reads PodGroups only."""

    resource: ClassVar[Resource] = Resource("scheduling.k8s.io/v1alpha2", "Workload", "workloads")

    spec: WorkloadSpec = WorkloadSpec()


class WorkloadV1beta1(Object, frozen=True):
    """A workload on Kubernetes 1.37."""

    resource: ClassVar[Resource] = Resource("scheduling.k8s.io/v1beta1", "Workload", "workloads")

    spec: WorkloadSpec = WorkloadSpec()


class WorkloadTemplateRef(Struct, frozen=True):
    """The template of a Workload that a group follows, as 1.36 names it."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateRef(Struct, frozen=True):
    """Wraps the reference of 1.36."""

    workload: WorkloadTemplateRef | None = None


class TemplateRef(Struct, frozen=True):
    """The template of a Workload that a group follows, as 1.37 names it."""

    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(Struct, frozen=True):
    """A gang at run time, 1.36 and later."""

    parent_composite_pod_group_name: str = ""
    pod_group_template_ref: PodGroupTemplateRef | None = None
    workload_ref: TemplateRef | None = None
    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints | None = None
    disruption_mode: str | Json | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodGroupStatus(Struct, frozen=True):
    """The conditions of a gang from kube-scheduler; True is kept."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] = ()


class PodGroupV1alpha2(Object, frozen=True):
    """A gang on Kubernetes 1.36."""

    resource: ClassVar[Resource] = Resource("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups")

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class PodGroupV1beta1(Object, frozen=True):
    """A gang on Kubernetes 1.37."""

    resource: ClassVar[Resource] = Resource("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups")

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CompositePodGroup(Object, frozen=True):
    """A gang of gangs on Kubernetes 1.37."""

    resource: ClassVar[Resource] = Resource("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "compositepodgroups")

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
