"""What the scheduler tells Prometheus, under the names that upstream's dashboards ask for."""

from __future__ import annotations

from typing import cast

from prometheus_client import REGISTRY

from spinney.api.kai import Queue
from spinney.api.meta import convert
from spinney.kube.cache import Cache
from spinney.scheduler.service.frozen import FrozenCache
from spinney.scheduler.service.metrics import CycleMetrics
from tests.scheduler.clusters import NOW, Cluster


def told(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_cycle_is_counted_under_upstreams_names() -> None:
    """Gangs and searches by action, pods evicted and how long bound ones waited, and the fair shares of queues."""
    cluster = Cluster(1, 1).queue("q", 2).job("low", "q", ["n0"], priority=10)
    done = cluster.job("high", "q", [""], priority=90).job("next", "q", [""], priority=80).plan()
    queue = convert(Queue, {"metadata": {"name": "q"}, "spec": {"displayName": "Team"}})
    names = [
        ("kai_podgroups_scheduled_by_action", {"action": "allocate"}),
        ("kai_podgroups_acted_on_by_action", {"action": "preempt"}),
        ("kai_scenarios_simulation_by_action", {"action": "preempt"}),
        ("kai_scenario_search_jobs_total", {"action": "preempt", "result": "solved", "reduced_budget": "false"}),
        ("kai_total_preemption_attempts", {}),
        ("kai_task_scheduling_latency_milliseconds_count", {}),
    ]
    before = [told(name, **labels) for name, labels in names]
    CycleMetrics("", cast(Cache[Queue], FrozenCache([queue]))).count(cluster.state, done, NOW, 0.1, 0.2)
    assert [told(name, **labels) - count for (name, labels), count in zip(names, before, strict=True)] == [1.0] * 6
    assert told("kai_e2e_scheduling_latency_milliseconds") == 200
    team = {"queue_name": "q", "queue_metadata_name": "q", "queue_display_name": "Team"}
    assert told("kai_queue_fair_share_gpu", **team) == 2
