"""The search: one clean run of a scenario, then a run per fault, each judged by the rules and by the clean run."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from spinney.kube.chance import Chance
from spinney.kube.errors import ApiError
from spinney.sim.faults.checker import Checker
from spinney.sim.faults.disturbances import Disturbances
from spinney.sim.faults.forks import Forks
from spinney.sim.faults.kinds import CLOCK_JUMPED, DELAYED, HARMLESS, LATE_KUBELET, SECOND_LEADER, Kind, storm
from spinney.sim.faults.scenarios import Scenario
from spinney.sim.faults.snapshot import CreatedPods, Snapshot, differences, take_snapshot
from spinney.sim.faults.world import World

_REST_SECONDS = 240.0


@dataclass
class Run:
    """The result of one run: a snapshot and the pods created so far after each step, and what the checker saw."""

    fault: str = ""
    # How to run it again: options of `spinney faults`.
    replay: str = ""
    snapshots: list[Snapshot] = field(default_factory=list)
    created_pods: list[Counter[str]] = field(default_factory=list)
    evictions: list[int] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    writes_at_rest: list[str] = field(default_factory=list)
    violations: dict[str, str] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    error: str = ""
    # Whether it may end differently from the clean run.
    changed_outcome: bool = False
    kinds: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    checks: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Result:
    """One run with faults: where, what went wrong with the cluster, and the story where something did."""

    fault: str
    where: str
    replay: str
    problem: str
    story: tuple[str, ...]
    kinds: Counter[str]
    steps: int
    checks: Counter[str]

    @property
    def faults(self) -> int:
        """How many faults happened."""
        return self.kinds.total()


class Search:
    """Runs of one scenario, all from the same moment of one installation."""

    def __init__(self, world: World, scenario: Scenario, jobs: int, clean: Run | None = None) -> None:
        self._world = world
        self._scenario = scenario
        self._forks = Forks(jobs)
        self._disturbances = Disturbances(world)
        # The run without faults, of another installation of the same kind.
        self._clean = clean
        # In a child: delivers its result, and whether it takes the remaining steps, too.
        self._deliver: Callable[[object], None] | None = None
        self._to_the_end = True
        self._replay = ""
        self._checker: Checker
        world.network.beside = self._disturbances

    async def without_faults(self) -> Run:
        """The run without faults, which must keep every rule."""
        await self.prepare()
        run = await self._run()
        if run.error or run.writes_at_rest or run.violations:
            story = "\n".join(run.story[-40:])
            raise AssertionError(f"the clean run: {run.error} {run.writes_at_rest} {run.violations}\n{story}")
        return run

    @property
    def clean(self) -> Run:
        """What every run is compared with."""
        assert self._clean is not None
        return self._clean

    async def prepare(self) -> None:
        """Come to rest, and keep the garbage collector away from what children share with this process."""
        await self._world.settled()
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        # What exists already is compared at every rest: children inherit how it reads.
        take_snapshot(self._world.cluster.server.store)

    async def every_write(self, kinds: Callable[[Sequence[str]], Sequence[Kind]], to_the_end: int = 1) -> list[Result]:
        """Run the scenario once more, and continue from each write with the faults that `kinds` gives for it.

        After every n-th fault, `to_the_end`, the scenario goes on to its end, to meet what the fault left behind.
        """

        def at_write(number: int) -> Kind | None:
            for kind in kinds(self._world.network.writes):
                self._deliver = self._forks.fork()
                if self._deliver:
                    self._to_the_end = (number + list(Kind).index(kind)) % to_the_end == 0
                    return self._inject(number, kind)
            return None

        self._world.network.at_write = at_write
        run = await self._run()
        self._world.network.at_write = lambda number: None
        assert run.writes == self.clean.writes, "two runs without faults differ"
        return self._forks.results()

    async def one_write(self, number: int, kind: Kind) -> Result:
        """One fault at one write, up to the end of the scenario."""

        def at_write(reached: int) -> Kind | None:
            return self._inject(number, kind) if reached == number else None

        return (await self._forked([lambda: setattr(self._world.network, "at_write", at_write)]))[0]

    async def no_fault(self) -> Result:
        """One more run without faults: for what was changed since the clean one."""
        return (await self._forked([lambda: None]))[0]

    async def seeds(self, seeds: Sequence[int], most_faults: Sequence[int] = ()) -> list[Result]:
        """A run per seed with the faults that it draws, or only the first so many of them."""
        most = most_faults or [1 << 30] * len(seeds)
        return await self._forked([self._storm(seed, limit) for seed, limit in zip(seeds, most, strict=True)])

    async def shortest(self, seed: int, failing: Result) -> Result:
        """The failing run of a seed with the first of its faults only: without the last of them nothing breaks."""
        passing, best = 0, failing
        while best.faults - passing > 1:
            (result,) = await self.seeds([seed], [(passing + best.faults) // 2])
            if result.problem:
                best = result
            else:
                passing = result.faults
        return best

    def _storm(self, seed: int, most_faults: int) -> Callable[[], None]:
        def start() -> None:
            network = self._world.network
            network.chance, network.storm, network.most_faults = Chance(seed), storm(seed), most_faults
            self._replay = f"--seed {seed}"

        return start

    async def _forked(self, starts: Sequence[Callable[[], None]]) -> list[Result]:
        for start in starts:
            deliver = self._forks.fork()
            if deliver:
                start()
                deliver(_result_of(self.clean, await self._run()))
        return self._forks.results()

    def _inject(self, number: int, kind: Kind) -> Kind | None:
        """In a child: let a fault happen at this write, and none after it."""
        network = self._world.network
        # The steps so far were taken by the run without faults.
        self._checker.count_anew()
        network.at_write = lambda later: None
        network.fault_counts[kind] += 1
        self._replay = f"--write {number} --fault {kind}"
        if kind in HARMLESS:
            return kind
        network.crashed_at = network.writes[-1]
        self._disturbances.user(number)
        return None

    async def _run(self) -> Run:
        """Take the steps of a scenario, waiting for rest after each."""
        world, network = self._world, self._world.network
        await world.settled()
        run = Run(writes=network.writes, story=network.story)
        checker = self._checker = Checker(world.cluster.server.store, network)
        created = CreatedPods(world.cluster.server.store)
        network.armed = True
        try:
            for number, step in enumerate(self._scenario.steps, 1):
                network.tell("USER", f"step {number}: {step.__doc__}")
                await self._take(step)
                await world.settled()
                network.tell("REST", f"after step {number}")
                checker.at_rest()
                run.snapshots.append(take_snapshot(world.cluster.server.store))
                run.created_pods.append(created.counts.copy())
                run.evictions.append(checker.evictions)
                if self._deliver and not self._to_the_end:
                    break
            if not self._deliver or self._to_the_end:
                network.recent_writes.clear()
                await asyncio.sleep(_REST_SECONDS)
                run.writes_at_rest = list(network.recent_writes)
        except Exception:
            run.error = traceback.format_exc()[-3000:]
        counts = ", ".join(f"{count} {fault}" for fault, count in network.fault_counts.items())
        run.fault = f"{counts} at {network.crashed_at}" if network.crashed_at else counts
        run.violations, run.checks, run.steps = checker.violations, checker.checks, checker.steps
        run.kinds, run.replay = network.fault_counts, self._replay
        late = network.fault_counts[DELAYED] + network.fault_counts[LATE_KUBELET]
        raced = bool(network.fault_counts[CLOCK_JUMPED] or (self._scenario.news_race and late))
        run.changed_outcome = self._disturbances.changed_outcome or raced
        if self._deliver:
            self._deliver(_result_of(self.clean, run))
        return run

    async def _take(self, step: Callable[[World], Awaitable[None]]) -> None:
        try:
            await step(self._world)
        except ApiError:
            # An object that a disturbance deleted cannot be changed any more.
            if not self._disturbances.changed_outcome:
                raise


def _result_of(clean: Run, run: Run) -> Result:
    """Compare a run with the rules and with the clean run."""
    problem = run.error or "\n".join(_problems(clean, run))
    story = tuple(run.story)
    number, _, where = run.fault.partition(" at ")
    return Result(number, where, run.replay, problem, story, run.kinds, run.steps, run.checks)


def _problems(clean: Run, run: Run) -> Iterator[str]:
    for rule, violation in run.violations.items():
        yield f"{rule}: {violation}"
    if run.writes_at_rest:
        yield f"no_writes_at_rest: {run.writes_at_rest}"
    if run.changed_outcome:
        return
    for number, (expected, actual) in enumerate(zip(clean.snapshots, run.snapshots, strict=False), 1):
        if expected != actual:
            yield f"same_end: after step {number}:\n{differences(expected, actual)}"
            break
    last = len(run.snapshots) - 1
    # No precondition keeps one leader from creating the pod that another one has just given up.
    one_leader = not run.kinds[SECOND_LEADER]
    if one_leader and last >= 0 and (extra := run.created_pods[last] - clean.created_pods[last]):
        yield f"no_pod_twice: pods created once more: {dict(extra)}"
    if last >= 0 and run.evictions[last] > clean.evictions[last]:
        yield f"no_further_victim: {run.evictions[last]} evictions instead of {clean.evictions[last]}"
