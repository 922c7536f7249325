"""kai.scheduler: Config, which deploys the services, and SchedulingShard, which makes one scheduler of several."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from spinney.api.meta import Conditions, Json, Object, Resource, Struct
from spinney.api.quantity import Quantity, ResourceList
from spinney.api.schema import ATOMIC, REQUIRED, Column, Definition, Int32, Int64, enum, list_map, schema

GROUP = "kai.scheduler"
VERSION = "kai.scheduler/v1"
_READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status', "string")


class Image(Struct, frozen=True):
    """A container image in parts."""

    repository: str = ""
    name: str = ""
    tag: str = ""
    pull_policy: str = ""


class ClientConfig(Struct, frozen=True):
    """How fast a service may talk to the API server."""

    qps: int | None = None
    burst: int | None = None


class DisruptionBudget(Struct, frozen=True):
    """Whether a service gets a PodDisruptionBudget."""

    enabled: bool | None = None
    max_unavailable: Int32 | None = None


class ClaimUse(Struct, frozen=True):
    """A device claim that a container uses."""

    name: Annotated[str, REQUIRED] = ""
    request: str = ""


class ResourceNeeds(Struct, frozen=True):
    """What a service's container asks for."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: Annotated[tuple[ClaimUse, ...], list_map("name")] = ()


class ServiceConfig(Struct, frozen=True):
    """How one service is deployed."""

    enabled: bool | None = None
    image: Image | None = None
    resources: ResourceNeeds | None = None
    k8s_client_config: ClientConfig | None = msgspec.field(default=None, name="k8sClientConfig")
    affinity: Json | None = None
    pod_disruption_budget: DisruptionBudget | None = None


class ContainerPolicy(Struct, frozen=True):
    """Bounds of what a vertical autoscaler may set for a container."""

    container_name: str = ""
    mode: Annotated[str, enum("Auto", "Off")] = ""
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] = ()
    controlled_values: Annotated[str, enum("RequestsAndLimits", "RequestsOnly")] = ""


class VpaResourcePolicy(Struct, frozen=True):
    """Bounds of what a vertical autoscaler may set."""

    container_policies: tuple[ContainerPolicy, ...] = ()


class EvictionRequirement(Struct, frozen=True):
    """When a vertical autoscaler may evict."""

    resources: Annotated[tuple[str, ...], REQUIRED] = ()
    change_requirement: Annotated[str, enum("TargetHigherThanRequests", "TargetLowerThanRequests"), REQUIRED] = ""


class VpaUpdatePolicy(Struct, frozen=True):
    """How a vertical autoscaler applies what it finds."""

    update_mode: Annotated[str, enum("Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto")] = ""
    min_replicas: Int32 | None = None
    eviction_requirements: tuple[EvictionRequirement, ...] = ()


class Vpa(Struct, frozen=True):
    """Whether a service gets a vertical autoscaler."""

    enabled: bool | None = None
    update_policy: VpaUpdatePolicy | None = None
    resource_policy: VpaResourcePolicy | None = None


class Profile(Struct, frozen=True):
    """An AppArmor or seccomp profile."""

    type: Annotated[str, REQUIRED] = ""
    localhost_profile: str = ""


class Capabilities(Struct, frozen=True):
    """Linux capabilities to add and drop."""

    add: Annotated[tuple[str, ...], ATOMIC] = ()
    drop: Annotated[tuple[str, ...], ATOMIC] = ()


class SeLinuxOptions(Struct, frozen=True):
    """The SELinux context."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsOptions(Struct, frozen=True):
    """The Windows part of a security context."""

    gmsa_credential_spec: str = ""
    gmsa_credential_spec_name: str = ""
    host_process: bool | None = None
    run_as_user_name: str = ""


class SecurityContext(Struct, frozen=True):
    """Under which identity and rights a container runs."""

    allow_privilege_escalation: bool | None = None
    app_armor_profile: Profile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str = ""
    read_only_root_filesystem: bool | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: Profile | None = None
    windows_options: WindowsOptions | None = None


class Sysctl(Struct, frozen=True):
    """A kernel parameter of a pod."""

    name: Annotated[str, REQUIRED] = ""
    value: Annotated[str, REQUIRED] = ""


class PodSecurityContext(Struct, frozen=True):
    """Under which identity and rights a pod runs."""

    app_armor_profile: Profile | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str = ""
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_change_policy: str = ""
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: Profile | None = None
    supplemental_groups: Annotated[tuple[Int64, ...], ATOMIC] = ()
    supplemental_groups_policy: str = ""
    sysctls: Annotated[tuple[Sysctl, ...], ATOMIC] = ()
    windows_options: WindowsOptions | None = None


class ServiceToleration(Struct, frozen=True):
    """A taint that the services tolerate."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class Global(Struct, frozen=True):
    """What holds for all services."""

    vpa: Vpa | None = None
    openshift: bool | None = None
    affinity: Json | None = None
    require_default_pod_anti_affinity_term: bool | None = None
    security_context: SecurityContext | None = None
    images_pull_secret: str = ""
    additional_image_pull_secrets: tuple[str, ...] = ()
    node_selector: dict[str, str] = {}
    tolerations: tuple[ServiceToleration, ...] = ()
    daemonsets_tolerations: tuple[ServiceToleration, ...] = ()
    priority_class_name: str = ""
    replica_count: Int32 | None = None
    queue_label_key: str = ""
    scheduler_name: str = ""
    node_pool_label_key: str = ""
    namespace_label_selector: dict[str, str] = {}
    pod_label_selector: dict[str, str] = {}
    json_log: bool | None = None


class PodGrouperArgs(Struct, frozen=True):
    """What the grouper does about special kinds."""

    gang_schedule_knative: bool | None = None
    generic_karta_fallback: bool | None = None
    default_priorities_config_map_name: str = ""
    default_priorities_config_map_namespace: str = ""


class PodGrouper(Struct, frozen=True):
    """The grouper."""

    service: ServiceConfig | None = None
    args: PodGrouperArgs | None = None
    k8s_client_config: ClientConfig | None = msgspec.field(default=None, name="k8sClientConfig")
    max_concurrent_reconciles: int | None = None
    replicas: Int32 | None = None
    vpa: Vpa | None = None


class Plugin(Struct, frozen=True):
    """One plugin: on or off, its place, its arguments."""

    enabled: bool | None = None
    priority: int | None = None
    arguments: dict[str, str] = {}


class Action(Struct, frozen=True):
    """One action: on or off, and its place."""

    enabled: bool | None = None
    priority: int | None = None


class ResourceReservation(Struct, frozen=True):
    """The pods that reserve shared GPUs."""

    image: Image | None = None
    allocation_timeout: int | None = None
    namespace: str = ""
    service_account_name: str = ""
    app_label: str = ""
    runtime_class_name: str = ""
    pod_resources: ResourceNeeds | None = None
    reservation_pod_security_context: PodSecurityContext | None = None
    reservation_container_security_context: SecurityContext | None = None


class Binder(Struct, frozen=True):
    """The binder."""

    service: ServiceConfig | None = None
    resource_reservation: ResourceReservation | None = None
    replicas: Int32 | None = None
    max_concurrent_reconciles: int | None = None
    volume_binding_timeout_seconds: int | None = None
    probe_port: int | None = None
    metrics_port: int | None = None
    cdi_enabled: bool | None = None
    plugins: dict[str, Plugin] = {}
    vpa: Vpa | None = None


class WebhookPorts(Struct, frozen=True):
    """Where admission listens."""

    port: int | None = None
    target_port: int | None = None
    probe_port: int | None = None
    metrics_port: int | None = None


class Admission(Struct, frozen=True):
    """The admission webhooks."""

    service: ServiceConfig | None = None
    webhook: WebhookPorts | None = None
    replicas: Int32 | None = None
    gpu_sharing: bool | None = None
    block_nvidia_visible_devices: bool | None = None
    queue_label_selector: bool | None = None
    validating_webhook_configuration_name: str = ""
    mutating_webhook_configuration_name: str = ""
    gpu_pod_runtime_class_name: str | None = None
    gpu_fraction_runtime_class_name: str | None = None
    vpa: Vpa | None = None


class SchedulerService(Struct, frozen=True):
    """The service in front of the scheduler."""

    type: str = ""
    port: int | None = None
    target_port: int | None = None


class Scheduler(Struct, frozen=True):
    """The scheduler."""

    service: ServiceConfig | None = None
    scheduler_service: SchedulerService | None = None
    replicas: Int32 | None = None
    gogc: int | None = msgspec.field(default=None, name="GOGC")
    vpa: Vpa | None = None


class PortMapping(Struct, frozen=True):
    """A named port of a service."""

    name: str = ""
    port: int | None = None
    target_port: int | None = None


class QueueControllerService(Struct, frozen=True):
    """The ports of the queue controller."""

    metrics: PortMapping | None = None
    webhook: PortMapping | None = None


class PodGroupControllerService(Struct, frozen=True):
    """The ports of the pod group controller."""

    webhook: PortMapping | None = None


class ControllerWebhooks(Struct, frozen=True):
    """A controller's validating webhook."""

    enable_validation: bool | None = None
    webhook_configuration_name_prefix: str = ""


class QueueController(Struct, frozen=True):
    """The queue controller."""

    service: ServiceConfig | None = None
    controller_service: QueueControllerService | None = None
    webhooks: ControllerWebhooks | None = None
    replicas: Int32 | None = None
    metrics_namespace: str = ""
    queue_label_to_metric_label: str = ""
    queue_label_to_default_metric_value: str = ""
    vpa: Vpa | None = None


class PodGroupController(Struct, frozen=True):
    """The pod group controller."""

    service: ServiceConfig | None = None
    controller_service: PodGroupControllerService | None = None
    webhooks: ControllerWebhooks | None = None
    replicas: Int32 | None = None
    max_concurrent_reconciles: int | None = None
    vpa: Vpa | None = None


class NodeScaleArgs(Struct, frozen=True):
    """The pods that stand for shared-GPU pods before a cluster autoscaler."""

    scaling_pod_image: Image | None = None
    node_scale_namespace: str = ""
    node_scale_service_account: str = ""
    gpu_memory_to_fraction_ratio: float | None = None


class NodeScaleAdjuster(Struct, frozen=True):
    """The node scale adjuster."""

    service: ServiceConfig | None = None
    args: NodeScaleArgs | None = None
    vpa: Vpa | None = None


class ServiceMonitorConfig(Struct, frozen=True):
    """How metrics are scraped."""

    enabled: bool | None = None
    interval: str = ""
    scrape_timeout: str = ""
    bearer_token_file: str = ""


class HealthProbe(Struct, frozen=True):
    """How an external Prometheus is checked."""

    interval: int | None = None
    timeout: int | None = None
    max_retries: int | None = None


class Prometheus(Struct, frozen=True):
    """The metrics store behind time-based fair share."""

    enabled: bool | None = None
    instance_name: str = ""
    retention_period: str = ""
    sample_interval: str = ""
    enable_persistent_storage: bool | None = None
    storage_size: str = ""
    storage_class_name: str = ""
    service_monitor: ServiceMonitorConfig | None = None
    external_prometheus_url: str = ""
    external_prometheus_health_probe: HealthProbe | None = None
    accounting_label_key: str = ""
    accounting_label_value: str = ""


class NumaPlacementExporter(Struct, frozen=True):
    """The agent that reports NUMA placement."""

    service: ServiceConfig | None = None
    node_selector: dict[str, str] = {}
    tolerations: tuple[ServiceToleration, ...] = ()
    poll_interval: str = ""
    drift_resync_interval: str = ""
    pod_resources_host_path: str = ""
    pod_resources_socket: str = ""
    sysfs_host_path: str = ""


class ConfigSpec(Struct, frozen=True):
    """Every service and its settings; what is absent takes its default."""

    namespace: str = ""
    global_: Global | None = msgspec.field(default=None, name="global")
    pod_grouper: PodGrouper | None = None
    binder: Binder | None = None
    admission: Admission | None = None
    scheduler: Scheduler | None = None
    queue_controller: QueueController | None = None
    pod_group_controller: PodGroupController | None = None
    node_scale_adjuster: NodeScaleAdjuster | None = None
    numa_placement_exporter: NumaPlacementExporter | None = None
    prometheus: Prometheus | None = None


class DeploymentStatus(Struct, frozen=True):
    """Whether what was asked for is there and works."""

    conditions: Conditions = ()


class Config(Object, frozen=True):
    """The installation; only the one named `kai-config` counts."""

    resource: ClassVar[Resource] = Resource(VERSION, "Config", "configs", namespaced=False)
    crd: ClassVar[Definition] = Definition(columns=(_READY,))

    spec: ConfigSpec = ConfigSpec()
    status: DeploymentStatus = DeploymentStatus()


class PlacementStrategy(Struct, frozen=True):
    """Whether jobs are packed or spread."""

    gpu: str = ""
    cpu: str = ""


class MinRuntime(Struct, frozen=True):
    """How long a job runs before it may be evicted."""

    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""


class UsageParams(Struct, frozen=True):
    """Over which time usage counts."""

    half_life_period: str = ""
    window_size: Annotated[
        str,
        schema(pattern="^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"),
    ] = ""
    window_type: str = ""
    tumbling_window_start_time: datetime | None = None
    cron_string: str = ""
    fetch_interval: str = ""
    staleness_period: str = ""
    wait_timeout: str = ""
    extra_params: dict[str, str] = {}


class UsageDb(Struct, frozen=True):
    """Where past usage comes from."""

    client_type: Annotated[str, REQUIRED] = ""
    connection_string: str = ""
    connection_string_env_var: str = ""
    usage_params: UsageParams | None = None


class SearchBudgets(Struct, frozen=True):
    """How long a search for victims may take."""

    max_action_search_duration: dict[str, str] = {}
    max_job_search_duration: str = ""
    min_job_search_duration: str = ""
    max_generator_search_duration: dict[str, str] = {}


class SchedulingShardSpec(Struct, frozen=True):
    """One scheduler: its nodes, its plugins, its actions."""

    args: dict[str, str] = {}
    go_mem_limit_ratio: Annotated[float | None, schema(minimum=0, exclusiveMinimum=True, maximum=1)] = None
    go_mem_limit: Quantity | None = None
    placement_strategy: PlacementStrategy | None = None
    partition_label_value: str = ""
    queue_depth_per_action: dict[str, int] = {}
    min_runtime: MinRuntime | None = None
    k_value: float | None = None
    usage_db_config: UsageDb | None = msgspec.field(default=None, name="usageDBConfig")
    scenario_search_budgets: SearchBudgets | None = None
    plugins: dict[str, Plugin] = {}
    actions: dict[str, Action] = {}


class SchedulingShard(Object, frozen=True):
    """One scheduler of several."""

    resource: ClassVar[Resource] = Resource(VERSION, "SchedulingShard", "schedulingshards", namespaced=False)
    crd: ClassVar[Definition] = Definition(columns=(Column("Partition", ".spec.partitionLabelValue", "string"), _READY))

    spec: SchedulingShardSpec = SchedulingShardSpec()
    status: DeploymentStatus = DeploymentStatus()
