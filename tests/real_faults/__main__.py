"""Load and faults on the real API server: `make faults-real`.

python -m tests.real_faults [--minutes 10] [--seed 1] [--only TEXT] [--kubelets]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.real_faults.campaign import Report, run
from tests.real_faults.faults import ALL


def table(report: Report) -> str:
    """The rounds by fault, as a table in Markdown."""
    seconds: dict[str, list[float]] = defaultdict(list)
    broken: dict[str, int] = defaultdict(int)
    for each in report.rounds:
        seconds[each.fault].append(each.seconds)
        broken[each.fault] += len(each.broken)
    rows = [f"| {name} | {len(times)} | {max(times):.0f} s | {broken[name]} |" for name, times in seconds.items()]
    return "\n".join(["| fault | rounds | at rest after, at most | violations |", "|---|---:|---:|---:|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description="Load and faults on the real API server.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="Only faults with this in their name.")
    parser.add_argument("--kubelets", action="store_true", help="On a real cluster: kubelets, containers, the chart.")
    arguments = parser.parse_args()
    faults = [fault for fault in ALL if arguments.only in fault.name]
    with TemporaryDirectory() as folder:
        seconds, seed = arguments.minutes * 60, arguments.seed
        report = asyncio.run(run(Path(folder), faults, seconds, seed, kubelets=arguments.kubelets))
    print(table(report))
    print(f"{report.actions} actions of users, {report.events} events seen, {report.checks} checks of rules")
    print(f"{report.restarts} restarts of components that had lost their lease or the API server")
    for problem in report.problems:
        print(problem)
    print(f"{len(report.problems)} violations")
    sys.exit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
