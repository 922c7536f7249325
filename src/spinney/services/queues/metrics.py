"""Metrics of queues, under upstream's names: time-based fairness and KAI's dashboards read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from spinney.api.kai import Queue, QueueResource
from spinney.api.meta import Struct
from spinney.api.quantity import milli
from spinney.kube.caches.cache import Cache
from spinney.services.pods.usage import is_gpu

LABELS = ("queue_name", "queue_metadata_name", "queue_display_name")


class QueueSettings(Struct, frozen=True):
    """Names and labels of the metrics."""

    metrics_namespace: str = "kai"
    # Queue labels that become metric labels, and their values where a queue has none.
    metric_labels: dict[str, str] = {}
    metric_defaults: dict[str, str] = {}


def values(queue: Queue) -> dict[str, float]:
    """The metrics of one queue; -1 is unlimited."""
    shares = queue.spec.resources
    gpu, cpu, memory = (shares.gpu, shares.cpu, shares.memory) if shares else (QueueResource(),) * 3
    held = queue.status.allocated
    gpus = sum(milli(amount) for name, amount in held.items() if is_gpu(name))
    return {
        "queue_info": 1.0,
        "queue_deserved_gpus": gpu.quota,
        "queue_quota_cpu_cores": cpu.quota / 1000 if cpu.quota >= 0 else cpu.quota,
        "queue_quota_memory_bytes": memory.quota * 1e6 if memory.quota >= 0 else memory.quota,
        "queue_allocated_gpus": gpus / 1000,
        "queue_allocated_cpu_cores": milli(held.get("cpu", "0")) / 1000,
        "queue_allocated_memory_bytes": milli(held.get("memory", "0")) / 1000,
    }


class QueueMetrics(Collector):
    """Collects from the cache on demand, so that a deleted queue leaves no series."""

    def __init__(self, queues: Cache[Queue], settings: QueueSettings) -> None:
        self._queues = queues
        self._settings = settings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family per metric, one series per queue."""
        names = [*LABELS, *self._settings.metric_labels.values()]
        families: dict[str, GaugeMetricFamily] = {}
        for queue in self._queues:
            marks = [queue.name, queue.name, queue.spec.display_name, *self._mapped(queue)]
            for name, value in values(queue).items():
                full = f"{self._settings.metrics_namespace}_{name}"
                if full not in families:
                    families[full] = GaugeMetricFamily(full, f"{name} of a queue", labels=names)
                families[full].add_metric(marks, value)
        yield from families.values()

    def _mapped(self, queue: Queue) -> list[str]:
        defaults = self._settings.metric_defaults
        return [queue.metadata.labels.get(key, defaults.get(key, "")) for key in self._settings.metric_labels]


@contextmanager
def served(metrics: QueueMetrics, registry: CollectorRegistry = REGISTRY) -> Iterator[None]:
    """Register the metrics within the context."""
    registry.register(metrics)
    try:
        yield
    finally:
        registry.unregister(metrics)
