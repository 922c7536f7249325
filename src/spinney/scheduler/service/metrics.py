"""Prometheus metrics of the scheduler, under upstream's names, so that its dashboards and usage queries work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from spinney.api.kai import Queue
from spinney.kube.caches.cache import Cache
from spinney.scheduler.config import PREEMPT
from spinney.scheduler.plan import Plan
from spinney.scheduler.state.cluster import State

_QUEUE = ("queue_name", "queue_metadata_name", "queue_display_name")

_BUCKETS = tuple(5.0 * 2**power for power in range(10))

CYCLE = Gauge("kai_e2e_scheduling_latency_milliseconds", "The last cycle, from its state to its writes' start.")
OPENING = Gauge(
    "kai_open_session_latency_milliseconds", "Bringing the state up to date for the last cycle, with all plugins."
)
CLOSING = Gauge("kai_close_session_latency_milliseconds", "From the last cycle's plan to the start of its writes.")
PLUGIN = Gauge(
    "kai_plugin_scheduling_latency_milliseconds", "A plugin's start in the last cycle.", ("plugin", "OnSession")
)
ACTION = Gauge("kai_action_scheduling_latency_milliseconds", "An action in the last cycle.", ("action",))
# These count, but are gauges: the library would add `_total` to a counter's name, which upstream's do not have.
SCHEDULED = Gauge("kai_podgroups_scheduled_by_action", "Gangs that got nodes.", ("action",))
ACTED_ON = Gauge("kai_podgroups_acted_on_by_action", "Gangs that an action decided something for.", ("action",))
SIMULATED = Gauge("kai_scenarios_simulation_by_action", "Scenarios tried in searches for victims.", ("action",))
ATTEMPTS = Gauge("kai_total_preemption_attempts", "Searches for victims of lower priority.")
SEARCHES = Counter(
    "kai_scenario_search_jobs", "Searches for victims by their end.", ("action", "result", "reduced_budget")
)
SEARCHING = Histogram(
    "kai_scenario_search_duration_seconds",
    "How long one way to look for victims took.",
    ("action", "generator", "result"),
    buckets=tuple(0.001 * 2**power for power in range(16)),
)
# From the pod's creation to the decision, and from the decision to the request that can be read.
WAITED = Histogram("kai_task_scheduling_latency_milliseconds", "How long bound pods waited.", buckets=_BUCKETS)
BINDING = Histogram("kai_task_bind_latency_milliseconds", "How long bind requests took to write.", buckets=_BUCKETS)
ASKING = Histogram("kai_usage_query_latency_milliseconds", "How long answers on past use took.", buckets=_BUCKETS)
EVICTED = Counter("kai_pod_group_evicted_pods", "Pods evicted.", ("podgroup", "namespace", "uid", "nodepool", "action"))
FAIR_CPU = Gauge("kai_queue_fair_share_cpu_cores", "Fair share of CPU.", _QUEUE)
FAIR_MEMORY = Gauge("kai_queue_fair_share_memory_gb", "Fair share of memory.", _QUEUE)
FAIR_GPU = Gauge("kai_queue_fair_share_gpu", "Fair share of GPUs.", _QUEUE)
USED_CPU = Gauge("kai_queue_cpu_usage", "Recent use of CPU, as a part of the cluster's.", _QUEUE)
USED_MEMORY = Gauge("kai_queue_memory_usage", "Recent use of memory, as a part of the cluster's.", _QUEUE)
USED_GPU = Gauge("kai_queue_gpu_usage", "Recent use of GPUs, as a part of the cluster's.", _QUEUE)


# Ours: upstream keeps nothing from cycle to cycle.
RESERVATIONS = Gauge("spinney_scheduler_reservations", "Gangs that nodes are kept for.", ("nodepool",))
RESERVED_NODES = Gauge("spinney_scheduler_reserved_nodes", "Nodes that are kept for gangs.", ("nodepool",))
GUESTS = Gauge("spinney_scheduler_guests", "Pods that use what is kept for a gang until it starts.", ("nodepool",))


class Timing(NamedTuple):
    """How long the parts of a cycle took, in seconds."""

    describing: float
    closing: float
    whole: float
    plugins: Mapping[str, float]
    actions: Mapping[str, float]


class CycleMetrics:
    """Metrics of one shard; removes the series of deleted queues."""

    def __init__(self, pool: str, queues: Cache[Queue]) -> None:
        self._pool = pool
        self._queues = queues
        self._shown: set[tuple[str, str, str]] = set()

    def count(self, state: State, plan: Plan, now: float, timing: Timing) -> None:
        """Count one cycle."""
        _show_times(timing)
        acted: dict[str, set[str]] = {}
        scheduled: dict[str, set[str]] = {}
        for decision in plan.decisions:
            acted.setdefault(decision.action, set()).add(decision.beneficiary or decision.job)
            if decision.kind == "bind":
                scheduled.setdefault(decision.action, set()).add(decision.job)
                WAITED.observe(1000 * (now - state.tasks[decision.task].spec.created))
            elif decision.kind == "evict" and (job := state.jobs.get(decision.job)) is not None:
                EVICTED.labels(job.spec.name, job.spec.namespace, job.spec.uid, self._pool, decision.action).inc()
        for action, jobs in acted.items():
            ACTED_ON.labels(action).inc(len(jobs))
        for action, jobs in scheduled.items():
            SCHEDULED.labels(action).inc(len(jobs))
        for search in plan.searches:
            SIMULATED.labels(search.action).inc(search.scenarios)
            SEARCHES.labels(search.action, search.result, "false").inc()
            for attempt in search.attempts:
                SEARCHING.labels(search.action, attempt.generator, attempt.result).observe(attempt.seconds)
            if search.action == PREEMPT:
                ATTEMPTS.inc()
        held = plan.reservations.held if plan.reservations is not None else ()
        RESERVATIONS.labels(self._pool).set(len(held))
        RESERVED_NODES.labels(self._pool).set(sum(len(reservation.nodes) for reservation in held))
        GUESTS.labels(self._pool).set(sum(len(reservation.guests) for reservation in held))
        self._show_queues(state, plan)

    def _show_queues(self, state: State, plan: Plan) -> None:
        shown: set[tuple[str, str, str]] = set()
        for name, (cpu, memory, gpus) in plan.fair_share.items():
            queue = self._queues.get(name)
            if queue is None:
                continue
            # The first is what it was before there were the other two.
            labels = (queue.spec.display_name or name, name, queue.spec.display_name)
            shown.add(labels)
            FAIR_CPU.labels(*labels).set(cpu / 1000)
            FAIR_MEMORY.labels(*labels).set(memory / 1e9)
            FAIR_GPU.labels(*labels).set(gpus)
            usage = state.queue_specs[name].usage
            for gauge, value in zip((USED_CPU, USED_MEMORY, USED_GPU), usage, strict=True):
                gauge.labels(*labels).set(value)
        for labels in self._shown - shown:
            for gauge in (FAIR_CPU, FAIR_MEMORY, FAIR_GPU, USED_CPU, USED_MEMORY, USED_GPU):
                gauge.remove(*labels)
        self._shown = shown


def _show_times(timing: Timing) -> None:
    CYCLE.set(1000 * timing.whole)
    OPENING.set(1000 * (timing.describing + sum(timing.plugins.values())))
    CLOSING.set(1000 * timing.closing)
    for name, seconds in timing.plugins.items():
        PLUGIN.labels(name, "OnSessionOpen").set(1000 * seconds)
    for name, seconds in timing.actions.items():
        ACTION.labels(name).set(1000 * seconds)
