"""What the runtime counts for Prometheus. Labels are bound once per controller, not per event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from prometheus_client import Counter, Gauge, Histogram

RECONCILES = Counter("spinney_reconciles", "Reconciles by their end.", ("controller", "result"))
RECONCILE_SECONDS = Histogram(
    "spinney_reconcile_seconds",
    "How long a reconcile takes.",
    ("controller",),
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30),
)
QUEUE_DEPTH = Gauge("spinney_queue_depth", "Keys that wait for a worker.", ("controller",))
WRITES = Counter("spinney_writes", "Writes that the API server took.", ("component", "verb", "kind"))
REQUESTS = Counter("spinney_requests", "Requests to the API server by answer.", ("method", "code"))
RELISTS = Counter("spinney_cache_lists", "Times that a cache had to list everything.", ("kind",))
LEADING = Gauge("spinney_leading", "1 while this process leads.", ("lease",))
REVIEWS = Counter("spinney_admission_reviews", "Admission reviews by answer.", ("webhook", "allowed"))


# Finding a label's counter costs more than counting.
requests = cache(REQUESTS.labels)
writes = cache(WRITES.labels)


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """The metrics of one controller."""

    done: Counter
    again: Counter
    failed: Counter
    seconds: Histogram
    depth: Gauge


def for_controller(name: str) -> ControllerMetrics:
    """A controller's metrics, with its name bound."""
    return ControllerMetrics(
        done=RECONCILES.labels(name, "done"),
        again=RECONCILES.labels(name, "again"),
        failed=RECONCILES.labels(name, "failed"),
        seconds=RECONCILE_SECONDS.labels(name),
        depth=QUEUE_DEPTH.labels(name),
    )
