"""Leader election: one at a time, whatever happens to the lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from spinney.api.meta import Json
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.clock import LoopClock
from spinney.kube.controllers.leader import LEASE, Election, LeaseLost
from spinney.kube.errors import NotLeader
from spinney.sim.loop import START
from tests.kube.fake_server import FakeServer, Thing, lose_request, thing
from tests.virtual_time import virtual


def candidate(world: FakeServer, name: str) -> Election:
    return Election(Client(world, Chance(len(name))), LoopClock(START), "lease", "default", identity=name)


def lease(world: FakeServer) -> Json:
    spec: Json = world.objects[LEASE.path("default", "lease")]["spec"]
    return spec


class Rule:
    """Writes down who leads when."""

    def __init__(self) -> None:
        self.leaders: list[str] = []

    def of(self, name: str) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            self.leaders.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.leaders.remove(name)

        return work


@virtual
async def test_one_leads() -> None:
    """Of three candidates one leads, for as long as it lives."""
    world = FakeServer()
    rule = Rule()
    tasks = [asyncio.create_task(candidate(world, name).lead(rule.of(name))) for name in ("a", "bb", "ccc")]
    for _ in range(100):
        await asyncio.sleep(7)
        assert rule.leaders == ["a"]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@virtual
async def test_a_leader_that_stops_gives_the_lease_back() -> None:
    """After a graceful stop the next one leads within a retry, not after the lease ran out."""
    world = FakeServer()
    rule = Rule()
    first = asyncio.create_task(candidate(world, "a").lead(rule.of("a")))
    await asyncio.sleep(1)
    second = asyncio.create_task(candidate(world, "bb").lead(rule.of("bb")))
    await asyncio.sleep(30)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert "holderIdentity" not in lease(world)
    await asyncio.sleep(4)
    assert rule.leaders == ["bb"]
    assert lease(world)["leaseTransitions"] == 1
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


@virtual
async def test_a_leader_that_dies_is_followed() -> None:
    """A silent leader is followed once its lease has run out on the follower's own clock, and not before."""
    world = FakeServer()
    world.put(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "lease", "namespace": "default"},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"},
        }
    )
    rule = Rule()
    follower = asyncio.create_task(candidate(world, "bb").lead(rule.of("bb")))
    await asyncio.sleep(14)
    assert rule.leaders == []
    await asyncio.sleep(6)
    assert rule.leaders == ["bb"]
    follower.cancel()
    await asyncio.gather(follower, return_exceptions=True)


@virtual
async def test_no_write_after_the_renew_deadline() -> None:
    """A leader cut off from the server stops writing before anyone else may lead, and its work is cancelled."""
    world = FakeServer()
    rule = Rule()
    election = candidate(world, "a")
    client = Client(world, Chance(1)).named("leader", election.may_write)
    leading = asyncio.create_task(election.lead(rule.of("a")))
    await asyncio.sleep(1)
    await client.create(Thing, thing("before"), "default")
    world.once("GET", lose_request, times=10**6, path="/leases")
    start = asyncio.get_running_loop().time()
    with pytest.raises(LeaseLost):
        await leading
    assert asyncio.get_running_loop().time() - start < 15
    assert rule.leaders == []
    with pytest.raises(NotLeader):
        await client.create(Thing, thing("after"), "default")
    assert Thing.resource.path("default", "after") not in world.objects


@virtual
async def test_two_leaders_never_write_at_once() -> None:
    """While the old leader cannot renew and a new one takes over, there is no moment when both may write."""
    world = FakeServer()
    rule = Rule()
    old, new = candidate(world, "a"), candidate(world, "bb")
    first = asyncio.create_task(old.lead(rule.of("a")))
    await asyncio.sleep(1)
    second = asyncio.create_task(new.lead(rule.of("bb")))
    await asyncio.sleep(5)

    cut = [request for request in world.requests if request.path.endswith("/lease")]
    assert cut
    old._client = Client(_Silent(), Chance(3))
    for _ in range(300):
        assert not (_may(old) and _may(new))
        await asyncio.sleep(0.1)
    assert _may(new)
    assert isinstance((await asyncio.gather(first, return_exceptions=True))[0], LeaseLost)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


@virtual
async def test_a_lease_taken_from_us_is_lost() -> None:
    """Who finds another's name on its lease stops at once."""
    world = FakeServer()
    rule = Rule()
    leading = asyncio.create_task(candidate(world, "a").lead(rule.of("a")))
    await asyncio.sleep(1)
    live_lease = world.objects[LEASE.path("default", "lease")]
    world.put({**live_lease, "spec": {**live_lease["spec"], "holderIdentity": "thief"}})
    with pytest.raises(LeaseLost):
        await leading
    assert lease(world)["holderIdentity"] == "thief"


def _may(election: Election) -> bool:
    try:
        election.may_write()
    except NotLeader:
        return False
    return True


class _Silent(FakeServer):
    """A server that never answers."""

    async def send(self, request: object) -> object:  # type: ignore[override]  # it never comes to an answer
        await asyncio.Event().wait()
        raise AssertionError
