"""Prometheus metrics of the client, caches, controllers, leader election and webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from prometheus_client import Counter, Gauge, Histogram


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """The metrics of one controller, with its name bound: finding a label's counter costs more than counting."""

    done: Counter
    again: Counter
    failed: Counter
    seconds: Histogram
    depth: Gauge


class Metrics:
    """The metrics of a process. Get it from `metrics`: a name is registered once."""

    def __init__(self) -> None:
        self._reconciles = Counter("spinney_reconciles", "Reconciles by their end.", ("controller", "result"))
        self._reconcile_seconds = Histogram(
            "spinney_reconcile_seconds",
            "How long a reconcile takes.",
            ("controller",),
            buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30),
        )
        self._depth = Gauge("spinney_queue_depth", "Keys that wait for a worker.", ("controller",))
        writes = Counter("spinney_writes", "Writes that the API server took.", ("component", "verb", "kind"))
        requests = Counter("spinney_requests", "Requests to the API server by answer.", ("method", "code"))
        lists = Counter("spinney_cache_lists", "Times that a cache had to list everything.", ("kind",))
        unreadable = Gauge(
            "spinney_unreadable_objects", "Objects set aside because they do not fit their type.", ("kind",)
        )
        leading = Gauge("spinney_leading", "1 while this process leads.", ("lease",))
        reviews = Counter("spinney_admission_reviews", "Admission reviews by answer.", ("webhook", "allowed"))
        self.writes = cache(writes.labels)
        self.requests = cache(requests.labels)
        self.lists = lists.labels
        self.unreadable = unreadable.labels
        self.leading = leading.labels
        self.reviews = reviews.labels

    def controller(self, name: str) -> ControllerMetrics:
        """The metrics of one controller."""
        return ControllerMetrics(
            done=self._reconciles.labels(name, "done"),
            again=self._reconciles.labels(name, "again"),
            failed=self._reconciles.labels(name, "failed"),
            seconds=self._reconcile_seconds.labels(name),
            depth=self._depth.labels(name),
        )


@cache
def metrics() -> Metrics:
    """The metrics of this process; the same ones on every call."""
    return Metrics()
