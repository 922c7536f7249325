"""Virtual time: jumps, order, and what it refuses."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from spinney.sim.loop import START, Deadlock, Livelock, OutOfTime, VirtualLoop, clock, run_virtual, virtual_loop
from tests.virtual_time import virtual


def test_a_month_passes_at_once_and_the_clock_has_moved_by_it() -> None:
    """Sleeping moves the loop's time and the clock for objects by exactly the same amount."""

    async def sleep() -> tuple[float, datetime]:
        await asyncio.sleep(30 * 86400)
        return asyncio.get_running_loop().time(), clock().now()

    passed, now = run_virtual(sleep())

    assert passed == 30 * 86400
    assert now == START + timedelta(days=30)


def test_the_clock_starts_where_it_is_told() -> None:
    """`start` is the time of the first moment."""

    async def now() -> datetime:
        return clock().now()

    assert run_virtual(now(), start=datetime(2030, 5, 1, tzinfo=UTC)) == datetime(2030, 5, 1, tzinfo=UTC)


def test_timers_fire_in_the_order_of_their_time() -> None:
    """What was set later but is due earlier happens earlier; equal times keep the order they were set in."""
    order: list[str] = []

    async def note(delay: float, name: str) -> None:
        await asyncio.sleep(delay)
        order.append(f"{name}@{asyncio.get_running_loop().time():g}")

    async def main() -> None:
        await asyncio.gather(note(3, "c"), note(1, "a"), note(3, "d"), note(2, "b"))

    run_virtual(main())

    assert order == ["a@1", "b@2", "c@3", "d@3"]


def test_time_stands_still_while_there_is_work() -> None:
    """No timer is due before everything that is ready has run."""

    async def main() -> float:
        timer = asyncio.create_task(asyncio.sleep(0.001))
        for _ in range(1000):
            await asyncio.sleep(0)
        passed = asyncio.get_running_loop().time()
        await timer
        return passed

    assert run_virtual(main()) == 0


def test_timeouts_are_virtual_too() -> None:
    """asyncio.timeout ends a wait after its virtual seconds."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 3600


def test_a_deadlock_names_who_waits_and_where() -> None:
    """Nothing ready and no timer is an error that says which task stands at which line."""

    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(waits_for_ever(), name="the-scheduler")

    with pytest.raises(Deadlock, match=r"the-scheduler at .*waits_for_ever:\d+"):
        run_virtual(main())


def test_a_livelock_is_an_error_too() -> None:
    """Two that answer each other for ever keep time from passing: the run ends and names them."""

    async def answers(own: asyncio.Event, other: asyncio.Event) -> None:
        for _ in itertools.count():
            await own.wait()
            own.clear()
            other.set()

    async def main() -> None:
        ping, pong = asyncio.Event(), asyncio.Event()
        ping.set()
        tasks = (answers(ping, pong), answers(pong, ping))
        await asyncio.gather(*(asyncio.create_task(each, name=f"player-{n}") for n, each in enumerate(tasks)))

    with pytest.raises(Livelock, match=r"no time has passed in 1000 rounds.*player-0.*player-1"):
        run_virtual(main(), most_rounds=1000)


def test_a_run_that_only_ticks_ends_at_its_limit() -> None:
    """Periodic timers hide a deadlock, so a run can be given a limit of virtual seconds."""

    async def ticks() -> None:
        for _ in itertools.count():
            await asyncio.sleep(10)

    with pytest.raises(OutOfTime, match="after 60 virtual seconds"):
        run_virtual(ticks(), limit=60)


@pytest.mark.parametrize("host", ["prometheus.example", "192.0.2.1"])
@virtual
async def test_a_question_to_the_network_broke_the_component_that_asked(host: str) -> None:
    """Whoever asks a server outside meets what he would with the cable pulled, and can go on."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError, match="virtual time has no network"):
            await session.get(f"http://{host}:9090/")


def test_threads_are_refused_with_a_reason() -> None:
    """A thread would not take part in virtual time, so asking for one fails at once."""

    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="virtual time has none"):
        run_virtual(main())


def test_tasks_left_over_are_cancelled() -> None:
    """When the main coroutine ends, what it started gets to clean up."""
    cleaned: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1e9)
        finally:
            await asyncio.sleep(5)
            cleaned.append("done")

    async def main() -> None:
        main.task = asyncio.create_task(background())  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    run_virtual(main(), limit=2)

    assert cleaned == ["done"]


def test_the_clock_needs_a_virtual_loop() -> None:
    """Asking for virtual time under an ordinary loop is a mistake, not the wrong time."""

    async def main() -> None:
        clock()

    with pytest.raises(RuntimeError, match="run_virtual"):
        asyncio.run(main())


def test_a_loop_can_be_driven_in_steps() -> None:
    """`virtual_loop` keeps tasks alive between runs, for a test that looks in the middle."""
    with virtual_loop() as loop:
        task = loop.create_task(asyncio.sleep(100, "late"))
        loop.run_until_complete(asyncio.sleep(99))
        assert not task.done()
        assert loop.run_until_complete(task) == "late"
        assert isinstance(loop, VirtualLoop)
        assert loop.time() == 100
