"""Search for faults that leave something behind: `python -m spinney.sim.faults [SCENARIO …]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

import structlog

from spinney.sim.faults.network import Crash, Fault, Storm
from spinney.sim.faults.scenarios import SCENARIOS
from spinney.sim.faults.search import Run, search
from spinney.sim.faults.world import installation
from spinney.sim.loop import run_virtual


def crashes(every: int, first: int) -> Callable[[Run], Iterable[Fault]]:
    """A crash before and one after every n-th write of the clean run."""

    def faults(clean: Run) -> Iterable[Fault]:
        print(f"  {len(clean.writes)} writes, {sum(clean.created_pods[-1].values())} pods", flush=True)
        for number in range(first, len(clean.writes) + 1, every):
            yield Crash(number, after=False)
            yield Crash(number, after=True)

    return faults


def storms(first: int, runs: int) -> Callable[[Run], Iterable[Fault]]:
    """Storms of five kinds in turn, one per seed."""

    def faults(clean: Run) -> Iterable[Fault]:
        for seed in range(first, first + runs):
            delay = (1.0, 5.0, 20.0)[seed // 5 % 3]
            yield (
                Storm(seed, max_delay=delay, delay_kind=0.1),
                Storm(seed, max_delay=delay, delay_process=0.02),
                Storm(seed, max_delay=delay, delay_kind=0.05, delay_process=0.005, crash=0.02),
                Storm(seed, broken=0.05, expired=0.05),
                Storm(seed, max_delay=delay, delay_kind=0.03, broken=0.02, expired=0.02, crash=0.02),
            )[seed % 5]

    return faults


async def run(name: str, seed: int, lag: float, faults: Callable[[Run], Iterable[Fault]], jobs: int) -> int:
    """Search in one scenario and print the problems; returns how many runs had one."""
    scenario, failed, runs = SCENARIOS[name], 0, 0
    first_fault: dict[str, str] = {}
    async with installation(scenario.nodes, stand_in=scenario.stand_in, seed=seed, lag=lag) as world:
        async for fault, where, problem in search(world, scenario, faults, jobs):
            runs += 1
            if problem:
                failed += 1
                text = f"as {first_fault[problem]}" if problem in first_fault else problem
                first_fault.setdefault(problem, str(fault))
                print(f"{name} seed {seed} {fault} [{where}]: {text}", flush=True)
    print(f"{name} seed {seed} lag {lag}: {runs} runs, {failed} with problems", flush=True)
    return failed


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m spinney.sim.faults", description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lag", type=float, default=0.01, help="longest time of a request or an answer, in seconds")
    parser.add_argument("--every", type=int, default=1, help="crash at every n-th write only")
    parser.add_argument("--first", type=int, default=1, help="the first write to crash at, or the first storm's seed")
    parser.add_argument("--storms", type=int, default=0, help="instead of crashes: n runs with random faults")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    failed = 0
    for name in options.scenarios or SCENARIOS:
        faults = storms(options.first, options.storms) if options.storms else crashes(options.every, options.first)
        failed += run_virtual(run(name, options.seed, options.lag, faults, options.jobs), limit=7 * 86400)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
