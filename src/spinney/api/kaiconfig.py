"""kai.scheduler: Config, the deployment settings of the services."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from spinney.api.deployment import (
    READY,
    ClientConfig,
    DeploymentStatus,
    Image,
    Plugin,
    PodSecurityContext,
    ResourceNeeds,
    SecurityContext,
    ServiceConfig,
    ServiceToleration,
    Vpa,
)
from spinney.api.meta import Json, Object, Resource, Struct
from spinney.api.schema import Definition, Int32

VERSION = "kai.scheduler/v1"


class Global(Struct, frozen=True):
    """Settings of all services."""

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
    """Arguments of the pod grouper for special kinds."""

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
    """The address of admission."""

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
    """The pods that make a cluster autoscaler see shared-GPU pods."""

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
    """The settings of every service; absent ones take their defaults."""

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


class Config(Object, frozen=True):
    """The installation; only the one named `kai-config` counts."""

    resource: ClassVar[Resource] = Resource(VERSION, "Config", "configs", namespaced=False)
    crd: ClassVar[Definition] = Definition(columns=(READY,))

    spec: ConfigSpec = ConfigSpec()
    status: DeploymentStatus = DeploymentStatus()
