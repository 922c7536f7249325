"""What the scheduler tells Prometheus, under the names that upstream's dashboards ask for."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import cast

from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import REGISTRY, generate_latest

from spinney.api.kai import Queue
from spinney.api.meta import convert
from spinney.kube.caches.cache import Cache
from spinney.kube.controllers.health import Health
from spinney.scheduler.config import ACTIONS, DEFAULT_PLUGINS, Config
from spinney.scheduler.plan import plan
from spinney.scheduler.result import Attempt
from spinney.scheduler.service.metrics import ACTION, PLUGIN, CycleMetrics, Timing
from spinney.scheduler.service.snapshot_view import FrozenCache
from spinney.scheduler.stopwatch import Stopwatch
from tests.scheduler.clusters import NOW, Cluster
from tests.scheduler.service.parts import PARTS
from tests.services.stage import stage
from tests.virtual_time import virtual

TIMING = Timing(describing=0.125, closing=0.25, whole=0.5, plugins={"proportion": 0.0625}, actions={"reclaim": 0.03125})


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
    CycleMetrics("", cast(Cache[Queue], FrozenCache([queue]))).count(cluster.state, done, NOW, TIMING)
    assert [told(name, **labels) - old for (name, labels), old in zip(names, before, strict=True)] == [1.0] * 6
    team = {"queue_name": "Team", "queue_metadata_name": "q", "queue_display_name": "Team"}
    assert told("kai_queue_fair_share_gpu", **team) == 2


async def test_the_page_says_how_long_the_parts_of_a_cycle_took() -> None:
    """The whole, its beginning with all plugins, its end, each plugin and each action, in milliseconds."""
    cluster = Cluster(1).queue("q", 1)
    CycleMetrics("", cast(Cache[Queue], FrozenCache([]))).count(cluster.state, cluster.plan(), NOW, TIMING)
    async with TestClient(TestServer(Health(list).application("127.0.0.1"))) as client:
        page = (await (await client.get("/metrics")).text()).splitlines()
    assert {
        "kai_e2e_scheduling_latency_milliseconds 500.0",
        "kai_open_session_latency_milliseconds 187.5",
        "kai_close_session_latency_milliseconds 250.0",
        'kai_plugin_scheduling_latency_milliseconds{OnSession="OnSessionOpen",plugin="proportion"} 62.5',
        'kai_action_scheduling_latency_milliseconds{action="reclaim"} 31.25',
    } <= set(page)


def test_a_plan_is_timed_by_the_clock_it_is_given() -> None:
    """Every plugin and action that is configured, and every way to look for victims; what is decided is the same."""
    cluster = Cluster(1).queue("q", 1).job("low", "q", ["n0"], priority=10).job("high", "q", [""], priority=90)
    ticks = count()
    stopwatch = Stopwatch(lambda: float(next(ticks)))
    done = plan(cluster.state, Config(), NOW, stopwatch=stopwatch)
    assert list(stopwatch.actions) == list(ACTIONS)
    assert list(stopwatch.plugins) == list(DEFAULT_PLUGINS)
    # Between two readings of the clock there is one tick; a search reads it twice in between.
    assert stopwatch.actions["allocate"] == stopwatch.plugins["proportion"] == 1
    assert stopwatch.actions["preempt"] == 3
    assert [search.attempts for search in done.searches] == [(Attempt("NodeLocalGreedy", 1.0, "solved"),)]
    assert done.decisions == cluster.plan(config=Config()).decisions


@virtual
async def test_the_scheduler_times_its_cycles() -> None:
    """Whatever is configured is on the page after the first cycle."""
    ACTION.clear()
    PLUGIN.clear()
    async with stage(*PARTS) as world:
        await world.node("n1")
        await asyncio.sleep(5)
    page = generate_latest(REGISTRY).decode()
    for action in ACTIONS:
        assert f'kai_action_scheduling_latency_milliseconds{{action="{action}"}}' in page
    assert 'kai_plugin_scheduling_latency_milliseconds{OnSession="OnSessionOpen",plugin="proportion"}' in page
