"""How long the Service of a replica is put off, and what goes ahead of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Key
from spinney.api.podgang import PodGang
from spinney.grove.replica.service_delay import ServiceDelay
from spinney.kube.clock import LoopClock
from spinney.sim.loop import START, run_virtual
from tests import make
from tests.grove.conftest import Play
from tests.grove.stage import Stage
from tests.grove.virtual import played
from tests.virtual_time import virtual

A, B = ("default", "set/0"), ("default", "set/1")


GATED = {"ungated": False, "scheduled": False}
UNGATED = {"ungated": True, "scheduled": False}
SCHEDULED = {"ungated": True, "scheduled": True}


@virtual
async def test_gates_of_all_go_ahead_of_services_of_each() -> None:
    """A replica waits for others that are still held, less long once a pod of its own has a node; nobody for ever."""
    delay = ServiceDelay(LoopClock(START), lambda key: None)
    assert delay.seconds(A, **GATED) == delay.seconds(B, **GATED) == 10
    await asyncio.sleep(4)
    assert delay.seconds(A, **UNGATED) == delay.seconds(B, **GATED) == 6
    await asyncio.sleep(1)
    assert delay.seconds(A, **SCHEDULED) == 3
    await asyncio.sleep(3)
    assert delay.seconds(A, **SCHEDULED) == 0
    assert delay.seconds(B, **GATED) == 2
    await asyncio.sleep(2)
    assert delay.seconds(B, **GATED) == 0


def test_with_the_last_release_services_come_at_once() -> None:
    """Once no replica is held, because the last was released or is gone, those that waited are looked at."""

    async def scenario(last: Callable[[ServiceDelay], object]) -> None:
        woken: list[Key] = []
        delay = ServiceDelay(LoopClock(START), woken.append)
        delay.seconds(A, **GATED)
        delay.seconds(B, **GATED)
        assert delay.seconds(A, **UNGATED) == 10
        assert not woken
        last(delay)
        assert A in woken
        assert delay.seconds(A, **UNGATED) == 0

    run_virtual(scenario(lambda delay: delay.seconds(B, **UNGATED)), limit=60)
    run_virtual(scenario(lambda delay: delay.forget(B)), limit=60)


@played(nodes=2)
async def test_a_replica_that_is_never_released_has_its_service(stage: Stage) -> None:
    """Where no backend can take a gang its pods stay held, and the Service is there all the same."""
    await stage.apply(make.pcs("svc").clique("a", 2, schedulerName="volcano").build())
    await stage.holds(2, 0)
    await stage.sees(lambda: services(stage), ["svc-0"])
    assert all(pod.spec.scheduling_gates for pod in await stage.pods())


@played(nodes=40)
async def test_every_replica_has_its_service_soon(stage: Stage) -> None:
    """However many replicas come at once, each has its Service as soon as nobody waits for a release."""
    await stage.apply(make.pcs("svc", replicas=20).clique("a", 2).build())
    await stage.runs(40)
    await stage.settle(0.1)
    assert await services(stage) == sorted(f"svc-{index}" for index in range(20))


def test_pods_of_removed_replicas_go_first(both: Play) -> None:
    """A replica beyond the set's count loses its pods, then its gang and its clique."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(make.pcs("svc", stage.namespace).clique("a", 2).build())
        await stage.runs(2)
        before = (await stage.client.list(Pod, stage.namespace)).resource_version
        await stage.scale(PodCliqueSet, "svc", 0)
        await stage.sees(lambda: services(stage), [])
        pods = await first_versions(stage, Pod, before, 2)
        rest = [*await first_versions(stage, PodGang, before, 1), *await first_versions(stage, PodClique, before, 1)]
        assert max(pods) < min(rest)

    both(scenario, nodes=2)


async def services(stage: Stage) -> list[str]:
    """The names of the set's Services."""
    return sorted(service.name for service in await stage.list(Service, **{"app.kubernetes.io/part-of": "svc"}))


async def first_versions(stage: Stage, kind: type[Pod | PodGang | PodClique], since: str, count: int) -> list[int]:
    """The versions at which so many objects began to go."""
    versions: dict[str, int] = {}
    async for event in stage.client.watch(kind, stage.namespace, resource_version=since):
        going = event.object is not None and (event.type == "DELETED" or event.object.metadata.deletion_timestamp)
        if event.object is not None and going:
            versions.setdefault(event.object.name, int(event.resource_version))
        if len(versions) == count:
            break
    return list(versions.values())
