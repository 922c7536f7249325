"""Which services run with which settings: Config and shards, completed with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from spinney.api import labels
from spinney.api.deployment import Image, ServiceConfig, Vpa
from spinney.api.kaiconfig import (
    Admission,
    Binder,
    ConfigSpec,
    ControllerWebhooks,
    Global,
    NodeScaleAdjuster,
    NodeScaleArgs,
    PodGroupController,
    PodGrouper,
    PodGrouperArgs,
    QueueController,
    ResourceReservation,
    Scheduler,
)
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, Struct
from spinney.services.admission.settings import AdmissionSettings
from spinney.services.binder.component import BinderSettings
from spinney.services.nodescale.controller import NodeScaleSettings
from spinney.services.platform.binder_plugins import CLAIMS, HAMI, VOLUMES, cdi_from_config, is_on, seconds_argument
from spinney.services.platform.shard_config import NAMESPACE, plan_file
from spinney.services.podgrouper.context import Settings as GrouperSettings
from spinney.services.podgroups.controller import PodGroupSettings
from spinney.services.queues.metrics import QueueSettings
from spinney.services.reservation.manifest import ReservationSettings

_REQUESTS: Json = {"cpu": "50m", "memory": "256Mi"}
_LIMITS: Json = {"cpu": "100m", "memory": "512Mi"}
_SCHEDULER_NEEDS: Json = {
    "requests": {"cpu": "250m", "memory": "512Mi"},
    "limits": {"cpu": "700m", "memory": "512Mi"},
}

T = TypeVar("T")
_ServiceBlock = PodGrouper | Binder | QueueController | PodGroupController | NodeScaleAdjuster | Admission


@dataclass(frozen=True)
class Process:
    """One component with its settings: a Deployment in a cluster, or a task of `spinney up`."""

    # As upstream names the Deployment.
    name: str
    component: str
    # The ServiceAccount; all schedulers share one.
    account: str
    settings: Struct
    namespace: str = NAMESPACE
    service: ServiceConfig = field(default_factory=ServiceConfig)
    replicas: int = 1
    vpa: Vpa | None = None
    needs: Json | None = None
    # Its own webhooks are registered.
    webhooks: bool = False
    # One per node; only where there are kubelets.
    on_every_node: bool = False


def namespace_of(config: ConfigSpec) -> str:
    """The namespace of the services."""
    return config.namespace or NAMESPACE


def plan_processes(
    config: ConfigSpec, image: str, annotations: Mapping[str, str] | None = None, *, cdi: bool = False
) -> list[Process]:
    """The enabled services, apart from schedulers; annotations hold what Config has no field for.

    `cdi` is how devices are named where Config leaves that open.
    """
    common = config.global_ or Global()
    wanted = [
        _pod_grouper(config.pod_grouper or PodGrouper(), common, annotations or {}),
        _binder(config.binder or Binder(), image, cdi),
        _queue_controller(config.queue_controller or QueueController()),
        _pod_group_controller(config.pod_group_controller or PodGroupController()),
        _node_scale_adjuster(config.node_scale_adjuster or NodeScaleAdjuster(), common, image),
        _admission(
            config.admission or Admission(),
            common,
            is_on(config.binder or Binder(), HAMI, default=False),
            annotations or {},
        ),
    ]
    return [_completed(process, config) for process in wanted if process.service.enabled is not False]


def plan_scheduler(shard: SchedulingShard, config: ConfigSpec) -> Process | None:
    """The scheduler of a shard, or None where Config disables schedulers."""
    wanted = config.scheduler or Scheduler()
    service = wanted.service or ServiceConfig()
    if service.enabled is False:
        return None
    file = plan_file(shard, config)
    return _completed(
        Process(
            name=f"{file.scheduler_name}-{shard.name}",
            component="scheduler",
            account="scheduler",
            settings=file,
            service=service,
            replicas=wanted.replicas or 0,
            vpa=wanted.vpa,
            needs=_SCHEDULER_NEEDS,
        ),
        config,
    )


def image_name(image: Image | None, default: str) -> str:
    """The full name of an image; the installation's where none is given."""
    if image is None or not (image.repository or image.name):
        return default
    path = "/".join(part for part in (image.repository, image.name) if part)
    return f"{path}:{image.tag}" if image.tag else path


def needs_of(process: Process) -> Json:
    """The resources of a process's container: from Config, else its own default, else the common one."""
    if process.service.resources is not None:
        resources: Json = msgspec.to_builtins(process.service.resources)
        return resources
    return process.needs or {"requests": _REQUESTS, "limits": _LIMITS}


def _completed(process: Process, config: ConfigSpec) -> Process:
    common = config.global_ or Global()
    return replace(
        process,
        namespace=namespace_of(config),
        replicas=process.replicas or common.replica_count or 1,
        vpa=process.vpa or common.vpa,
        needs=needs_of(process),
    )


def _process(name: str, wanted: _ServiceBlock, settings: Struct, replicas: int | None) -> Process:
    """A process whose component and account have its name."""
    return Process(
        name=name,
        component=name,
        account=name,
        settings=settings,
        service=wanted.service or ServiceConfig(),
        replicas=replicas or 0,
        vpa=wanted.vpa,
    )


def _pod_grouper(wanted: PodGrouper, common: Global, annotations: Mapping[str, str]) -> Process:
    arguments = wanted.args or PodGrouperArgs()
    settings = GrouperSettings(
        scheduler_name=common.scheduler_name or labels.KAI_SCHEDULER,
        queue_label=common.queue_label_key or labels.QUEUE,
        node_pool_label=common.node_pool_label_key or labels.NODE_POOL,
        knative_gangs=_given(arguments.gang_schedule_knative, True),
        karta_fallback=_given(arguments.generic_karta_fallback, True),
        defaults_namespace=arguments.default_priorities_config_map_namespace,
        defaults_name=arguments.default_priorities_config_map_name,
        pods_name_queues=annotations.get(labels.REVIEW_QUEUE_ACCESS) == "true",
        pod_labels=common.pod_label_selector,
        namespace_labels=common.namespace_label_selector,
        workers=_workers(wanted, 32),
    )
    service = wanted.service or ServiceConfig()
    if wanted.k8s_client_config is not None:
        service = msgspec.structs.replace(service, k8s_client_config=wanted.k8s_client_config)
    process = _process("pod-grouper", wanted, settings, wanted.replicas)
    return replace(process, component="podgrouper", service=service)


def _workers(wanted: PodGrouper | Binder | PodGroupController, default: int) -> int:
    """How many objects are worked on at once: with fewer than one nothing would ever be done."""
    workers = wanted.max_concurrent_reconciles or 0
    return workers if workers > 0 else default


def _binder(wanted: Binder, image: str, cdi: bool) -> Process:
    block = wanted.resource_reservation or ResourceReservation()
    default = ReservationSettings()
    reservation = ReservationSettings(
        namespace=block.namespace or default.namespace,
        service_account=block.service_account_name or default.service_account,
        app=block.app_label or default.app,
        image=image_name(block.image, image),
        runtime_class=block.runtime_class_name,
        resources=block.pod_resources.requests if block.pod_resources is not None else {},
        pod_security_context=_plain(block.reservation_pod_security_context),
        container_security_context=_plain(block.reservation_container_security_context),
        allocation_timeout_seconds=block.allocation_timeout or default.allocation_timeout_seconds,
    )
    settings = BinderSettings(
        reservation=reservation,
        volume_timeout_seconds=seconds_argument(wanted, VOLUMES, "bindTimeoutSeconds")
        or wanted.volume_binding_timeout_seconds
        or 120.0,
        cdi=_given(cdi_from_config(wanted), cdi),
        memory_limit=is_on(wanted, HAMI, default=False),
        volumes=is_on(wanted, VOLUMES),
        claims=is_on(wanted, CLAIMS),
        workers=_workers(wanted, 512),
    )
    needs = {"requests": {"cpu": "50m", "memory": "200Mi"}, "limits": {"cpu": "100m", "memory": "200Mi"}}
    return replace(_process("binder", wanted, settings, wanted.replicas), needs=needs)


def _queue_controller(wanted: QueueController) -> Process:
    settings = QueueSettings(
        metrics_namespace=wanted.metrics_namespace or "kai",
        metric_labels=_pairs(wanted.queue_label_to_metric_label),
        metric_defaults=_pairs(wanted.queue_label_to_default_metric_value),
    )
    process = _process("queue-controller", wanted, settings, wanted.replicas)
    return replace(process, webhooks=_validates(wanted.webhooks))


def _pod_group_controller(wanted: PodGroupController) -> Process:
    settings = PodGroupSettings(workers=_workers(wanted, 32))
    process = _process("podgroup-controller", wanted, settings, wanted.replicas)
    return replace(process, webhooks=_validates(wanted.webhooks))


def _node_scale_adjuster(wanted: NodeScaleAdjuster, common: Global, image: str) -> Process:
    arguments = wanted.args or NodeScaleArgs()
    default = NodeScaleSettings()
    ratio = arguments.gpu_memory_to_fraction_ratio
    settings = NodeScaleSettings(
        scheduler_name=common.scheduler_name or labels.KAI_SCHEDULER,
        namespace=arguments.node_scale_namespace or default.namespace,
        service_account=arguments.node_scale_service_account or default.service_account,
        image=image_name(arguments.scaling_pod_image, image),
        memory_as_fraction=f"{ratio:g}" if ratio else default.memory_as_fraction,
    )
    return _process("node-scale-adjuster", wanted, settings, 1)


def _admission(wanted: Admission, common: Global, memory_limit: bool, annotations: Mapping[str, str]) -> Process:
    runtime_class = wanted.gpu_fraction_runtime_class_name
    settings = AdmissionSettings(
        scheduler_name=common.scheduler_name or labels.KAI_SCHEDULER,
        queue_label=common.queue_label_key or labels.QUEUE,
        gpu_sharing=bool(wanted.gpu_sharing),
        block_visible_devices=bool(wanted.block_nvidia_visible_devices),
        memory_limit=memory_limit,
        adopt_queued_pods=annotations.get(labels.ADOPT_QUEUED_PODS) == "true",
        check_queue_access=annotations.get(labels.REVIEW_QUEUE_ACCESS) == "true",
        gate_blocked_pods=annotations.get(labels.GATE_BLOCKED_PODS) == "true",
        fraction_runtime_class=_given(runtime_class, _given(wanted.gpu_pod_runtime_class_name, "nvidia")),
    )
    return replace(_process("admission", wanted, settings, wanted.replicas), webhooks=True)


def _validates(webhooks: ControllerWebhooks | None) -> bool:
    return _given(webhooks.enable_validation if webhooks else None, True)


def _given(value: T | None, default: T) -> T:
    return default if value is None else value


def _plain(value: Struct | None) -> Json:
    plain: Json = msgspec.to_builtins(value) if value is not None else {}
    return plain


def _pairs(text: str) -> dict[str, str]:
    """`a=b,c=d` as a map."""
    parts = (part.partition("=") for part in text.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in parts}
