"""Recent usage of queues, read from Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp
import structlog

from spinney.kube.clock import Clock
from spinney.scheduler.service.metrics import ASKING
from spinney.scheduler.service.usage_window import UsageWindow
from spinney.scheduler.state.tasks import Triple

_log = structlog.get_logger("spinney.scheduler")

Names = tuple[str, str, str]
_RESOURCES = ("cpu", "memory", "gpu")
_ALLOCATED = ("kai_queue_allocated_cpu_cores", "kai_queue_allocated_memory_bytes", "kai_queue_allocated_gpus")
_CAPACITY = (
    'sum(kube_node_status_capacity{resource="cpu"})',
    'sum(kube_node_status_capacity{resource="memory"})',
    'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})',
)


def metrics_of(parameters: Mapping[str, str]) -> tuple[Names, Names]:
    """Names of the usage and capacity metrics: from `extraParams`, else upstream's."""
    named = {
        metric: [
            parameters.get(f"{resource}{metric}Metric") or usual
            for resource, usual in zip(_RESOURCES, default, strict=True)
        ]
        for metric, default in (("Allocation", _ALLOCATED), ("Capacity", _CAPACITY))
    }
    (a, b, c), (d, e, f) = named["Allocation"], named["Capacity"]
    return (a, b, c), (d, e, f)


@dataclass(frozen=True)
class UsageQuery:
    """The Prometheus query: window, decay, interval and metric names."""

    address: str
    window: UsageWindow
    half_life_seconds: float | None = None
    every_seconds: float = 60.0
    timeout_seconds: float = 60.0
    allocated: Names = _ALLOCATED
    capacity: Names = _CAPACITY

    def expression(self, metric: str, now: datetime) -> str:
        """The sum of a metric over the window with decay; inside a subquery `time()` is the time of the sample."""
        seconds = max(int(self.window.length(now)), 60)
        if self.half_life_seconds is None:
            return f"sum_over_time(({metric})[{seconds}s:1m])"
        fading = f"(({metric}) * (0.5 ^ (({now.timestamp():.0f} - time()) / {self.half_life_seconds:g})))"
        return f"sum_over_time({fading}[{seconds}s:1m])"


@dataclass
class PrometheusUsage:
    """The last answer of Prometheus; kept while it does not answer."""

    query: UsageQuery
    clock: Clock
    shares: dict[str, Triple] = field(default_factory=dict)

    async def run(self) -> None:
        """Query periodically until cancelled."""
        loop = asyncio.get_running_loop()
        timeout = aiohttp.ClientTimeout(total=self.query.timeout_seconds)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                start = loop.time()
                try:
                    self.shares = await self._fetch(session)
                    ASKING.observe(1000 * (loop.time() - start))
                except (aiohttp.ClientError, TimeoutError, KeyError, ValueError) as error:
                    _log.warning("usage.unavailable", address=self.query.address, error=str(error))
                await asyncio.sleep(self.query.every_seconds)

    def share(self, queue: str) -> Triple:
        """A queue's recent usage, as a fraction of the cluster's capacity."""
        return self.shares.get(queue, (0.0, 0.0, 0.0))

    async def _fetch(self, session: aiohttp.ClientSession) -> dict[str, Triple]:
        parts: dict[str, list[float]] = {}
        for number in range(3):
            whole = await self._vector(session, self.query.capacity[number])
            capacity = sum(whole.values())
            for queue, used in (await self._vector(session, self.query.allocated[number])).items():
                parts.setdefault(queue, [0.0, 0.0, 0.0])[number] = used / capacity if capacity > 0 else 0.0
        return {queue: (amounts[0], amounts[1], amounts[2]) for queue, amounts in parts.items()}

    async def _vector(self, session: aiohttp.ClientSession, metric: str) -> dict[str, float]:
        parameters = {"query": self.query.expression(metric, self.clock.now())}
        async with session.get(f"{self.query.address.rstrip('/')}/api/v1/query", params=parameters) as answer:
            answer.raise_for_status()
            body: dict[str, Any] = await answer.json()
        return {sample["metric"].get("queue_name", ""): float(sample["value"][1]) for sample in body["data"]["result"]}
