"""Looks for the moment at which a crash leaves something behind: one clean run, then one for every write of it."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import sys
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from spinney.embedded.apiserver.resources.pod_spec_cache import PODS
from tests.faults.picture import Births, Picture, differences, picture
from tests.faults.processes import World
from tests.faults.scenarios import Scenario
from tests.faults.wire import Road

_SILENCE_SECONDS = 240.0


@dataclass
class Told:
    """What became of a run: the picture after each step, the pods that were ever made, all writes."""

    pictures: list[Picture] = field(default_factory=list)
    births: list[Counter[str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    struck: str = ""
    noise: list[str] = field(default_factory=list)
    error: str = ""


async def day(world: World, scenario: Scenario) -> Told:
    """Go through a scenario, and look around after each step."""
    store, told = world.cluster.server.store, Told(writes=world.road.writes)
    await world.settled()
    births = Births(store, PODS)
    world.road.counting = True
    try:
        for step in scenario.steps:
            await step(world)
            await world.settled()
            told.pictures.append(picture(store))
            told.births.append(births.counts.copy())
        world.road.recent.clear()
        await asyncio.sleep(_SILENCE_SECONDS)
        told.noise = list(world.road.recent)
    except Exception:
        told.error = traceback.format_exc()[-3000:]
    told.struck = world.road.struck or ", ".join(f"{count} {what}" for what, count in world.road.happened.items())
    return told


def problems(scenario: Scenario, clean: Told, told: Told) -> str:
    """What is not as it was without a fault."""
    if told.error:
        return told.error
    found = []
    for number, (expected, seen) in enumerate(zip(clean.pictures, told.pictures, strict=True), 1):
        if expected != seen:
            found.append(f"after step {number}:\n{differences(expected, seen)}")
            break
    if told.noise:
        found.append(f"writes at rest: {told.noise}")
    more = told.births[-1] - clean.births[-1]
    if more and not scenario.victims:
        found.append(f"pods made once more: {dict(more)}")
    return "\n".join(found)


class Branches:
    """Runs what may happen from here on in copies of this process, a few at a time: virtual time can be forked."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._open: list[tuple[int, int]] = []

    def read(self) -> Any:
        """The answer of the oldest copy."""
        reader, child = self._open.pop(0)
        with os.fdopen(reader, "rb") as pipe:
            answer = pickle.load(pipe)
        os.waitpid(child, 0)
        return answer

    def fork(self) -> Callable[[object], None] | None:
        """In the copy, what hands its answer over and ends it; here None."""
        reader, writer = os.pipe()
        sys.stdout.flush()
        loop = asyncio.get_running_loop()
        child = os.fork()
        if child:
            os.close(writer)
            self._open.append((reader, child))
            return None
        # A copy has no running loop until someone says so; a virtual one holds nothing that cannot be copied.
        asyncio._set_running_loop(loop)

        def answer(told: object) -> None:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(told, pipe)
            os._exit(0)

        return answer

    @property
    def full(self) -> bool:
        """Whether as many run as may."""
        return len(self._open) >= self._jobs


class Fault(Protocol):
    """Something that goes wrong from the moment it is told to a road."""

    def arrange(self, road: Road) -> None:
        """Let it happen on this road."""


async def search(
    world: World, scenario: Scenario, faults: Callable[[Told], Iterable[Fault]], jobs: int
) -> AsyncIterator[tuple[Fault, str, str]]:
    """A clean run, then one for each fault from the same beginning: where it struck, and what went wrong by it."""
    await world.settled()
    # What is there already is never looked at by a copy's collector, so that it stays shared.
    gc.collect()
    gc.freeze()
    branches = Branches(jobs)
    answer = branches.fork()
    if answer:
        answer(await day(world, scenario))
    clean: Told = branches.read()
    if clean.error or clean.noise:
        raise AssertionError(f"the clean run: {clean.error} {clean.noise}")
    running: list[Fault] = []
    for fault in faults(clean):
        if branches.full:
            yield running.pop(0), *branches.read()
        running.append(fault)
        answer = branches.fork()
        if answer:
            fault.arrange(world.road)
            told = await day(world, scenario)
            answer((told.struck, problems(scenario, clean, told)))
    while running:
        yield running.pop(0), *branches.read()
