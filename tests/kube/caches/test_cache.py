"""Shared caches: no gap, no duplicate, whatever happens to the watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from spinney.api.meta import Json
from spinney.kube.caches.cache import Cache, Caches, Change, handlers_end
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response
from spinney.kube.client.writes import Write
from spinney.kube.errors import status_body
from tests.kube.fake_server import FakeServer, Thing, lose_request, query_of, refuse, settle, thing
from tests.virtual_time import virtual

Told = tuple[str, str, int | None]


@asynccontextmanager
async def watching(world: FakeServer) -> AsyncIterator[tuple[Cache[Thing], list[Told]]]:
    """A cache of things, and what it tells."""
    client = Client(world, Chance(1))
    caches = Caches(client)
    cache = caches.of(Thing)
    changes: list[Told] = []

    def tell(change: Change[Thing]) -> None:
        kind = "new" if change.old is None else "gone" if change.new is None else "changed"
        changes.append((kind, change.object.name, change.object.spec.get("x")))

    cache.on_change(tell)
    task = asyncio.create_task(caches.run())
    await settle()
    try:
        yield cache, changes
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@virtual
async def test_list_then_watch() -> None:
    """What is there is told as new; then every change once, in order."""
    world = FakeServer()
    world.put(thing("a", x=1))
    async with watching(world) as (cache, changes):
        assert cache.has_synced
        world.put(thing("a", x=2))
        world.put(thing("b", x=3))
        world.remove("a")
        await settle()
        assert changes == [("new", "a", 1), ("changed", "a", 2), ("new", "b", 3), ("gone", "a", 2)]
        assert [item.name for item in cache] == ["b"]


@virtual
async def test_a_cut_watch_is_resumed() -> None:
    """After a cut the watch goes on after the last version seen: nothing is listed again, missed or told twice."""
    world = FakeServer()
    world.put(thing("a", x=1))
    async with watching(world) as (_, changes):
        for x in range(2, 6):
            world.cut()
            world.put(thing("a", x=x))
            await asyncio.sleep(10)
        assert [x for _, _, x in changes] == [1, 2, 3, 4, 5]
        lists = [request for request in world.requests if "watch" not in query_of(request)]
        assert len(lists) == 1


@virtual
async def test_a_forgotten_version_is_listed_again() -> None:
    """On 410 the cache lists, and tells exactly what changed in between."""
    world = FakeServer()
    for name in ("same", "changed", "gone", "replaced"):
        world.put(thing(name, x=1))
    async with watching(world) as (cache, changes):
        changes.clear()
        world.once("GET", lose_request, times=3)
        world.cut()
        await settle()
        world.put(thing("changed", x=2))
        world.remove("gone")
        world.remove("replaced")
        world.put(thing("replaced", x=9))
        world.put(thing("new", x=3))
        world.compact()
        await asyncio.sleep(60)
        expected = [("gone", "gone", 1), ("changed", "changed", 2), ("new", "new", 3)]
        expected += [("gone", "replaced", 1), ("new", "replaced", 9)]
        assert sorted(changes) == sorted(expected)
        world.put(thing("same", x=7))
        await settle()
        assert changes[-1] == ("changed", "same", 7)
        assert len(cache) == 4


@virtual
async def test_an_error_line_is_heard() -> None:
    """A 410 may also come as a line of a watch that was accepted."""
    world = FakeServer()
    world.put(thing("a", x=1))

    async def expired(_: Request) -> Response | None:
        async def stream() -> AsyncIterator[bytes]:
            yield b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'

        return Response(200, stream=stream())

    async with watching(world) as (_, changes):
        world.once("GET", expired)
        world.put(thing("a", x=2))
        world.cut()
        world.put(thing("a", x=3))
        await asyncio.sleep(60)
        assert changes[-1] == ("changed", "a", 3)
        assert len(changes) == len(set(changes))


@virtual
async def test_a_bookmark_moves_the_version() -> None:
    """A quiet watch resumes from its bookmark, which the server still knows."""
    world = FakeServer()
    world.put(thing("a", x=1))
    async with watching(world) as (cache, changes):
        for _ in range(5):
            world.version += 1
        world.bookmark()
        await settle()
        assert cache.resource_version == str(world.version)
        world.compact()
        world.cut()
        world.put(thing("a", x=2))
        await asyncio.sleep(10)
        assert changes == [("new", "a", 1), ("changed", "a", 2)]
        assert sum("watch" not in query_of(request) for request in world.requests) == 1


@virtual
async def test_an_unreachable_server_is_waited_for() -> None:
    """While the server is away nothing is told as gone, and we ask less and less often."""
    world = FakeServer()
    world.put(thing("a", x=1))
    async with watching(world) as (cache, changes):
        world.once("GET", lose_request, times=10**6)
        world.cut()
        before = len(world.requests)
        await asyncio.sleep(1800)
        assert len(world.requests) - before < 100
        assert cache.get(("default", "a")) is not None
        world.faults.clear()
        world.put(thing("a", x=2))
        await asyncio.sleep(60)
        assert changes == [("new", "a", 1), ("changed", "a", 2)]


@virtual
async def test_a_busy_server_says_when_to_come_back() -> None:
    """A watch that is turned away is asked for again when the server said, not before."""
    world = FakeServer()

    async def busy(_: Request) -> Response | None:
        body = status_body(429, "TooManyRequests", "later", {"retryAfterSeconds": 40})
        return Response(429, msgspec.json.encode(body))

    world.once("GET", busy)
    async with watching(world) as (cache, _):
        await asyncio.sleep(39)
        assert not cache.has_synced
        await asyncio.sleep(2)
        assert cache.has_synced


@virtual
async def test_a_kind_that_comes_later() -> None:
    """A kind whose definition is not installed yet is waited for."""
    world = FakeServer()
    world.put(thing("a", x=1))
    world.once("GET", refuse(404, "NotFound"), times=4)
    async with watching(world) as (cache, changes):
        assert not cache.has_synced
        await asyncio.sleep(60)
        assert changes == [("new", "a", 1)]


@virtual
async def test_a_streaming_list() -> None:
    """Where the server streams its list, the first bookmark with the mark ends it, and the watch goes on."""
    world = FakeServer()

    def line(kind: str, name: str, version: int, **annotations: str) -> bytes:
        body = thing(name, x=version)
        body["metadata"] |= {"resourceVersion": str(version), "uid": name, "annotations": annotations}
        return msgspec.json.encode({"type": kind, "object": body}) + b"\n"

    async def streamed(request: Request) -> Response | None:
        assert query_of(request)["sendInitialEvents"] == ["true"]

        async def stream() -> AsyncIterator[bytes]:
            whole = line("ADDED", "a", 1) + line("ADDED", "b", 2)
            yield whole[:10]
            yield whole[10:]
            yield line("BOOKMARK", "", 5, **{"k8s.io/initial-events-end": "true"})
            yield line("MODIFIED", "a", 6)
            await asyncio.Event().wait()

        return Response(200, stream=stream())

    world.once("GET", streamed)
    async with watching(world) as (cache, changes):
        assert cache.has_synced
        assert changes == [("new", "a", 1), ("new", "b", 2), ("changed", "a", 6)]
        assert cache.resource_version == "6"


@virtual
async def test_indexes_follow() -> None:
    """An index groups objects by what they say now."""
    world = FakeServer()
    world.put(thing("a", node="n1"))
    world.put(thing("b", node="n1"))
    async with watching(world) as (cache, _):
        cache.index("node", lambda item: [item.spec["node"]])
        assert [item.name for item in cache.by("node", "n1")] == ["a", "b"]
        world.put(thing("a", node="n2"))
        world.remove("b")
        await settle()
        assert cache.by("node", "n1") == []
        assert [item.name for item in cache.by("node", "n2")] == ["a"]


@virtual
async def test_a_handler_that_fails_harms_nobody() -> None:
    """The cache is shared: one reader's exception does not stop it for the others."""
    world = FakeServer()
    async with watching(world) as (cache, changes):

        def broken(_: Change[Thing]) -> None:
            raise ValueError("a mistake")

        cache.on_change(broken)
        world.put(thing("a", x=1))
        world.put(thing("b", x=2))
        await settle()
        assert [name for _, name, _ in changes] == ["a", "b"]


CHILD = Thing.resource


@pytest.mark.parametrize(
    ("write", "seen"),
    [
        (Write("patch", CHILD, "default", "a", resource_version="1"), True),
        (Write("patch", CHILD, "default", "a", resource_version="2"), False),
        (Write("create", CHILD, "default", "new", resource_version="2"), False),
        (Write("create", CHILD, "default", "came-and-went", resource_version="1"), True),
        (Write("delete", CHILD, "default", "a", uid="uid-1"), False),
        (Write("delete", CHILD, "default", "a", uid="uid-of-a-predecessor"), True),
        (Write("delete", CHILD, "default", "other"), True),
        (Write("post", CHILD, "default", "a", "binding"), True),
    ],
)
@virtual
async def test_what_counts_as_seen(write: Write, seen: bool) -> None:
    """A cache at version 1 that holds `a` knows which writes it already shows."""
    world = FakeServer()
    world.put(thing("a"))
    async with watching(world) as (cache, _):
        assert cache.has_seen(write) is seen


@virtual
async def test_a_selecting_cache_waits_for_what_it_selects() -> None:
    """A create that a cache does not select is never waited for."""
    world = FakeServer()
    client = Client(world, Chance(1))
    cache = Cache(client, Thing, labels="app=x")
    cache.replace([], "1")
    ours: Json = {"app": "x"}
    assert not cache.has_seen(Write("create", CHILD, "default", "a", resource_version="2", labels=ours))
    assert cache.has_seen(Write("create", CHILD, "default", "a", resource_version="2", labels={"app": "y"}))


@virtual
async def test_handlers_end_with_their_reader() -> None:
    """A reader that stops is told nothing more, though the cache and its other readers go on."""
    world = FakeServer()
    async with watching(world) as (cache, changes):
        heard: list[str] = []
        with handlers_end():
            cache.on_change(lambda change: heard.append(change.object.name))
            world.put(thing("a", x=1))
            await settle()
        world.put(thing("b", x=1))
        await settle()
        assert heard == ["a"]
        assert [name for _, name, _ in changes] == ["a", "b"]


def labelled(name: str, x: int, **labels: str) -> Json:
    body = thing(name, x=x)
    body["metadata"]["labels"] = labels
    return body


@pytest.mark.parametrize("whole_first", [True, False])
@virtual
async def test_a_part_follows_the_whole(whole_first: bool) -> None:
    """Where one cache holds all of a kind, one that selects shows the same objects, on one watch."""
    world = FakeServer()
    world.put(labelled("a", 1, app="x"))
    world.put(labelled("b", 1, app="y"))
    caches = Caches(Client(world, Chance(1)))
    if whole_first:
        caches.of(Thing)
    part = caches.of(Thing, labels="app=x")
    changes: list[Told] = []
    part.on_change(lambda change: changes.append(("", change.object.name, change.new and change.new.spec["x"])))
    running = asyncio.create_task(caches.run())
    await settle()
    whole = caches.of(Thing)
    await settle()
    assert part.get(("default", "a")) is whole.get(("default", "a"))
    world.put(labelled("b", 2, app="x"))
    world.put(labelled("a", 2, app="z"))
    world.put(labelled("c", 3, app="z"))
    await settle()
    assert [item.name for item in part] == ["b"]
    assert changes == [("", "a", 1), ("", "b", 2), ("", "a", None)]
    assert part.resource_version == whole.resource_version
    assert world.watches == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def broken(name: str) -> Json:
    """A thing whose spec is no object."""
    return {**thing(name), "spec": 5}


@virtual
async def test_one_unreadable_object_hid_all_others() -> None:
    """It is set aside; the others, and its own last readable state, are shown, and its end is told."""
    world = FakeServer()
    world.put(thing("a", x=1))
    world.put(broken("b"))
    async with watching(world) as (cache, changes):
        assert changes == [("new", "a", 1)]
        world.put(broken("a"))
        world.put(thing("c", x=3))
        world.put(thing("b", x=2))
        await settle()
        assert changes[1:] == [("new", "c", 3), ("new", "b", 2)]
        assert cache.get(("default", "a")) is not None
        world.remove("a")
        await settle()
        assert changes[3:] == [("gone", "a", 1)]


@virtual
async def test_unreadable_objects_are_counted_until_they_are_gone() -> None:
    """Each is reported once per problem; one that vanished while nobody watched is forgotten with the next list."""
    world = FakeServer()
    world.put(broken("a"))
    world.put(broken("b"))
    client = Client(world, Chance(1))
    caches = Caches(client)
    reported: list[str] = []
    caches.set_aside.on_new(lambda _, item: reported.append(item.name))
    caches.of(Thing)
    task = asyncio.create_task(caches.run())
    await settle()
    world.put({**broken("a"), "metadata": {**broken("a")["metadata"], "labels": {"x": "y"}}})
    await settle()
    assert (reported, len(caches.set_aside)) == (["a", "b"], 2)
    world.put(thing("a"))
    world.remove("b")
    await settle()
    assert len(caches.set_aside) == 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
