"""A probe of the external Prometheus of an installation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp

from spinney.api import labels
from spinney.api.kaiconfig import Config, HealthProbe
from spinney.api.meta import Key
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.runtime import Runtime

# Probes a URL within a number of seconds; returns the problem, empty where there is none.
Ping = Callable[[str, float], Awaitable[str]]


async def over_http(url: str, seconds: float) -> str:
    """Probe over HTTP."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.get(url) as response,
        ):
            return "" if response.ok else f"{url} answers with status {response.status}"
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return f"{url}: {error or type(error).__name__}"


class PrometheusProbe:
    """Holds the last result, and calls `changed` when it changes."""

    def __init__(self, runtime: Runtime, ping: Ping, changed: Callable[[], None]) -> None:
        self._configs = runtime.caches.of(Config)
        self._ping = ping
        self._changed = changed
        # The problem; empty where there is none; None before the first probe, or without one.
        self.problem: str | None = None
        self.controller = Controller("prometheus-probe", runtime, self.reconcile, concurrency=1)
        self.controller.watch(self._configs)

    async def reconcile(self, key: Key) -> After | None:
        """Probe, with retries."""
        config = self._configs.get(key[1])
        if key[1] != labels.KAI_CONFIG:
            return None
        prometheus = config.spec.prometheus if config is not None else None
        if prometheus is None or not prometheus.enabled or not prometheus.external_prometheus_url:
            self._set_problem(None)
            return None
        probe = prometheus.external_prometheus_health_probe or HealthProbe()
        self._set_problem(await self._ask(_status_page(prometheus.external_prometheus_url), probe))
        return After(float(probe.interval or 30))

    async def _ask(self, url: str, wanted: HealthProbe) -> str:
        problem = ""
        for attempt in range(1, (wanted.max_retries or 5) + 1):
            problem = await self._ping(url, float(wanted.timeout or 10))
            if not problem:
                return ""
            await asyncio.sleep(attempt)
        return f"external Prometheus: {problem}"

    def _set_problem(self, problem: str | None) -> None:
        if problem != self.problem:
            self.problem = problem
            self._changed()


def _status_page(url: str) -> str:
    whole = url if "://" in url else f"http://{url}"
    return f"{whole.rstrip('/')}/api/v1/status/config"
