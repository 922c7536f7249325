"""The work queue's promises."""

from __future__ import annotations

import asyncio

from spinney.kube.chance import Chance
from spinney.kube.controllers.workqueue import Queue
from tests.kube.fake_server import settle
from tests.virtual_time import virtual


def make() -> Queue[str]:
    return Queue(Chance(1), first_delay=1.0, longest_delay=8.0)


@virtual
async def test_a_waiting_key_waits_once() -> None:
    """Adding a key that waits changes nothing."""
    queue = make()
    for key in "aba":
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


@virtual
async def test_a_key_has_one_worker() -> None:
    """A key that is added while it is worked on comes back only after `done`."""
    queue = make()
    queue.add("a")
    await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"


@virtual
async def test_the_earliest_delay_holds() -> None:
    """Of several delays the earliest counts, and it counts once."""
    loop = asyncio.get_running_loop()
    queue = make()
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    start = loop.time()
    assert await queue.get() == "a"
    assert round(loop.time() - start) == 10
    queue.done("a")
    await asyncio.sleep(60)
    assert len(queue) == 0


@virtual
async def test_failures_back_off() -> None:
    """Each failure doubles the delay up to the longest, with at most half of it as jitter; success starts over."""
    queue = make()
    delays = [queue.retry("a") for _ in range(6)]
    for delay, base in zip(delays, [1, 2, 4, 8, 8, 8], strict=True):
        assert base <= delay <= 1.5 * base
    queue.forget("a")
    assert queue.retry("a") <= 1.5
    queue.close()


@virtual
async def test_a_getter_wakes() -> None:
    """A worker that waits for a key gets the one that comes."""
    queue = make()
    worker = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    assert await worker == "a"
    assert not queue.idle
    queue.done("a")
    assert queue.idle
