"""The wide search for crashes that leave something behind: `python -m tests.faults [SCENARIO …]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

import structlog

from spinney.sim.loop import run_virtual
from tests.faults.processes import installation
from tests.faults.scenarios import SCENARIOS
from tests.faults.search import Fault, Told, search
from tests.faults.wire import Accident, Weather


def crashes(every: int, first: int) -> Callable[[Told], Iterable[Fault]]:
    """One before and one after each write of a clean run, or each so many."""

    def found(clean: Told) -> Iterable[Fault]:
        print(f"  {len(clean.writes)} writes, {sum(clean.births[-1].values())} pods", flush=True)
        for number in range(first, len(clean.writes) + 1, every):
            yield Accident(number, done=False)
            yield Accident(number, done=True)

    return found


def storms(first: int, runs: int) -> Callable[[Told], Iterable[Fault]]:
    """Weathers of all kinds, drawn from seeds."""

    def found(clean: Told) -> Iterable[Fault]:
        for seed in range(first, first + runs):
            kind = seed % 5
            seconds = (1.0, 5.0, 20.0)[seed // 5 % 3]
            yield (
                Weather(seed, most_seconds=seconds, kind=0.1),
                Weather(seed, most_seconds=seconds, process=0.02),
                Weather(seed, most_seconds=seconds, kind=0.05, process=0.005, crashes=0.02),
                Weather(seed, broken=0.05, expired=0.05),
                Weather(seed, most_seconds=seconds, kind=0.03, broken=0.02, expired=0.02, crashes=0.02),
            )[kind]

    return found


async def run(name: str, seed: int, lag: float, faults: Callable[[Told], Iterable[Fault]], jobs: int) -> int:
    """Search in one scenario, and print what was found; how many runs went wrong."""
    scenario, wrong, runs = SCENARIOS[name], 0, 0
    known: dict[str, str] = {}
    async with installation(scenario.nodes, stand_in=scenario.stand_in, seed=seed, lag=lag) as world:
        async for fault, struck, problem in search(world, scenario, faults, jobs):
            runs += 1
            if problem:
                wrong += 1
                told = f"as {known[problem]}" if problem in known else problem
                known.setdefault(problem, str(fault))
                print(f"{name} seed {seed} {fault} [{struck}]: {told}", flush=True)
    print(f"{name} seed {seed} lag {lag}: {runs} runs, {wrong} went wrong", flush=True)
    return wrong


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], help="all of them where none is named")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lag", type=float, default=0.01, help="seconds a request takes at most, each way")
    parser.add_argument("--every", type=int, default=1, help="only each so many writes")
    parser.add_argument("--first", type=int, default=1, help="the first write to end at")
    parser.add_argument("--storms", type=int, default=0, help="instead: so many runs with late and lost events")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    wrong = 0
    for name in chosen.scenarios or SCENARIOS:
        faults = storms(chosen.first, chosen.storms) if chosen.storms else crashes(chosen.every, chosen.first)
        wrong += run_virtual(run(name, chosen.seed, chosen.lag, faults, chosen.jobs), limit=7 * 86400)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
