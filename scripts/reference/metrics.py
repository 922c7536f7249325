"""Every metric, from the registry of Prometheus' client once all modules that define some are imported."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase
from scripts.reference.tables import code, opening, table

from spinney.api.kai import Queue
from spinney.backends import metrics as backends
from spinney.grove import metrics as grove
from spinney.kube.metrics import metrics
from spinney.scheduler.service import metrics as scheduler
from spinney.services.queues import metrics as queues

_PARTS = {
    "Every component": "",
    "Grove operator": grove.__name__,
    "Backends": backends.__name__,
    "Scheduler": scheduler.__name__,
}

_TEXT = """`--metrics-listen HOST:PORT` serves these at `/metrics`, for Prometheus. The chart adds monitors, alert rules
and a Grafana dashboard ([metrics and alerts](../operations/monitoring.md)). Names that begin with `kai_`
are upstream's."""


def page() -> str:
    """The page of metrics."""
    lines = opening("Metrics", _TEXT)
    metrics()
    modules = {part: set(_defined(name)) for part, name in _PARTS.items() if name}
    theirs = set().union(*modules.values())
    shared = {name for name, each in _registered() if name.startswith("spinney_")} - theirs
    for part in _PARTS:
        wanted = modules.get(part, shared)
        lines += [f"## {part}", "", *table(("metric", "type", "labels", "meaning"), _rows(wanted))]
    lines += ["## Queue controller", "", "One series for each queue; -1 is unlimited.", ""]
    lines += table(("metric", "type", "labels", "meaning"), _of_queues())
    return "\n".join(lines)


def _of_queues() -> Iterator[tuple[str, ...]]:
    prefix = queues.QueueSettings().metrics_namespace
    labels = ", ".join(map(code, queues.LABELS))
    for name in queues.values(Queue()):
        words = name.removeprefix("queue_").replace("_", " ").replace("cpu", "CPU").replace("gpus", "GPUs")
        yield code(f"{prefix}_{name}"), "gauge", labels, f"{words[0].upper()}{words[1:]} of a queue."


def _registered() -> Iterator[tuple[str, MetricWrapperBase]]:
    for collector in dict.fromkeys(REGISTRY._names_to_collectors.values()):
        if isinstance(collector, MetricWrapperBase):
            yield collector._name, collector


def _defined(module: str) -> Iterator[str]:
    values = vars(__import__(module, fromlist=["*"])).values()
    yield from (value._name for value in values if isinstance(value, MetricWrapperBase))


def _rows(names: set[str]) -> Iterator[tuple[str, ...]]:
    for name, collector in sorted(_registered()):
        if name in names:
            full = f"{name}_total" if collector._type == "counter" else name
            labels = ", ".join(map(code, collector._labelnames))
            yield code(full), collector._type, labels, collector._documentation
