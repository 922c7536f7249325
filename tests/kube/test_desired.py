"""Live objects are made to match wanted ones: what is planned, and how it is applied."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spinney.api.core import Service
from spinney.api.meta import Json, convert
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.flow import Flow, Priority
from spinney.kube.client.transport import Request, Response
from spinney.kube.desired import Drift, Step, Wanted, plan, plan_pruning
from spinney.kube.errors import Conflict, ConnectionLost, NotFound
from spinney.kube.writer import Blocked, NameTaken, Writer
from tests.kube.fake_server import FakeServer, Thing, thing
from tests.virtual_time import virtual

OWNER = {"apiVersion": "v1", "kind": "Owner", "name": "boss", "uid": "u1"}
OTHER = {**OWNER, "name": "rival", "uid": "u2"}


def body(name: str = "a", owner: Json | None = OWNER, **spec: Any) -> Json:
    """A thing with an owner."""
    document = thing(name, **spec)
    if owner:
        document["metadata"]["ownerReferences"] = [owner]
    return document


def wanted(drift: Drift = Drift.PATCH, **spec: Any) -> Wanted:
    return Wanted(Thing.resource, body(**spec), drift)


def writer(world: FakeServer) -> Writer:
    return Writer(Client(world, Chance(1)))


def test_what_is_as_wanted_needs_no_step() -> None:
    """What others added is left alone, unless the spec is ours as a whole."""
    live = body(x=1, added="by others")
    steps = {drift: plan(wanted(drift, x=1), live) for drift in Drift}
    removal = steps.pop(Drift.PATCH_EXACTLY)
    assert removal is not None
    assert removal.body == {"spec": {"added": None}}
    assert not any(steps.values())


@pytest.mark.parametrize(
    ("drift", "act"),
    [
        (Drift.PATCH, "patch"),
        (Drift.PATCH_EXACTLY, "patch"),
        (Drift.PATCH_NAMED, "patch"),
        (Drift.APPLY, "apply"),
        (Drift.RECREATE, "recreate"),
        (Drift.REPORT, "report"),
        (Drift.IGNORE, None),
    ],
)
def test_a_spec_that_differs(drift: Drift, act: str | None) -> None:
    """Each wanted object says what to do about drift."""
    step = plan(wanted(drift, x=2), body(x=1))
    assert (step.act if step else None) == act


@pytest.mark.parametrize("drift", [Drift.PATCH, Drift.PATCH_EXACTLY, Drift.PATCH_NAMED, Drift.RECREATE, Drift.REPORT])
def test_metadata_can_always_be_patched(drift: Drift) -> None:
    """Only a spec may be beyond change."""
    labelled = body(x=1)
    labelled["metadata"]["labels"] = {"a": "b"}
    step = plan(Wanted(Thing.resource, labelled, drift), body(x=1))
    assert step is not None
    assert (step.act, step.body) == ("patch", {"metadata": {"labels": {"a": "b"}}})


def test_what_is_missing_is_created_without_its_absent_fields() -> None:
    """A None in the wanted body stands for a field that must be absent."""
    step = plan(wanted(x=1, gone=None), None)
    assert step is not None
    assert (step.act, step.body["spec"]) == ("create", {"x": 1})
    step = plan(wanted(x=1, gone=None), body(x=1, gone=2))
    assert step is not None
    assert step.body == {"spec": {"gone": None}}


def test_a_field_that_the_server_drops_is_no_difference() -> None:
    """Else it would be written again and again."""
    gated = Wanted(Thing.resource, body(x=1, new=2), gated={"new": None})
    assert plan(gated, body(x=1)) is None
    assert plan(gated, body(x=1, new=3)) is not None


def test_a_union_keeps_the_member_it_was_created_with() -> None:
    """A server refuses to change one member into another."""
    union = Wanted(Thing.resource, body(policy={"gang": {"min": 2}}), unions=frozenset({"policy"}))
    assert plan(union, body(policy={"basic": {}})) is None
    assert plan(union, body(policy={"gang": {"min": 1}})) is not None


def test_a_named_member_is_made_exactly_so() -> None:
    """What is below it goes with it; members that are not named belong to others."""
    step = plan(wanted(Drift.PATCH_NAMED, ours={"x": 1}, gone=None), body(ours={"x": 1, "y": 2}, gone=3, theirs=4))
    assert step is not None
    assert step.body == {"spec": {"ours": {"y": None}, "gone": None}}


def test_a_typed_object_is_compared_by_what_is_wanted_of_it() -> None:
    """A type leaves out what has its default: that is no difference, and what it does not know is none."""
    stored = {"metadata": {"name": "a", "labels": {"by": "others"}}, "spec": {"publishNotReadyAddresses": False}}
    live = convert(Service, stored)
    same = Wanted(Service.resource, {"metadata": {"name": "a"}, "spec": stored["spec"]}, Drift.PATCH_NAMED)
    assert plan(same, live) is None
    other = Wanted(
        Service.resource,
        {"metadata": {"name": "a", "labels": {"app": "s"}}, "spec": {"publishNotReadyAddresses": True}},
        Drift.PATCH_NAMED,
    )
    step = plan(other, live)
    assert step is not None
    assert step.body == {"metadata": {"labels": {"app": "s"}}, "spec": {"publishNotReadyAddresses": True}}


def test_a_guarded_spec_changes_only_what_was_read() -> None:
    """The version is a precondition where the spec differs; labels and annotations need none."""
    live = body(x=1)
    live["metadata"]["resourceVersion"] = "7"
    changed = plan(Wanted(Thing.resource, body(x=2), guarded=True), live)
    labelled = body(x=1)
    labelled["metadata"]["labels"] = {"a": "b"}
    metadata_only = plan(Wanted(Thing.resource, labelled, guarded=True), live)
    assert changed is not None
    assert metadata_only is not None
    assert (changed.resource_version, metadata_only.resource_version) == ("7", "")


@virtual
async def test_a_guarded_patch_fails_where_somebody_was_quicker() -> None:
    """The next plan starts from what is there then."""
    world = FakeServer()
    live = world.put(body(x=1))
    step = plan(Wanted(Thing.resource, body(x=2), guarded=True), live)
    world.put(body(x=1, y=1))
    assert step is not None
    with pytest.raises(Conflict):
        await writer(world).apply(step)


def test_an_object_of_somebody_else_is_left_alone() -> None:
    """The step says whose it is; `adopt` takes it over."""
    step = plan(wanted(x=2), body(owner=OTHER, x=1))
    assert step is not None
    assert (step.act, step.why) == ("wait", "Thing a exists and belongs to Owner rival (uid u2); delete or rename it")
    adopted = plan(Wanted(Thing.resource, body(x=2), adopt=True), body(owner=OTHER, x=2))
    assert adopted is not None
    assert adopted.body == {"metadata": {"ownerReferences": [OWNER]}}


def test_an_object_on_its_way_out_is_waited_for() -> None:
    """Its successor is created when it is gone."""
    live = body(x=1)
    live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    step = plan(wanted(x=2), live)
    assert step is not None
    assert step.act == "wait"


def test_what_is_no_longer_wanted_is_pruned() -> None:
    """By kind and key, and not what is going already."""
    going = thing("c")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    owned = [(Thing.resource, convert(Thing, each)) for each in (thing("a"), thing("b"), going)]
    steps = plan_pruning([wanted(x=1)], owned)
    assert [(step.act, step.key) for step in steps] == [("delete", ("default", "b"))]


@virtual
async def test_steps_are_applied() -> None:
    """Each plan ends where there is nothing left to do."""
    world = FakeServer()
    for drift, x in ((Drift.PATCH, 1), (Drift.PATCH, 2), (Drift.RECREATE, 3)):
        step = plan(wanted(drift, x=x), next(iter(world.objects.values()), None))
        assert step is not None
        applied = await writer(world).apply(step)
        assert applied is not None
        assert plan(wanted(drift, x=x), applied) is None
    assert [request.method for request in world.requests] == ["POST", "PATCH", "DELETE", "POST"]


@virtual
async def test_a_step_that_must_wait_is_raised() -> None:
    """Whoever applies it tells the reason."""
    with pytest.raises(Blocked, match="in the way"):
        await writer(FakeServer()).apply(Step("wait", Thing.resource, ("default", "a"), why="in the way"))


@virtual
async def test_what_exists_is_taken_where_the_owner_is_the_same() -> None:
    """A create that comes second finds its own object, or says that the name is taken."""
    world = FakeServer()
    world.put(body(x=1))
    assert (await writer(world).create(Thing, body(x=1))).spec == {"x": 1}
    assert (await writer(world).create(Thing, body(owner=None))).spec == {"x": 1}
    assert (await writer(world).create(Thing, body(owner=OTHER), adopt=True)).spec == {"x": 1}
    with pytest.raises(NameTaken, match="Thing default/a exists and belongs to someone else"):
        await writer(world).create(Thing, body(owner=OTHER))


@virtual
async def test_what_is_gone_stays_gone() -> None:
    """A patch or a deletion that comes too late is no error."""
    world = FakeServer()
    live = convert(Thing, world.put(body(x=1)))
    world.remove("a")
    assert await writer(world).patch(live, {"spec": {"x": 2}}) is None
    await writer(world).delete(live)
    with pytest.raises(NotFound):
        await Client(world, Chance(1)).get(Thing, live.key)


@virtual
async def test_writes_wait_in_their_turn() -> None:
    """A component says how urgent its creates and deletes are."""
    turns: list[int] = []

    class Watched(Flow):
        async def enter(self, priority: int) -> None:
            turns.append(priority)
            await super().enter(priority)

    world = FakeServer()
    urgent = Writer(
        Client(world, Chance(1), flow=Watched()),
        lambda verb, _: Priority.POD if verb == "create" else Priority.STATUS,
    )
    await urgent.delete(await urgent.create(Thing, body(x=1)))
    assert turns == [Priority.POD, Priority.STATUS]


@virtual
async def test_each_of_hundreds_of_replicas_read_the_same_set_before_it_was_deleted() -> None:
    """Who confirms an object together with others shares the answer; who does so later looks again."""
    world = FakeServer()
    cached = convert(Thing, world.put(body(x=1)))
    confirming = writer(world)
    await asyncio.gather(*(confirming.confirm(cached) for _ in range(100)))
    assert len(world.requests) == 1
    world.put({**body(x=2), "metadata": {**body(x=2)["metadata"], "generation": 2}})
    with pytest.raises(Conflict):
        await confirming.confirm(cached)


@virtual
async def test_an_answer_from_before_the_question_confirmed_a_set_that_had_changed() -> None:
    """Who asks while an answer is on its way shares the next one, with all who do."""
    world = FakeServer()
    cached = convert(Thing, world.put(body(x=1)))
    confirming = writer(world)

    async def slow(request: Request) -> Response:
        answer = world.answer(request)
        await asyncio.sleep(5)
        return answer

    world.once("GET", slow)
    first = asyncio.create_task(confirming.confirm(cached))
    await asyncio.sleep(1)
    world.put({**body(x=2), "metadata": {**body(x=2)["metadata"], "generation": 2}})
    later = await asyncio.gather(*(confirming.confirm(cached) for _ in range(100)), return_exceptions=True)
    await first
    assert {type(outcome) for outcome in later} == {Conflict}
    assert len(world.requests) == 2


@virtual
async def test_a_look_that_fails_is_no_answer_for_those_who_ask_later() -> None:
    """Each error is told to those who waited for it."""
    world = FakeServer()
    cached = convert(Thing, world.put(body(x=1)))
    confirming = writer(world)

    async def lost(_: Request) -> Response:
        await asyncio.sleep(5)
        raise ConnectionLost("reset")

    world.once("GET", lost, times=10)
    first = asyncio.create_task(confirming.confirm(cached))
    await asyncio.sleep(1)
    second = asyncio.create_task(confirming.confirm(cached))
    with pytest.raises(ConnectionLost):
        await first
    world.faults.clear()
    await second
