"""Attack everything that reads what others wrote, and report what broke, what took long, and how to repeat it.

python -m tests.fuzz [--inputs 50000] [--first 0] [--only api] [--unguided]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import structlog

from tests.fuzz.coverage import Coverage
from tests.fuzz.guided import Corpus
from tests.fuzz.mutations import Mutator
from tests.fuzz.targets import Target, targets

LONGEST_SECONDS = 1.0


@dataclass
class Report:
    """What came out of a run."""

    inputs: Counter[str] = field(default_factory=Counter)
    # Inputs that reached something new, and the steps from line to line that all of them took; of guided runs.
    kept: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    failures: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    longest: float = 0.0


class _Ways:
    """How inputs are drawn: from their number alone, or from what earlier ones reached."""

    def __init__(self, report: Report, *, guided: bool) -> None:
        self._report = report
        self._coverage = Coverage() if guided else None
        self._corpora: dict[str, Corpus] = defaultdict(Corpus)

    async def run(self, name: str, target: Target, number: int) -> None:
        """Give one input to a target."""
        if self._coverage is None:
            await target(Mutator(number))
            return
        mutator = Mutator(number, self._corpora[name].next_tape(number))
        try:
            with self._coverage:
                await target(mutator)
        finally:
            if self._coverage.is_news():
                self._corpora[name].keep(mutator.drawn)
                self._report.kept[name] += 1
            self._report.steps = len(self._coverage.steps)


async def attack(first: int, count: int, only: str = "", *, guided: bool = False) -> Report:
    """Give each target its share of the inputs; number and target are the seed, in a guided run with all before."""
    report = Report()
    chosen = {name: target for name, target in targets().items() if only in ("", name)}
    names = list(chosen)
    for target in chosen.values():
        # The first input of a target pays for its start.
        await target(Mutator(-1))
    ways = _Ways(report, guided=guided)
    for number in range(first, first + count):
        name = names[number % len(names)]
        report.inputs[name] += 1
        # Of CPU time: a busy machine is no hang.
        started = time.process_time()
        try:
            await ways.run(name, chosen[name], number)
        except Exception as error:
            report.failures.append(f"{name} {number}: {type(error).__name__}: {str(error)[:2000]}")
        seconds = time.process_time() - started
        report.longest = max(report.longest, seconds)
        if seconds > LONGEST_SECONDS:
            report.slow.append(f"{name} {number}: {seconds:.2f} s")
        if number % 100 == 0:
            await asyncio.sleep(0)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description="Hostile inputs for everything that reads what others wrote.")
    parser.add_argument("--inputs", type=int, default=50_000)
    parser.add_argument("--first", type=int, default=0, help="The number of the first input: a run is repeatable.")
    parser.add_argument("--only", default="", help="One target.")
    parser.add_argument("--unguided", action="store_true", help="Draw inputs without looking at what they reach.")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    report = asyncio.run(attack(arguments.first, arguments.inputs, arguments.only, guided=not arguments.unguided))
    for line in (*report.failures[:50], *report.slow[:50]):
        print(line)
    counts = ", ".join(f"{count} {name}" for name, count in report.inputs.items())
    print(f"{report.inputs.total()} inputs ({counts}): {len(report.failures)} failures, {len(report.slow)} over 1 s")
    if not arguments.unguided:
        print(f"{report.kept.total()} inputs reached something new; {report.steps} steps from line to line")
    print(f"the longest took {report.longest:.2f} s of CPU")
    sys.exit(1 if report.failures or report.slow else 0)


if __name__ == "__main__":
    main()
