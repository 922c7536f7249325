"""The controller's promises, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from spinney.api.meta import Key
from spinney.kube.controllers.controller import After, Controller, owner_key, run_controllers
from spinney.kube.runtime import Runtime
from tests.kube.fake_server import FakeServer, Thing, lose_answer, lose_request, refuse, runtime, settle, thing
from tests.virtual_time import virtual


@asynccontextmanager
async def running(life: Runtime, *controllers: Controller) -> AsyncIterator[None]:
    """Caches and controllers, for as long as the block lasts."""
    tasks = [asyncio.create_task(life.caches.run()), asyncio.create_task(run_controllers(life, *controllers))]
    await settle()
    try:
        yield
    finally:
        for task in reversed(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@virtual
async def test_what_is_there_is_reconciled() -> None:
    """Every object that is listed, and every one that changes later, is looked at."""
    world = FakeServer()
    world.put(thing("a"))
    life = runtime(world)
    seen: list[Key] = []

    async def reconcile(key: Key) -> None:
        seen.append(key)

    async with running(life, Controller("test", life, reconcile).watch(life.caches.of(Thing))):
        assert seen == [("default", "a")]
        world.put(thing("b"))
        world.remove("a")
        await settle()
        assert seen == [("default", "a"), ("default", "b"), ("default", "a")]


@virtual
async def test_errors_are_retried() -> None:
    """A reconcile that raises is called again, later and later, until it goes well."""
    world = FakeServer()
    world.put(thing("a"))
    life = runtime(world)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def reconcile(key: Key) -> None:
        times.append(loop.time())
        if len(times) < 5:
            raise ValueError("not yet")

    async with running(life, Controller("test", life, reconcile).watch(life.caches.of(Thing))):
        await asyncio.sleep(60)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == 5
    assert gaps == sorted(gaps)


@virtual
async def test_what_trickles_in_is_taken_together() -> None:
    """The first key after a while is looked at at once, those that follow every so many seconds."""
    world = FakeServer()
    life = runtime(world)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def reconcile(key: Key) -> None:
        times.append(loop.time())

    async with running(life, Controller("test", life, reconcile, gather=1.0).watch(life.caches.of(Thing))):
        await asyncio.sleep(10)
        for number in range(5):
            world.put(thing(f"t{number}"))
            await asyncio.sleep(0.3)
        await asyncio.sleep(2)
    assert times == [10.0, 11.0, 11.0, 11.0, 12.0]


@virtual
async def test_a_key_that_rests_is_reconciled_once_for_all_changes_meanwhile() -> None:
    """The first change is looked at at once; those that follow wait until the key has rested, other keys do not."""
    world = FakeServer()
    life = runtime(world)
    loop = asyncio.get_running_loop()
    times: list[tuple[str, float]] = []

    async def reconcile(key: Key) -> None:
        times.append((key[1], loop.time()))

    def rest(key: Key) -> float:
        return 2.0 if key[1] == "large" else 0.0

    async with running(life, Controller("test", life, reconcile, rest=rest).watch(life.caches.of(Thing))):
        await asyncio.sleep(10)
        for _ in range(3):
            world.put(thing("large"))
            await asyncio.sleep(0.5)
        world.put(thing("small"))
        await asyncio.sleep(5)
    assert times == [("large", 10.0), ("small", 11.5), ("large", 12.0)]


@virtual
async def test_after_comes_back() -> None:
    """`After` calls the reconcile again though nothing changed."""
    world = FakeServer()
    world.put(thing("a"))
    life = runtime(world)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def reconcile(key: Key) -> After | None:
        times.append(loop.time())
        return After(30) if len(times) < 3 else None

    async with running(life, Controller("test", life, reconcile).watch(life.caches.of(Thing))):
        await asyncio.sleep(600)
    assert [round(at) for at in times] == [0, 30, 60]


@virtual
async def test_concurrency_is_limited() -> None:
    """No more reconciles run at once than allowed, and never two of one key."""
    world = FakeServer()
    for index in range(10):
        world.put(thing(f"t{index}"))
    life = runtime(world)
    busy: list[Key] = []
    most = 0

    async def reconcile(key: Key) -> None:
        nonlocal most
        assert key not in busy
        busy.append(key)
        most = max(most, len(busy))
        controller.enqueue(*key)
        await asyncio.sleep(1)
        busy.remove(key)

    controller = Controller("test", life, reconcile, concurrency=3).watch(life.caches.of(Thing))
    async with running(life, controller):
        await asyncio.sleep(30)
    assert most == 3


@virtual
async def test_a_reconcile_reads_its_own_writes() -> None:
    """While the watch lags, a key is not reconciled again: nothing is created twice."""
    world = FakeServer()
    world.put(thing("owner"))
    life = runtime(world)
    things = life.caches.of(Thing)
    made: list[str] = []

    async def reconcile(key: Key) -> None:
        if key[1] != "owner" or things.get(("default", "child")):
            return
        await life.client.create(Thing, thing("child"), "default")
        made.append("child")

    controller = Controller("test", life, reconcile).watch(things, lambda _: [("default", "owner")])
    arrived = world.lag()
    async with running(life, controller):
        controller.enqueue("default", "owner")
        await asyncio.sleep(30)
        assert made == ["child"]
        assert not controller.idle
        arrived.set()
        await settle()
        assert controller.idle
    assert made == ["child"]


@pytest.mark.parametrize(("happened", "creates"), [(True, 1), (False, 2)])
@virtual
async def test_a_lost_answer_is_found_out(happened: bool, creates: int) -> None:
    """After a write whose answer was lost, the next reconcile sees whether it happened."""
    world = FakeServer()
    world.put(thing("owner"))
    world.once("POST", lose_answer(world) if happened else lose_request, path="/things")
    life = runtime(world)
    things = life.caches.of(Thing)

    async def reconcile(key: Key) -> None:
        if things.get(("default", "child")) is None:
            await life.client.create(Thing, thing("child"), "default")

    controller = Controller("test", life, reconcile).watch(things, lambda _: [("default", "owner")])
    async with running(life, controller):
        await asyncio.sleep(60)
        assert things.get(("default", "child")) is not None
    assert world.count("POST") == creates


@virtual
async def test_a_conflict_is_retried_with_what_is_new() -> None:
    """A write that loses a race is made again from the newer object."""
    world = FakeServer()
    world.put(thing("a", value=1))
    world.once("PATCH", refuse(409, "Conflict"))
    life = runtime(world)
    things = life.caches.of(Thing)

    async def reconcile(key: Key) -> None:
        item = things.get(("default", "a"))
        if item is not None and "done" not in item.spec:
            version = item.metadata.resource_version
            patch = {"metadata": {"resourceVersion": version}, "spec": {"done": True}}
            await life.client.patch(Thing, ("default", "a"), patch)

    async with running(life, Controller("test", life, reconcile).watch(things)):
        await asyncio.sleep(60)
    assert world.objects[Thing.resource.path("default", "a")]["spec"] == {"value": 1, "done": True}
    assert life.client.writes.of("Thing", "a", "default") == 1


@virtual
async def test_stopping_lets_work_finish() -> None:
    """A controller that is stopped finishes what it is in the middle of, and starts nothing new."""
    world = FakeServer()
    world.put(thing("a"))
    life = runtime(world)
    finished: list[Key] = []

    async def reconcile(key: Key) -> None:
        await asyncio.sleep(5)
        finished.append(key)
        world.put(thing("b"))

    async with running(life, Controller("test", life, reconcile).watch(life.caches.of(Thing))):
        pass
    await asyncio.sleep(60)
    assert finished == [("default", "a")]


@virtual
async def test_owner_key() -> None:
    """A change of an owned object is its controller's business, if that is of the right kind."""
    world = FakeServer()
    child = thing("child")
    child["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "1"},
        {"apiVersion": "example.com/v1", "kind": "Thing", "name": "parent", "uid": "2", "controller": True},
    ]
    world.put(child)
    life = runtime(world)
    seen: list[Key] = []

    async def reconcile(key: Key) -> None:
        seen.append(key)

    async with running(life, Controller("test", life, reconcile).watch(life.caches.of(Thing), owner_key("Thing"))):
        assert seen == [("default", "parent")]
