"""Flow control: how many, how fast, and who first."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from spinney.kube.client.client import Client
from spinney.kube.client.flow import Flow, InProcessFlow, PerTurn, Priority, priority_of
from spinney.kube.client.transport import Request
from tests.kube.fake_server import FakeServer, Thing, settle, thing
from tests.virtual_time import virtual

EVENT = Request("POST", "/api/v1/namespaces/a/events")
BIND = Request("POST", "/api/v1/namespaces/a/pods/p/binding")
LEASE = Request("PATCH", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l")
STATUS = Request("PATCH", "/apis/example.com/v1/namespaces/a/things/t/status")
POD = Request("POST", "/api/v1/namespaces/a/pods")
THING = Request("POST", "/apis/example.com/v1/namespaces/a/things")


@pytest.mark.parametrize(
    ("request_", "priority"),
    [
        (LEASE, Priority.LEASE),
        (Request("POST", "/api/v1/namespaces/a/pods", (("dryRun", "All"),)), Priority.REVIEW),
        (Request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"), Priority.REVIEW),
        (Request("GET", "/apis/example.com/v1"), Priority.REVIEW),
        (Request("GET", "/api/v1"), Priority.REVIEW),
        (Request("GET", "/api/v1/pods"), Priority.NORMAL),
        (Request("GET", "/apis/example.com/v1/things"), Priority.NORMAL),
        (BIND, Priority.POD),
        (POD, Priority.POD),
        (THING, Priority.NORMAL),
        (Request("PATCH", "/api/v1/namespaces/a/pods/p"), Priority.NORMAL),
        (Request("GET", "/api/v1/namespaces/a/pods"), Priority.NORMAL),
        (STATUS, Priority.STATUS),
        (EVENT, Priority.EVENT),
        (Request("GET", "/api/v1/events"), Priority.NORMAL),
    ],
)
def test_priorities(request_: Request, priority: Priority) -> None:
    """Leases, answers that users wait for and what starts pods go ahead of the rest, status and events behind it."""
    assert priority_of(request_) is priority


@virtual
async def test_the_most_urgent_goes_first() -> None:
    """When places are scarce, requests leave by priority, then in order."""
    flow = Flow(at_once=1)
    left: list[str] = []

    async def send(request: Request) -> None:
        async with flow.turn(priority_of(request)):
            left.append(request.path.rsplit("/", 1)[-1])
            await asyncio.sleep(1)

    first = asyncio.create_task(send(POD))
    await settle()
    rest = [asyncio.create_task(send(request)) for request in (EVENT, STATUS, THING, BIND, POD)]
    await asyncio.gather(first, *rest)
    assert left == ["pods", "binding", "pods", "things", "status", "events"]


@virtual
async def test_sets_were_refused_while_their_operator_wrote_thousands_of_objects() -> None:
    """What a review asks, the kinds there are and a dry run, waits for no writes of its component."""
    flow = Flow(at_once=1)
    left: list[Request] = []

    async def send(request: Request) -> None:
        async with flow.turn(priority_of(request)):
            left.append(request)
            await asyncio.sleep(1)

    kinds = Request("GET", "/apis/example.com/v1")
    dry_run = Request("POST", "/api/v1/namespaces/a/pods", (("dryRun", "All"),))
    await asyncio.gather(*(send(request) for request in (THING, THING, POD, kinds, dry_run)))
    assert left[1:3] == [kinds, dry_run]


@virtual
async def test_what_may_be_late_leaves_room() -> None:
    """While anything else is in flight status and events take one place in 32, alone they take all."""
    flow = Flow(at_once=64)
    in_flight = 0
    most = 0

    async def send(request: Request) -> None:
        nonlocal in_flight, most
        async with flow.turn(priority_of(request)):
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(1)
            in_flight -= 1

    async with flow.turn(Priority.NORMAL):
        late = [asyncio.create_task(send(STATUS)) for _ in range(100)]
        await asyncio.sleep(3.5)
        assert most == 2
        async with flow.turn(Priority.NORMAL):
            assert asyncio.get_running_loop().time() == 3.5
    await asyncio.gather(*late)
    assert most == 64


@virtual
async def test_a_lease_does_not_wait_for_a_place() -> None:
    """A busy client still renews its lease at once."""
    flow = Flow(at_once=1)
    loop = asyncio.get_running_loop()
    async with flow.turn(Priority.NORMAL), flow.turn(Priority.LEASE):
        assert loop.time() == 0


@virtual
async def test_the_average_rate_holds() -> None:
    """After a burst, requests leave at the given rate."""
    flow = Flow(at_once=100, per_second=10, burst=5)

    async def send() -> None:
        async with flow.turn(Priority.NORMAL):
            pass

    await asyncio.gather(*(send() for _ in range(25)))
    assert asyncio.get_running_loop().time() == pytest.approx(2.0, abs=0.2)
    assert flow.waiting == 0


@virtual
async def test_who_gives_up_leaves_no_hole() -> None:
    """A waiter that is cancelled gives its place to the next."""
    flow = Flow(at_once=1)
    async with flow.turn(Priority.NORMAL):
        waiter = asyncio.create_task(flow.turn(Priority.NORMAL).__aenter__())
        await settle()
        waiter.cancel()
        await settle()
    async with flow.turn(Priority.NORMAL):
        assert flow.waiting == 0


@virtual
async def test_a_status_is_worked_out_when_its_turn_comes() -> None:
    """What waits for its turn sees all that happened meanwhile, and its request needs no second place."""
    world = FakeServer()
    client = Client(world, flow=(flow := Flow(at_once=1)))
    seen = 0

    async def report() -> None:
        async with client.turn(Priority.STATUS):
            await client.create(Thing, thing("report", seen=seen), "default")

    async with flow.turn(Priority.NORMAL):
        late = asyncio.create_task(report())
        await settle()
        seen = 3
    await late
    assert (await client.get(Thing, ("default", "report"))).spec == {"seen": 3}


@virtual
async def test_a_turn_is_not_handed_down() -> None:
    """Tasks that are started in a turn wait for places of their own."""
    client = Client(FakeServer(), flow=Flow(at_once=1))
    async with client.turn(Priority.NORMAL):
        other = asyncio.create_task(client.create(Thing, thing("other"), "default"))
        await settle()
        assert not other.done()
    await other


@virtual
async def test_answers_that_come_at_once_keep_the_order_too() -> None:
    """In one process what may be late waits for what follows from urgent requests; a few pass, then all do."""
    flow = InProcessFlow()
    left: list[str] = []

    async def send(request: Request) -> None:
        async with flow.turn(priority_of(request)):
            left.append(request.path.rsplit("/", 1)[-1])

    async def one_after_the_other() -> None:
        for _ in range(100):
            await send(POD)
            await asyncio.sleep(0)

    urgent = asyncio.create_task(one_after_the_other())
    await asyncio.sleep(0)
    late = [asyncio.create_task(send(STATUS)) for _ in range(100)]
    await asyncio.gather(urgent)
    assert 0 < left.count("status") < 50
    await asyncio.gather(*late)
    assert left.count("status") == left.count("pods") == 100


@virtual
async def test_in_one_process_too_the_most_urgent_goes_first() -> None:
    """Of more requests than places in one turn of the loop, those for pods leave first."""
    flow = InProcessFlow(at_once=2)
    left: list[str] = []

    async def send(request: Request) -> None:
        async with flow.turn(priority_of(request)):
            left.append(request.path.rsplit("/", 1)[-1])

    await asyncio.gather(*(send(request) for request in (THING, THING, EVENT, THING, POD, POD)))
    assert left == ["things", "things", "pods", "pods", "things", "events"]
    assert asyncio.get_running_loop().time() == 0


async def test_a_burst_in_this_process_kept_everybody_waiting() -> None:
    """A bounded number of requests passes in one turn of the loop, in their order."""
    flow, passed = PerTurn(at_once=4), []

    async def request(number: int) -> None:
        async with flow.turn(Priority.NORMAL):
            passed.append(number)

    burst = asyncio.gather(*map(request, range(10)))
    counts = []
    while not burst.done():
        await asyncio.sleep(0)
        counts.append(len(passed))
    assert passed == list(range(10))
    assert max(after - before for before, after in itertools.pairwise([0, *counts])) <= 4
    assert flow.waiting == 0


async def test_a_request_that_is_given_up_takes_no_place() -> None:
    """Those behind it go on."""
    flow = PerTurn(at_once=1)
    waiting = [asyncio.ensure_future(flow.enter(Priority.NORMAL)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait_for(waiting[2], 5)
    assert waiting[1].cancelled()
