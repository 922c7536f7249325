"""Prometheus: made, kept for a while when no longer wanted, and asked whether it answers where it is elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from spinney.api.conditions import find
from spinney.api.kai import Config
from spinney.api.kaiconfig import ConfigSpec
from spinney.api.meta import Json, convert
from spinney.api.times import rfc3339
from spinney.app.components import load
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Runtime
from spinney.services.platform.apply import Place, place_of
from spinney.services.platform.controller import Platform
from spinney.services.platform.prometheus import DEPRECATED, plan_prometheus
from spinney.services.platform.settings import PlatformSettings
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(present: dict[Place, Json], now: datetime = NOW, **prometheus: object) -> dict[Place, Json]:
    """What an installation should have, given what it has."""
    config = convert(ConfigSpec, {"prometheus": prometheus})
    return {place_of(document): document for document in plan_prometheus(config, present, now)}


PROMETHEUS: Place = ("Prometheus", "kai-scheduler", "prometheus")


def test_a_prometheus_that_is_switched_off_stays_as_long_as_its_data() -> None:
    """It is marked with the moment, its Service and account stay beside it, and after its retention all of it goes."""
    made = planned({}, enabled=True, retentionPeriod="2w")
    assert {kind for kind, _, _ in made} == {"ServiceAccount", "Prometheus", "Service", "ServiceMonitor"}
    off = planned(made, NOW, enabled=False)
    assert off[PROMETHEUS]["metadata"]["annotations"] == {DEPRECATED: rfc3339(NOW)}
    assert {kind for kind, _, _ in off} == {"ServiceAccount", "Prometheus", "Service"}
    later = planned(off, NOW + timedelta(days=13), enabled=False)
    assert later == off, "the moment is kept"
    assert planned(off, NOW + timedelta(days=15), enabled=False) == {}


def test_a_prometheus_that_is_wanted_again_loses_its_mark() -> None:
    """Nothing was lost."""
    off = planned(planned({}, enabled=True), enabled=False)
    again = planned(off, enabled=True)
    assert "annotations" not in again[PROMETHEUS]["metadata"]


def test_a_mark_that_cannot_be_read_is_made_anew() -> None:
    """Somebody wrote into it."""
    off = planned(planned({}, enabled=True), enabled=False)
    off[PROMETHEUS]["metadata"]["annotations"] = {DEPRECATED: "yesterday"}
    assert planned(off, enabled=False)[PROMETHEUS]["metadata"]["annotations"] == {DEPRECATED: rfc3339(NOW)}


class Elsewhere:
    """A Prometheus of somebody else."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.problem = ""

    async def ping(self, url: str, seconds: float) -> str:
        self.asked.append(url)
        return self.problem


class Runner:
    """Everything runs."""

    def objects(self, *_: object) -> list[Json]:
        return []

    async def keep(self, *_: object) -> None: ...

    def waiting(self, *_: object) -> str:
        return ""


@asynccontextmanager
async def with_external(elsewhere: Elsewhere) -> AsyncIterator[Stage]:
    """The operator with a Prometheus elsewhere."""

    async def run(runtime: Runtime, _: object) -> None:
        platform = Platform(runtime, PlatformSettings(), load, Runner(), elsewhere.ping)
        await run_controllers(runtime, *platform.controllers)

    spec = {"prometheus": {"enabled": True, "externalPrometheusUrl": "metrics.example:9090"}}
    config = {"metadata": {"name": "kai-config"}, "spec": spec}
    async with stage((Component("platform", "", run), None), before=[(Config.resource, config, "")]) as held:
        await asyncio.sleep(1)
        yield held


async def conditions(held: Stage) -> dict[str, tuple[str, str]]:
    """Status and reason of what is said about availability."""
    conditions = (await held.client.get(Config, "kai-config")).status.conditions
    result = {}
    for kind in ("Available", "PrometheusConnected"):
        condition = find(conditions, kind)
        if condition is not None:
            result[kind] = (condition.status, condition.reason)
    return result


@virtual
async def test_a_prometheus_elsewhere_is_asked_whether_it_answers() -> None:
    """Its conditions say so; one that ceases to answer makes the installation unavailable, with the reason."""
    elsewhere = Elsewhere()
    async with with_external(elsewhere) as held:
        assert set(elsewhere.asked) == {"http://metrics.example:9090/api/v1/status/config"}
        good = {"Available": ("True", "available"), "PrometheusConnected": ("True", "prometheus_connected")}
        assert await conditions(held) == good
        elsewhere.problem = "connection refused"
        await asyncio.sleep(60)
        assert await conditions(held) == {
            "Available": ("False", "not_available"),
            "PrometheusConnected": ("False", "prometheus_connection_failed"),
        }
        available = find((await held.client.get(Config, "kai-config")).status.conditions, "Available")
        assert available is not None
        assert available.message == "external Prometheus: connection refused"
        elsewhere.problem = ""
        await asyncio.sleep(60)
        assert await conditions(held) == good
        await held.client.patch(Config, "kai-config", {"spec": {"prometheus": None}})
        await asyncio.sleep(60)
        assert await conditions(held) == {"Available": ("True", "available")}
