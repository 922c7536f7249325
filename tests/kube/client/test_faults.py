"""Whatever happens on the wire, in any order: caches end up whole, and nothing is created twice."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api.meta import Key
from spinney.kube.caches.cache import Caches, Change
from spinney.kube.chance import Chance
from spinney.kube.controllers.controller import Controller, run_controllers
from tests.kube.fake_server import FakeServer, Thing, lose_answer, lose_request, refuse, runtime, settle, thing
from tests.virtual_time import virtual


class Weather:
    """Does something bad, or nothing, as chance has it."""

    def __init__(self, world: FakeServer, seed: int) -> None:
        self.world = world
        self.chance = Chance(seed)

    def pick(self, count: int) -> int:
        """A number below `count`."""
        return int(self.chance.random() * count)

    async def strike(self) -> None:
        """One piece of bad luck."""
        world = self.world
        match self.pick(8):
            case 0:
                world.cut()
            case 1:
                world.compact()
                world.cut()
            case 2:
                world.once("GET", lose_request, times=1 + self.pick(4))
                world.cut()
            case 3:
                world.once("GET", refuse((429, 500, 503)[self.pick(3)]), times=1 + self.pick(3))
                world.cut()
            case 4:
                world.bookmark()
            case 5:
                await asyncio.sleep(self.chance.random() * 5)
            case _:
                await settle()


class Witness:
    """Holds what a cache tells against what can be true."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, int]] = {}

    def hear(self, change: Change[Thing]) -> None:
        """One change: it must fit what was told before."""
        name = change.object.name
        if change.old is None:
            assert name not in self.held
        else:
            assert self.held[name][0] == change.old.uid
        if change.new is None:
            del self.held[name]
            return
        version = int(change.new.metadata.resource_version)
        if change.old is not None:
            assert (change.new.uid, version > self.held[name][1]) == (change.old.uid, True)
        self.held[name] = (change.new.uid, version)


@pytest.mark.parametrize("seed", range(40))
@virtual
async def test_a_cache_tells_the_truth(seed: int) -> None:
    """No gap, no duplicate, nothing out of order; in the end the cache is the world."""
    world = FakeServer()
    weather = Weather(world, seed)
    caches = Caches(runtime(world, seed).client)
    cache = caches.of(Thing)
    witness = Witness()
    heard: list[Change[Thing]] = []
    cache.on_change(heard.append)
    running = asyncio.create_task(caches.run())
    for _ in range(60):
        name = f"t{weather.pick(5)}"
        present = Thing.resource.path("default", name) in world.objects
        if present and weather.pick(3) == 0:
            world.remove(name)
        else:
            world.put(thing(name, x=weather.pick(100)))
        if weather.pick(3) == 0:
            await weather.strike()
    world.faults.clear()
    await asyncio.sleep(120)
    for change in heard:
        witness.hear(change)
    assert {item.name: item.metadata.resource_version for item in cache} == {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in world.objects.values()
    }
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("seed", range(40))
@virtual
async def test_nothing_is_created_twice(seed: int) -> None:
    """Each parent gets exactly one child with a generated name, through lost answers, lags, cuts and refusals."""
    world = FakeServer()
    weather = Weather(world, seed)
    life = runtime(world, seed)
    things = life.caches.of(Thing)

    async def reconcile(key: Key) -> None:
        if things.get(key) is None or any(item.spec.get("parent") == key[1] for item in things):
            return
        body = {"metadata": {"generateName": f"{key[1]}-"}, "spec": {"parent": key[1]}}
        await life.client.create(Thing, body, "default")

    def keys(change: Change[Thing]) -> list[Key]:
        return [("default", change.object.spec.get("parent") or change.object.name)]

    controller = Controller("children", life, reconcile, concurrency=3).watch(things, keys)
    tasks = [asyncio.create_task(life.caches.run()), asyncio.create_task(run_controllers(life, controller))]
    for index in range(15):
        world.put(thing(f"p{index}"))
        arrived = world.lag() if weather.pick(3) == 0 else None
        fault = (lose_answer(world), lose_request, refuse(503), refuse(429), refuse(500))[weather.pick(5)]
        world.once("POST", fault)
        await weather.strike()
        for _ in range(3):
            controller.enqueue("default", f"p{weather.pick(index + 1)}")
        if arrived is not None:
            await asyncio.sleep(weather.chance.random())
            arrived.set()
    world.faults.clear()
    await asyncio.sleep(300)
    parents = sorted(item["spec"]["parent"] for item in world.objects.values() if "parent" in item["spec"])
    assert parents == sorted(f"p{index}" for index in range(15))
    for task in reversed(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
