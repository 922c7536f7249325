"""Ports of processes and their Services, under the names that upstream's monitors use."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api.kaiconfig import (
    Admission,
    Binder,
    ConfigSpec,
    PodGroupController,
    PodGroupControllerService,
    PortMapping,
    QueueController,
    QueueControllerService,
    Scheduler,
    SchedulerService,
    WebhookPorts,
)

METRICS = 8080
HEALTH = 8081
WEBHOOKS = 9443


@dataclass(frozen=True)
class Port:
    """A port of a Service and the container's port."""

    name: str
    port: int
    target: int


@dataclass(frozen=True)
class Ports:
    """The ports of metrics, of webhooks, and of health, which only the kubelet asks for."""

    metrics: Port = Port("http-metrics", METRICS, METRICS)
    webhooks: Port = Port("webhook", 443, WEBHOOKS)

    @property
    def health(self) -> int:
        """A port that no configuration takes for something else."""
        return next(
            port for port in range(HEALTH, HEALTH + 3) if port not in (self.metrics.target, self.webhooks.target)
        )


def ports_of(component: str, config: ConfigSpec) -> Ports:
    """The ports of a component."""
    if component == "admission":
        return _admission((config.admission or Admission()).webhook or WebhookPorts())
    if component == "binder":
        port = (config.binder or Binder()).metrics_port or METRICS
        return Ports(metrics=Port("http-metrics", port, port))
    if component == "scheduler":
        return _scheduler((config.scheduler or Scheduler()).scheduler_service or SchedulerService())
    if component == "queue-controller":
        queues = (config.queue_controller or QueueController()).controller_service or QueueControllerService()
        return Ports(_mapped(queues.metrics, Port("metrics", METRICS, METRICS)), _mapped(queues.webhook))
    if component == "podgroup-controller":
        groups = (config.pod_group_controller or PodGroupController()).controller_service
        return Ports(webhooks=_mapped((groups or PodGroupControllerService()).webhook))
    return Ports()


def _admission(block: WebhookPorts) -> Ports:
    metrics = block.metrics_port or METRICS
    return Ports(
        Port("http-metrics", metrics, metrics), Port("webhook", block.port or 443, block.target_port or WEBHOOKS)
    )


def _scheduler(service: SchedulerService) -> Ports:
    port = service.port or METRICS
    return Ports(metrics=Port("http-metrics", port, service.target_port or port))


def _mapped(mapping: PortMapping | None, default: Port = Ports.webhooks) -> Port:
    if mapping is None:
        return default
    return Port(mapping.name or default.name, mapping.port or default.port, mapping.target_port or default.target)
