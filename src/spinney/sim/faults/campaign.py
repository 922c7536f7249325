"""A campaign: every scenario with a fault at every write, and with several faults from seeds; and its totals."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from spinney.api.meta import Json
from spinney.sim.faults.forks import Forks
from spinney.sim.faults.kinds import Kind
from spinney.sim.faults.scenarios import SCENARIOS, Scenario
from spinney.sim.faults.search import Result, Run, Search
from spinney.sim.faults.world import World, installation
from spinney.sim.loop import run_virtual

T = TypeVar("T")

_VIRTUAL_LIMIT = 30 * 86400.0
_LAG = 0.01
_AT_EVERY_WRITE = (Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.ANSWER_LOST)
_IN_TURN = (Kind.REFUSED, Kind.TIMED_OUT, Kind.USER)
_OTHERS_AT_EVERY = 4


@dataclass
class Totals:
    """What one scenario's runs amount to."""

    scenario: str
    writes: int = 0
    single_faults: int = 0
    seeds: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    checks: Counter[str] = field(default_factory=Counter)
    failures: list[Result] = field(default_factory=list)

    def add(self, results: Iterable[Result]) -> None:
        """Count some runs in."""
        for result in results:
            self.kinds += result.kinds
            self.steps += result.steps
            self.checks += result.checks
            if result.problem:
                self.failures.append(result)

    def plain(self) -> Json:
        """For other programs."""
        return {
            "scenario": self.scenario,
            "writePoints": self.writes,
            "singleFaults": self.single_faults,
            "seeds": self.seeds,
            "faults": dict(sorted(self.kinds.items())),
            "steps": self.steps,
            "checks": dict(sorted(self.checks.items())),
            "violations": [plain(failure) for failure in self.failures],
        }


def plain(result: Result) -> Json:
    """One run for other programs."""
    return {
        "fault": result.fault,
        "at": result.where,
        "replay": result.replay,
        "faults": result.faults,
        "problem": result.problem,
        "story": list(result.story),
    }


@dataclass(frozen=True)
class Plan:
    """How much of the search is done: faults at every n-th write, and so many seeds from the first one on.

    After every n-th fault, `to_the_end`, the scenario goes on to its end. After the others it ends with the next rest.
    """

    every: int = 1
    to_the_end: int = 12
    first_seed: int = 1
    seeds: int = 0
    jobs: int = 2

    def kinds_at(self, writes: Sequence[str]) -> Sequence[Kind]:
        """The faults to try at the last of some writes: always crashes and a lost answer, at some one of the others."""
        number = len(writes)
        if not self.every or (number - 1) % self.every:
            return ()
        others, beside_others = divmod((number - 1) // self.every, _OTHERS_AT_EVERY)
        always: tuple[Kind, ...] = _AT_EVERY_WRITE
        if self.every == 1 and number > 1 and _process(writes[-2]) == _process(writes[-1]):
            # A crash after the write before left the same objects, and nothing else outlives a process.
            always = tuple(kind for kind in always if kind is not Kind.CRASH_BEFORE)
        return always if beside_others else (*always, _IN_TURN[others % len(_IN_TURN)])


def _process(write: str) -> str:
    return write.partition(":")[0]


# These take longest and begin first, so that none of them runs alone at the end.
_LONG = ("update-kai", "update-default", "scaling-kai", "scaling-default", "node-drained", "termination")


def run_scenarios(names: Sequence[str], plan: Plan, report: Callable[[Totals], None]) -> list[Totals]:
    """Search in several scenarios at a time, each in its own process; `report` is called as each is done."""
    # Children share what is imported and compiled: a run of one scenario does most of that.
    run_without_faults(SCENARIOS[names[0]])
    own = replace(plan, jobs=max(1, plan.jobs // len(names)))
    forks = Forks(min(plan.jobs, len(names)))
    order = sorted(names, key=lambda name: _LONG.index(name) if name in _LONG else len(_LONG))
    for name in order:
        deliver = forks.fork()
        if deliver:
            totals = run_scenario(name, own)
            report(totals)
            deliver(totals)
    done = dict(zip(order, forks.results(), strict=True))
    return [done[name] for name in names]


def run_scenario(name: str, plan: Plan) -> Totals:
    """Search in one scenario."""

    async def search(own: Search) -> Totals:
        totals = Totals(name, writes=len(own.clean.writes), seeds=plan.seeds)
        # Seeds first: they start where the scenario starts, and the search at every write takes its steps.
        totals.add(await own.seeds(range(plan.first_seed, plan.first_seed + plan.seeds)))
        if plan.every:
            results = await own.every_write(plan.kinds_at, plan.to_the_end)
            totals.single_faults = len(results)
            totals.add(results)
        return totals

    return search_in(SCENARIOS[name], plan.jobs, search)


def replay_seed(name: str, seed: int) -> tuple[Result, Result | None]:
    """The run of one seed; and where it fails, the one with the shortest prefix of its faults that does."""

    async def search(own: Search) -> tuple[Result, Result | None]:
        (result,) = await own.seeds([seed])
        return result, await own.shortest(seed, result) if result.problem else None

    return search_in(SCENARIOS[name], 1, search)


def replay_write(name: str, number: int, kind: Kind) -> Result:
    """The run with one fault at one write."""

    async def search(own: Search) -> Result:
        return await own.one_write(number, kind)

    return search_in(SCENARIOS[name], 1, search)


def run_without_faults(scenario: Scenario) -> Run:
    """The run of a scenario in which nothing goes wrong."""

    async def main() -> Run:
        async with _installed(scenario) as world:
            return await Search(world, scenario, 1).without_faults()

    return run_virtual(main(), limit=_VIRTUAL_LIMIT)


def search_in(scenario: Scenario, jobs: int, search: Callable[[Search], Awaitable[T]]) -> T:
    """Search in a fresh installation for a scenario, in virtual time.

    The run without faults happens here, in an installation before that: what it compiles, every later run shares.
    """
    # In a worker process it was switched off.
    gc.enable()
    clean = run_without_faults(scenario)

    async def main() -> T:
        async with _installed(scenario) as world:
            own = Search(world, scenario, jobs, clean)
            await own.prepare()
            return await search(own)

    return run_virtual(main(), limit=_VIRTUAL_LIMIT)


def _installed(scenario: Scenario) -> AbstractAsyncContextManager[World]:
    return installation(scenario.nodes, stand_in=scenario.stand_in, backends=scenario.backends, lag=_LAG)
