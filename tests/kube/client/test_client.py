"""The client: what it sends, what it makes again, and what it finds out."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from spinney.api.meta import Resource
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.transport import Request, Response
from spinney.kube.errors import AlreadyExists, Conflict, ConnectionLost, NotLeader, NotSent, TooManyRequests
from tests.kube.fake_server import FakeServer, Thing, lose_answer, lose_request, query_of, refuse, thing
from tests.virtual_time import virtual


async def not_sent(_: Request) -> Response | None:
    raise NotSent("connection refused")


def make(world: FakeServer) -> Client:
    return Client(world, Chance(1))


@pytest.mark.parametrize("code", [429, 500, 503, 504])
@virtual
async def test_reads_are_made_again(code: int) -> None:
    """A read that is turned away for now is asked again."""
    world = FakeServer()
    world.put(thing("a"))
    world.once("GET", refuse(code), times=3)
    item = await make(world).get(Thing, ("default", "a"))
    assert item.name == "a"
    assert world.count("GET") == 4


@virtual
async def test_retry_after_is_honoured() -> None:
    """The server says how long to wait, and we wait that long."""
    world = FakeServer()
    world.put(thing("a"))
    world.once("GET", refuse(429, **{"retry-after": "30"}))
    await make(world).get(Thing, ("default", "a"))
    assert asyncio.get_running_loop().time() >= 30


@virtual
async def test_a_refusal_that_lasts_is_raised() -> None:
    """We do not try for ever."""
    world = FakeServer()
    world.once("GET", refuse(429), times=100)
    with pytest.raises(TooManyRequests):
        await make(world).get(Thing, ("default", "a"))
    assert world.count("GET") == 6


@virtual
async def test_a_patch_whose_answer_is_lost_is_made_again() -> None:
    """A merge patch can be made twice without harm."""
    world = FakeServer()
    world.put(thing("a"))
    world.once("PATCH", lose_answer(world))
    item = await make(world).patch(Thing, ("default", "a"), {"spec": {"x": 1}})
    assert item.spec == {"x": 1}
    assert world.count("PATCH") == 2


@virtual
async def test_a_json_patch_is_not_made_twice() -> None:
    """An "add" to a list would add twice; the caller hears that the outcome is unknown."""
    world = FakeServer()
    world.put(thing("a"))
    world.once("PATCH", lose_request)
    with pytest.raises(ConnectionLost):
        await make(world).patch(
            Thing, ("default", "a"), [{"op": "add", "path": "/spec/x/-", "value": 1}], kind=Patch.JSON
        )
    assert world.count("PATCH") == 1


@virtual
async def test_a_lost_create_that_happened_is_found() -> None:
    """The object is there with everything we sent: it counts as created, once."""
    world = FakeServer()
    world.once("POST", lose_answer(world))
    client = make(world)
    item = await client.create(Thing, thing("a", x=1), "default")
    assert item.uid == world.objects[Thing.resource.path("default", "a")]["metadata"]["uid"]
    assert world.count("POST") == 1


@virtual
async def test_a_lost_create_that_did_not_happen_is_made_again() -> None:
    """Nothing is there: create it."""
    world = FakeServer()
    world.once("POST", lose_request, times=2)
    await make(world).create(Thing, thing("a", x=1), "default")
    assert world.count("POST") == 3


@virtual
async def test_a_lost_create_does_not_take_a_strangers_object() -> None:
    """An object of the same name that lacks what we sent is somebody else's."""
    world = FakeServer()
    world.put(thing("a", x=2))
    world.once("POST", lose_request)
    with pytest.raises(AlreadyExists):
        await make(world).create(Thing, thing("a", x=1), "default")


@virtual
async def test_a_create_that_was_never_sent_is_made_again() -> None:
    """Where no connection came about, nothing can have happened."""
    world = FakeServer()
    world.once("POST", not_sent, times=3)
    await make(world).create(Thing, thing("a"), "default")
    assert world.count("POST") == 4


@virtual
async def test_generated_names_come_from_chance() -> None:
    """A generated name is made by us, so that a lost create can be found; a taken one is replaced."""
    world = FakeServer()
    body = thing("")
    body["metadata"] = {"generateName": "job-", "namespace": "default"}
    first = await make(world).create(Thing, body, "default")
    second = await make(world).create(Thing, body, "default")
    assert first.name.startswith("job-")
    assert len(first.name) == len("job-") + 5
    assert second.name != first.name


@virtual
async def test_a_precondition_is_kept() -> None:
    """A resource version in a merge patch must still be the newest."""
    world = FakeServer()
    old = world.put(thing("a"))
    world.put(thing("a", x=1))
    with pytest.raises(Conflict):
        await make(world).patch(Thing, ("default", "a"), {"metadata": old["metadata"], "spec": {"x": 2}})


@virtual
async def test_an_eviction_is_refused_once() -> None:
    """429 is the disruption budget's answer to an eviction, not a reason to ask again."""
    world = FakeServer()
    world.once("POST", refuse(429), times=9)
    with pytest.raises(TooManyRequests):
        await make(world).post(Thing, ("default", "a"), "eviction", {})
    assert world.count("POST") == 1


@virtual
async def test_writes_are_counted() -> None:
    """Each write that the server took counts once, by object; dry runs do not count."""
    world = FakeServer()
    client = make(world)
    component = client.named("tester")
    await component.create(Thing, thing("a"), "default")
    await component.patch(Thing, ("default", "a"), {"spec": {"x": 1}}, subresource="")
    await component.create(Thing, thing("b"), "default", dry_run=True)
    assert component.writes.of("Thing", "a", "default") == 2
    assert component.writes.total() == 2
    assert client.writes.total() == 0
    assert query_of(world.requests[0])["fieldManager"] == ["tester"]


@virtual
async def test_a_question_is_no_write() -> None:
    """A review has no name and is stored nowhere: it is sent as it is, asked again freely, and not counted."""
    world = FakeServer()
    seen: list[bytes] = []

    async def answer(request: Request) -> Response | None:
        seen.append(request.body)
        if len(seen) == 1:
            raise ConnectionLost("connection reset")
        return Response(201, b'{"kind":"SubjectAccessReview","status":{"allowed":true}}')

    def standby() -> None:
        raise NotLeader("not ours")

    world.once("POST", answer, times=2)
    client = make(world).named("tester", standby)
    review = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
    review_answer = await client.create(review, {"spec": {"user": "a"}})
    assert review_answer["status"] == {"allowed": True}
    assert msgspec.json.decode(seen[1]).get("metadata") is None
    assert client.writes.total() == 0
    with pytest.raises(NotLeader):
        await client.create(Thing, thing("a"), "default")
