"""Recent use of queues as Prometheus has it, for clusters where it is kept there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import structlog

from spinney.scheduler.tasks import Triple

_log = structlog.get_logger("spinney.scheduler")

_ALLOCATED = ("kai_queue_allocated_cpu_cores", "kai_queue_allocated_memory_bytes", "kai_queue_allocated_gpus")
_CAPACITY = (
    'sum(kube_node_status_capacity{resource="cpu"})',
    'sum(kube_node_status_capacity{resource="memory"})',
    'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})',
)


@dataclass(frozen=True)
class UsageQuery:
    """What is asked of Prometheus: over which window, fading how fast, how often, and under which metric names."""

    address: str
    window: str = "1w"
    half_life_seconds: float | None = None
    every_seconds: float = 60.0
    timeout_seconds: float = 60.0
    allocated: tuple[str, str, str] = _ALLOCATED
    capacity: tuple[str, str, str] = _CAPACITY

    def expression(self, metric: str) -> str:
        """The sum of a metric over the window, older samples fading."""
        if self.half_life_seconds is None:
            return f"sum_over_time(({metric})[{self.window}:1m])"
        fading = f"(({metric}) * (0.5 ^ ((time() - timestamp({metric})) / {self.half_life_seconds:g})))"
        return f"sum_over_time({fading}[{self.window}:1m])"


@dataclass
class PrometheusUsage:
    """Keeps the last answer; a Prometheus that does not answer leaves it as it is."""

    query: UsageQuery
    shares: dict[str, Triple] = field(default_factory=dict)

    async def run(self) -> None:
        """Ask again and again until cancelled."""
        timeout = aiohttp.ClientTimeout(total=self.query.timeout_seconds)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                try:
                    self.shares = await self._fetch(session)
                except (aiohttp.ClientError, TimeoutError, KeyError, ValueError) as error:
                    _log.warning("usage.unavailable", address=self.query.address, error=str(error))
                await asyncio.sleep(self.query.every_seconds)

    def share(self, queue: str) -> Triple:
        """A queue's recent use as a part of what the cluster could have given."""
        return self.shares.get(queue, (0.0, 0.0, 0.0))

    async def _fetch(self, session: aiohttp.ClientSession) -> dict[str, Triple]:
        parts: dict[str, list[float]] = {}
        for number in range(3):
            whole = await self._vector(session, self.query.capacity[number])
            capacity = sum(whole.values())
            for queue, used in (await self._vector(session, self.query.allocated[number])).items():
                parts.setdefault(queue, [0.0, 0.0, 0.0])[number] = used / capacity if capacity > 0 else 0.0
        return {queue: (found[0], found[1], found[2]) for queue, found in parts.items()}

    async def _vector(self, session: aiohttp.ClientSession, metric: str) -> dict[str, float]:
        parameters = {"query": self.query.expression(metric)}
        async with session.get(f"{self.query.address.rstrip('/')}/api/v1/query", params=parameters) as answer:
            answer.raise_for_status()
            body: dict[str, Any] = await answer.json()
        return {sample["metric"].get("queue_name", ""): float(sample["value"][1]) for sample in body["data"]["result"]}
