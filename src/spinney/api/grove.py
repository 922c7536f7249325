"""grove.io: PodCliqueSets and the objects that the operator creates for them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from spinney.api import groverules
from spinney.api.groverules import MANY, NAME
from spinney.api.meta import Conditions, Json, Object, Resource, Struct
from spinney.api.resource import ResourceClaimTemplateSpec
from spinney.api.schema import (
    AGE,
    ATOMIC,
    REQUIRED,
    Column,
    Definition,
    Int32,
    Int64,
    Scale,
    default,
    enum,
    list_map,
    rule,
    rules,
    schema,
)

VERSION = "grove.io/v1alpha1"
# More than a cluster can hold: a slip of the finger is refused, through the scale subresource as well.
MOST_REPLICAS = 100_000

_DOMAIN = schema(minLength=1, maxLength=63, pattern="^[a-z][a-z0-9-]*$")
_LABEL_KEY = schema(
    minLength=1,
    maxLength=63,
    pattern="^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
)
_SCOPE = enum("AllReplicas", "PerReplica")
_MIN_BREACHED = Column(
    "MinBreached", '.status.conditions[?(@.type=="MinAvailableBreached")].status', "string", wide=True
)


class Pack(Struct, frozen=True):
    """The domain that pods must, or should, share."""

    rules: ClassVar[tuple[Json, ...]] = (
        rule(
            "has(self.required) || has(self.preferred)",
            "pack must specify at least one of required or preferred",
            reason="FieldValueRequired",
        ),
    )

    required: Annotated[str, _DOMAIN] = ""
    preferred: Annotated[str, _DOMAIN] = ""


class TopologyConstraint(Struct, frozen=True):
    """The topology domains in which pods are packed."""

    rules: ClassVar[tuple[Json, ...]] = groverules.TOPOLOGY_CONSTRAINT

    topology_name: Annotated[str, schema(maxLength=253)] = ""
    pack: Pack | None = None
    pack_domain: Annotated[str, _DOMAIN] = ""

    @property
    def required(self) -> str:
        """The domain that must be shared, in either spelling."""
        return (self.pack.required if self.pack else "") or self.pack_domain

    @property
    def preferred(self) -> str:
        """The domain that should be shared."""
        return self.pack.preferred if self.pack else ""


class AutoScalingConfig(Struct, frozen=True):
    """Bounds and metrics of the autoscaler that is made for a clique or scaling group."""

    rules: ClassVar[tuple[Json, ...]] = groverules.AUTOSCALING

    min_replicas: Int32 | None = None
    max_replicas: Annotated[Int32, REQUIRED] = 0
    metrics: Annotated[tuple[Json, ...], ATOMIC] = ()


class PodCliqueSpec(Struct, frozen=True):
    """The pods of one role; the pod spec is kept as the user wrote it."""

    role_name: str = ""
    pod_spec: Annotated[Json, REQUIRED] = {}
    replicas: Annotated[Int32, REQUIRED, schema(maximum=MOST_REPLICAS)] = 0
    min_available: Int32 | None = None
    starts_after: tuple[str, ...] = ()
    auto_scaling_config: AutoScalingConfig | None = None


class PodCliqueTemplateSpec(PodCliqueSpec, frozen=True):
    """A clique's spec inside a set, where limits keep validation rules cheap."""

    role_name: Annotated[str, NAME] = ""
    starts_after: Annotated[tuple[Annotated[str, NAME], ...], MANY] = ()


class RollingUpdate(Struct, frozen=True):
    """The speed of an update, and when it counts as stuck."""

    max_unavailable: int | str | None = None
    progress_deadline: str = ""


class ResourceSharing(Struct, frozen=True):
    """A device claim that the pods of a clique share."""

    name: Annotated[str, REQUIRED] = ""
    namespace: str = ""
    scope: Annotated[str, _SCOPE, REQUIRED] = ""


class CliqueFilter(Struct, frozen=True):
    """The cliques of a scaling group that share a claim."""

    child_clique_names: tuple[str, ...] = ()


class GroupResourceSharing(Struct, frozen=True):
    """A device claim that cliques of a scaling group share."""

    name: Annotated[str, REQUIRED] = ""
    namespace: str = ""
    scope: Annotated[str, _SCOPE, REQUIRED] = ""
    filter: CliqueFilter | None = None


class ChildFilter(Struct, frozen=True):
    """The cliques and scaling groups of a set that share a claim."""

    child_clique_names: tuple[str, ...] = ()
    child_scaling_group_names: tuple[str, ...] = ()


class SetResourceSharing(Struct, frozen=True):
    """A device claim that children of a set share."""

    name: Annotated[str, REQUIRED] = ""
    namespace: str = ""
    scope: Annotated[str, _SCOPE, REQUIRED] = ""
    filter: ChildFilter | None = None


class PodCliqueTemplate(Struct, frozen=True):
    """A clique that every replica of the set has."""

    rules: ClassVar[tuple[Json, ...]] = groverules.CLIQUE_TEMPLATE

    name: Annotated[str, NAME, REQUIRED] = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    topology_constraint: TopologyConstraint | None = None
    resource_sharing: tuple[ResourceSharing, ...] = ()
    rolling_update: RollingUpdate | None = None
    spec: Annotated[PodCliqueTemplateSpec, REQUIRED] = PodCliqueTemplateSpec()


class ScalingGroupConfig(Struct, frozen=True):
    """Cliques that scale together."""

    rules: ClassVar[tuple[Json, ...]] = groverules.SCALING_GROUP

    name: Annotated[str, NAME, REQUIRED] = ""
    clique_names: Annotated[tuple[Annotated[str, NAME], ...], MANY, REQUIRED] = ()
    annotations: dict[str, str] = {}
    replicas: Annotated[Int32, default(1), schema(maximum=MOST_REPLICAS)] = 1
    min_available: Annotated[Int32, default(1)] = 1
    scale_config: AutoScalingConfig | None = None
    resource_sharing: tuple[GroupResourceSharing, ...] = ()
    rolling_update: RollingUpdate | None = None
    topology_constraint: TopologyConstraint | None = None


class HeadlessServiceConfig(Struct, frozen=True):
    """The service that gives pods their DNS names."""

    publish_not_ready_addresses: Annotated[bool, default(True), REQUIRED] = True


class ResourceClaimTemplateConfig(Struct, frozen=True):
    """A device claim template that lives in the set."""

    name: Annotated[str, REQUIRED] = ""
    template_spec: Annotated[ResourceClaimTemplateSpec, REQUIRED] = ResourceClaimTemplateSpec()


class PodCliqueSetTemplate(Struct, frozen=True):
    """The template of every replica of the set."""

    rules: ClassVar[tuple[Json, ...]] = groverules.TEMPLATE

    cliques: Annotated[tuple[PodCliqueTemplate, ...], list_map("name"), MANY, REQUIRED] = ()
    clique_startup_type: Annotated[
        str,
        enum("CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"),
        default("CliqueStartupTypeAnyOrder"),
    ] = "CliqueStartupTypeAnyOrder"
    priority_class_name: str = ""
    headless_service_config: HeadlessServiceConfig | None = None
    topology_constraint: TopologyConstraint | None = None
    termination_delay: Annotated[str, rules(groverules.TERMINATION_DELAY)] = ""
    resource_claim_templates: tuple[ResourceClaimTemplateConfig, ...] = ()
    resource_sharing: tuple[SetResourceSharing, ...] = ()
    pod_clique_scaling_groups: Annotated[tuple[ScalingGroupConfig, ...], list_map("name"), MANY] = ()


class UpdateStrategy(Struct, frozen=True):
    """Whether the operator replaces pods of an old revision, or waits until someone deletes them."""

    type: Annotated[str, enum("RollingRecreate", "OnDelete"), default("RollingRecreate")] = "RollingRecreate"


class PodCliqueSetSpec(Struct, frozen=True):
    """The replicas of a set, their template and update strategy."""

    replicas: Annotated[Int32, schema(minimum=0, maximum=MOST_REPLICAS), default(0)] = 0
    update_strategy: UpdateStrategy | None = None
    template: Annotated[PodCliqueSetTemplate, REQUIRED] = PodCliqueSetTemplate()


class LastError(Struct, frozen=True):
    """An error of the last reconcile."""

    code: Annotated[str, REQUIRED] = ""
    description: Annotated[str, REQUIRED] = ""
    observed_at: Annotated[datetime | None, REQUIRED] = None


class PodGangSummary(Struct, frozen=True):
    """A gang of the set, as the set's status shows it."""

    name: Annotated[str, REQUIRED] = ""
    phase: Annotated[str, enum("Pending", "Starting", "Running", "Failed", "Succeeded"), REQUIRED] = ""
    conditions: Conditions = ()


class ReplicaUpdate(Struct, frozen=True):
    """A replica of the set that is being updated."""

    replica_index: Annotated[Int32, REQUIRED] = 0
    update_started_at: datetime | None = None
    update_ended_at: datetime | None = None


class SetUpdateProgress(Struct, frozen=True):
    """The progress of a set's update."""

    update_started_at: datetime | None = None
    update_ended_at: datetime | None = None
    updated_pod_cliques_count: Annotated[Int32, default(0)] = 0
    total_pod_cliques_count: Annotated[Int32, default(0)] = 0
    updated_pod_clique_scaling_groups_count: Annotated[Int32, default(0)] = 0
    total_pod_clique_scaling_groups_count: Annotated[Int32, default(0)] = 0
    currently_updating: tuple[ReplicaUpdate, ...] = ()


class PodCliqueSetStatus(Struct, frozen=True):
    """The status of a set; `ready` is the `available/wanted` of `kubectl get pcs`."""

    observed_generation: Int64 | None = None
    conditions: Conditions = ()
    last_errors: tuple[LastError, ...] = ()
    replicas: Int32 = 0
    ready: str = ""
    updated_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    available_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    hpa_pod_selector: str = ""
    current_generation_hash: str = ""
    pod_gang_statuses: tuple[PodGangSummary, ...] = ()
    update_progress: SetUpdateProgress | None = None


class PodCliqueSet(Object, frozen=True):
    """A workload made of roles that are placed together, replicated as a whole."""

    resource: ClassVar[Resource] = Resource(VERSION, "PodCliqueSet", "podcliquesets")
    crd: ClassVar[Definition] = Definition(
        short_names=("pcs",),
        scale=Scale(".status.hpaPodSelector"),
        columns=(
            Column("Replicas", ".spec.replicas"),
            Column("Ready", ".status.ready", "string"),
            Column("Available", ".status.availableReplicas"),
            Column("Updated", ".status.updatedReplicas"),
            Column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            Column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            Column("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            Column("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
            AGE,
        ),
    )
    rules: ClassVar[tuple[Json, ...]] = groverules.SET

    spec: Annotated[PodCliqueSetSpec, REQUIRED] = PodCliqueSetSpec()
    status: PodCliqueSetStatus = PodCliqueSetStatus()


class PodsSelected(Struct, frozen=True):
    """Ready pods that an update replaces one by one."""

    current: Annotated[str, REQUIRED] = ""
    completed: tuple[str, ...] = ()


class CliqueUpdateProgress(Struct, frozen=True):
    """The progress of a clique's update."""

    update_started_at: datetime | None = None
    update_ended_at: datetime | None = None
    pod_clique_set_generation_hash: Annotated[str, REQUIRED] = ""
    pod_template_hash: Annotated[str, REQUIRED] = ""
    ready_pods_selected_to_update: PodsSelected | None = None


class PodCliqueStatus(Struct, frozen=True):
    """The status of a clique."""

    observed_generation: Int64 | None = None
    last_errors: tuple[LastError, ...] = ()
    replicas: Int32 = 0
    ready_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    updated_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    schedule_gated_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    scheduled_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    hpa_pod_selector: str = ""
    conditions: Conditions = ()
    current_pod_clique_set_generation_hash: str = ""
    current_pod_template_hash: str = ""
    update_progress: CliqueUpdateProgress | None = None


class PodClique(Object, frozen=True):
    """Pods of one role in one replica."""

    resource: ClassVar[Resource] = Resource(VERSION, "PodClique", "podcliques")
    crd: ClassVar[Definition] = Definition(
        short_names=("pclq",),
        scale=Scale(".status.hpaPodSelector"),
        columns=(
            Column("MinAvail", ".spec.minAvailable"),
            Column("Replicas", ".spec.replicas"),
            Column("Ready", ".status.readyReplicas"),
            Column("Scheduled", ".status.scheduledReplicas"),
            Column("Updated", ".status.updatedReplicas"),
            Column("Gated", ".status.scheduleGatedReplicas", wide=True),
            _MIN_BREACHED,
            AGE,
        ),
    )

    spec: Annotated[PodCliqueSpec, REQUIRED] = PodCliqueSpec()
    status: PodCliqueStatus = PodCliqueStatus()


class ReplicasSelected(Struct, frozen=True):
    """Ready replicas that an update replaces one by one."""

    current: Annotated[Int32, REQUIRED] = 0
    completed: tuple[Int32, ...] = ()


class GroupUpdateProgress(Struct, frozen=True):
    """The progress of a scaling group's update."""

    update_started_at: Annotated[datetime | None, REQUIRED] = None
    update_ended_at: datetime | None = None
    pod_clique_set_generation_hash: Annotated[str, REQUIRED] = ""
    updated_pod_cliques_count: Annotated[Int32, default(0)] = 0
    total_pod_cliques_count: Annotated[Int32, default(0)] = 0
    ready_replica_indices_selected_to_update: ReplicasSelected | None = None


class PodCliqueScalingGroupSpec(Struct, frozen=True):
    """The replicas of a scaling group, and its cliques."""

    replicas: Annotated[Int32, default(1), REQUIRED, schema(maximum=MOST_REPLICAS)] = 1
    min_available: Annotated[Int32, default(1)] = 1
    clique_names: Annotated[tuple[str, ...], REQUIRED] = ()


class PodCliqueScalingGroupStatus(Struct, frozen=True):
    """The status of a scaling group."""

    replicas: Int32 = 0
    scheduled_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    available_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    updated_replicas: Annotated[Int32, default(0), REQUIRED] = 0
    selector: str = ""
    observed_generation: Int64 | None = None
    last_errors: tuple[LastError, ...] = ()
    conditions: Conditions = ()
    current_pod_clique_set_generation_hash: str = ""
    update_progress: GroupUpdateProgress | None = None


class PodCliqueScalingGroup(Object, frozen=True):
    """Cliques of one replica that scale together."""

    resource: ClassVar[Resource] = Resource(VERSION, "PodCliqueScalingGroup", "podcliquescalinggroups")
    crd: ClassVar[Definition] = Definition(
        short_names=("pcsg",),
        scale=Scale(".status.selector"),
        columns=(
            Column("MinAvail", ".spec.minAvailable"),
            Column("Replicas", ".spec.replicas"),
            Column("Available", ".status.availableReplicas"),
            Column("Scheduled", ".status.scheduledReplicas"),
            Column("Updated", ".status.updatedReplicas"),
            Column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            Column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            _MIN_BREACHED,
            AGE,
        ),
    )

    spec: Annotated[PodCliqueScalingGroupSpec, REQUIRED] = PodCliqueScalingGroupSpec()
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()


class TopologyLevel(Struct, frozen=True):
    """A topology level: the name of its domain and its node label."""

    domain: Annotated[str, _DOMAIN, REQUIRED] = ""
    key: Annotated[str, _LABEL_KEY, REQUIRED] = ""


class SchedulerTopologyBinding(Struct, frozen=True):
    """The topology object of one scheduler for this binding."""

    scheduler_name: Annotated[str, REQUIRED] = ""
    topology_reference: Annotated[str, REQUIRED] = ""


class ClusterTopologyBindingSpec(Struct, frozen=True):
    """Levels from broadest to narrowest."""

    levels: Annotated[tuple[TopologyLevel, ...], schema(minItems=1), REQUIRED] = ()
    scheduler_topology_bindings: tuple[SchedulerTopologyBinding, ...] = ()


class SchedulerTopologyStatus(Struct, frozen=True):
    """Whether a scheduler's topology matches this one."""

    scheduler_name: Annotated[str, REQUIRED] = ""
    topology_reference: Annotated[str, REQUIRED] = ""
    in_sync: Annotated[bool, REQUIRED] = False
    scheduler_backend_topology_observed_generation: Int64 | None = None
    message: str = ""


class ClusterTopologyBindingStatus(Struct, frozen=True):
    """Whether the schedulers' topologies match the binding."""

    observed_generation: Int64 | None = None
    conditions: Conditions = ()
    scheduler_topology_statuses: tuple[SchedulerTopologyStatus, ...] = ()


class ClusterTopologyBinding(Object, frozen=True):
    """Names for the levels of the cluster's topology."""

    resource: ClassVar[Resource] = Resource(
        VERSION, "ClusterTopologyBinding", "clustertopologybindings", namespaced=False
    )
    crd: ClassVar[Definition] = Definition(
        short_names=("ct",), columns=(Column("Domains", ".spec.levels[*].domain", "string"), AGE)
    )

    spec: Annotated[ClusterTopologyBindingSpec, REQUIRED] = ClusterTopologyBindingSpec()
    status: ClusterTopologyBindingStatus = ClusterTopologyBindingStatus()
