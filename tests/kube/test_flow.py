"""Flow control: how many, how fast, and who first."""

from __future__ import annotations

import asyncio

import pytest

from spinney.kube.flow import Flow, Priority, priority_of
from spinney.kube.transport import Request
from tests.kube.world import settle, virtual

EVENT = Request("POST", "/api/v1/namespaces/a/events")
BIND = Request("POST", "/api/v1/namespaces/a/pods/p/binding")
LEASE = Request("PATCH", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l")
STATUS = Request("PATCH", "/apis/example.com/v1/namespaces/a/things/t/status")
POD = Request("POST", "/api/v1/namespaces/a/pods")


@pytest.mark.parametrize(
    ("request_", "priority"),
    [
        (LEASE, Priority.LEASE),
        (BIND, Priority.BIND),
        (POD, Priority.NORMAL),
        (STATUS, Priority.STATUS),
        (EVENT, Priority.EVENT),
        (Request("GET", "/api/v1/events"), Priority.NORMAL),
    ],
)
def test_priorities(request_: Request, priority: Priority) -> None:
    """Leases and binds go ahead of the rest, status and events behind it."""
    assert priority_of(request_) is priority


@virtual
async def test_the_most_urgent_goes_first() -> None:
    """When places are scarce, requests leave by priority, then in order."""
    flow = Flow(at_once=1)
    left: list[str] = []

    async def send(request: Request) -> None:
        async with flow.turn(request):
            left.append(request.path.rsplit("/", 1)[-1])
            await asyncio.sleep(1)

    first = asyncio.create_task(send(POD))
    await settle()
    rest = [asyncio.create_task(send(request)) for request in (EVENT, STATUS, POD, BIND)]
    await asyncio.gather(first, *rest)
    assert left == ["pods", "binding", "pods", "status", "events"]


@virtual
async def test_what_may_be_late_leaves_room() -> None:
    """While anything else is in flight status and events take an eighth of the places, alone they take all."""
    flow = Flow(at_once=16)
    in_flight = 0
    most = 0

    async def send(request: Request) -> None:
        nonlocal in_flight, most
        async with flow.turn(request):
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(1)
            in_flight -= 1

    async with flow.turn(POD):
        late = [asyncio.create_task(send(STATUS)) for _ in range(40)]
        await asyncio.sleep(3.5)
        assert most == 2
        async with flow.turn(POD):
            assert asyncio.get_running_loop().time() == 3.5
    await asyncio.gather(*late)
    assert most == 16


@virtual
async def test_a_lease_does_not_wait_for_a_place() -> None:
    """A busy client still renews its lease at once."""
    flow = Flow(at_once=1)
    loop = asyncio.get_running_loop()
    async with flow.turn(POD), flow.turn(LEASE):
        assert loop.time() == 0


@virtual
async def test_the_average_rate_holds() -> None:
    """After a burst, requests leave at the given rate."""
    flow = Flow(at_once=100, per_second=10, burst=5)

    async def send() -> None:
        async with flow.turn(POD):
            pass

    await asyncio.gather(*(send() for _ in range(25)))
    assert asyncio.get_running_loop().time() == pytest.approx(2.0, abs=0.2)
    assert flow.waiting == 0


@virtual
async def test_who_gives_up_leaves_no_hole() -> None:
    """A waiter that is cancelled gives its place to the next."""
    flow = Flow(at_once=1)
    async with flow.turn(POD):
        waiter = asyncio.create_task(flow.turn(POD).__aenter__())
        await settle()
        waiter.cancel()
        await settle()
    async with flow.turn(POD):
        assert flow.waiting == 0
