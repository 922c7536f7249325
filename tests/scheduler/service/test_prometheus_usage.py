"""Recent use as a Prometheus has it: what is asked, over which window, and what the answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from spinney.api.kaishard import UsageDb, UsageParams
from spinney.api.meta import convert
from spinney.kube.clock import Clock
from spinney.scheduler.config import ConfigError
from spinney.scheduler.service.component import usage_source
from spinney.scheduler.service.prometheus_usage import PrometheusUsage
from spinney.scheduler.service.usage_window import window_of

NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)


class Noon(Clock):
    """A clock that stands."""

    def now(self) -> datetime:
        return NOW


def source(address: str = "http://prometheus", **parameters: Any) -> PrometheusUsage:
    """What a shard's settings make."""
    said = {"clientType": "prometheus", "connectionString": address, "usageParams": parameters}
    usage = usage_source(convert(UsageDb, said), Noon())
    assert isinstance(usage, PrometheusUsage)
    return usage


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({}, 7 * 86400),
        ({"windowSize": "2h"}, 7200),
        ({"windowType": "tumbling", "windowSize": "1d", "tumblingWindowStartTime": "2026-11-01T12:00:00Z"}, 1800),
        ({"windowType": "tumbling", "windowSize": "1d", "tumblingWindowStartTime": "2027-01-01T00:00:00Z"}, 0),
        ({"windowType": "cron", "cronString": "0 0 * * 0"}, 12 * 3600 + 1800),
        ({"windowType": "cron", "cronString": "30 12 * * *"}, 0),
        ({"windowType": "cron", "cronString": "0 0 1 1 *"}, 318 * 86400 + 12 * 3600 + 1800),
    ],
)
def test_since_when_use_counts(said: dict[str, Any], seconds: float) -> None:
    """The last so many hours, since the last of fixed windows began, or since a schedule was last due."""
    assert window_of(convert(UsageParams, said)).length(NOW) == seconds


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"windowType": "jumping"}, "windowType is 'jumping'; it must be sliding, tumbling or cron"),
        ({"windowType": "tumbling"}, "tumblingWindowStartTime must say when"),
        ({"windowType": "cron", "cronString": "daily"}, "cronString: expected exactly 5 fields, found 1"),
    ],
)
def test_windows_that_cannot_be(said: dict[str, Any], says: str) -> None:
    """The message names the field."""
    with pytest.raises(ConfigError, match=says):
        window_of(convert(UsageParams, said))


def test_older_use_fades() -> None:
    """By its own age: inside the subquery `time()` is the moment of each sample."""
    query = source(windowSize="1h", halfLifePeriod="10m").query
    assert query.expression("used", NOW) == (
        f"sum_over_time(((used) * (0.5 ^ (({NOW.timestamp():.0f} - time()) / 600)))[3600s:1m])"
    )
    assert source(windowSize="1h").query.expression("used", NOW) == "sum_over_time((used)[3600s:1m])"


@asynccontextmanager
async def prometheus(values: dict[str, dict[str, float]]) -> AsyncIterator[str]:
    """A server that knows some metrics by name, each by queue."""

    async def answer(request: web.Request) -> web.Response:
        by_queue = next(amounts for name, amounts in values.items() if f"({name})" in request.query["query"])
        result = [{"metric": {"queue_name": queue}, "value": [0, str(value)]} for queue, value in by_queue.items()]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    app = web.Application()
    app.router.add_get("/api/v1/query", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def test_shares_are_parts_of_the_capacity() -> None:
    """Under the names that `extraParams` gives, upstream's where it gives none."""
    values = {
        "my_gpus": {"a": 30.0, "b": 10.0},
        "my_capacity": {"": 100.0},
        "kai_queue_allocated_cpu_cores": {"a": 5.0},
        'sum(kube_node_status_capacity{resource="cpu"})': {"": 10.0},
        "kai_queue_allocated_memory_bytes": {},
        'sum(kube_node_status_capacity{resource="memory"})': {},
    }
    async with prometheus(values) as address, aiohttp.ClientSession() as session:
        names = {"gpuAllocationMetric": "my_gpus", "gpuCapacityMetric": "my_capacity"}
        usage = source(address, extraParams=names)
        usage.shares = await usage._fetch(session)
        assert (usage.share("a"), usage.share("b"), usage.share("c")) == ((0.5, 0.0, 0.3), (0.0, 0.0, 0.1), (0.0,) * 3)
