"""Events: told once, counted after."""

from __future__ import annotations

import asyncio
from typing import Any

from spinney.api.meta import Json
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime
from tests.kube.fake_server import FakeServer, Thing, refuse, runtime, thing
from tests.virtual_time import virtual


def events(world: FakeServer) -> list[Json]:
    return [item for item in world.objects.values() if item["kind"] == "Event"]


async def make(world: FakeServer) -> tuple[Runtime, Recorder, Thing]:
    life = runtime(world)
    created: Any = await life.client.create(Thing, thing("a"), "default")
    return life, Recorder(life.client, life.clock, "tester"), created


@virtual
async def test_an_event_names_its_object() -> None:
    """An event says what happened to which object, and who says so."""
    world = FakeServer()
    _, recorder, about = await make(world)
    recorder.event(about, "Normal", "Made", "it is there")
    await recorder.flush()
    (event,) = events(world)
    assert event["involvedObject"]["uid"] == about.uid
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Made", "it is there")
    assert event["source"] == {"component": "tester"}
    assert event["metadata"]["name"].startswith("a.")
    assert event["count"] == 1


@virtual
async def test_repeats_are_counted() -> None:
    """A hundred repeats make one event with a count, in a handful of writes."""
    world = FakeServer()
    life, recorder, about = await make(world)
    life.client.writes.clear()
    for _ in range(100):
        recorder.event(about, "Warning", "NoRoom", "nothing fits")
        await asyncio.sleep(0.1)
    await recorder.flush()
    (event,) = events(world)
    assert event["count"] == 100
    assert life.client.writes.total() <= 3


@virtual
async def test_similar_events_are_one_that_still_says_what_happened() -> None:
    """A controller that tries again and again names another pod each time: readers see the text of one of them."""
    world = FakeServer()
    _, recorder, about = await make(world)
    for number in range(30):
        recorder.event(about, "Warning", "FailedCreate", f"pod a-{number} is forbidden")
    await recorder.flush()
    combined = [event for event in events(world) if event["message"].startswith("(combined from similar events): ")]
    assert [event["message"].rpartition(": ")[2] for event in combined] == ["pod a-10 is forbidden"]
    assert len(events(world)) == 11


@virtual
async def test_a_silent_series_starts_over() -> None:
    """After most of an hour of silence the same message is a new event."""
    world = FakeServer()
    _, recorder, about = await make(world)
    recorder.event(about, "Normal", "Made", "it is there")
    await asyncio.sleep(3300)
    recorder.event(about, "Normal", "Made", "it is there")
    await recorder.flush()
    assert len(events(world)) == 2


@virtual
async def test_a_refused_event_is_dropped() -> None:
    """An event that the server refuses is forgotten, and the next one is tried again."""
    world = FakeServer()
    _, recorder, about = await make(world)
    world.once("POST", refuse(403, "Forbidden"), path="/events")
    recorder.event(about, "Normal", "Made", "it is there")
    await recorder.flush()
    assert events(world) == []
    recorder.event(about, "Normal", "Made", "it is there")
    await recorder.flush()
    assert len(events(world)) == 1
