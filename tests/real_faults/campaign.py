"""Rounds of load with one fault each; after every round the cluster must come to rest as the rules say."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from tests.real_faults.containers import containers
from tests.real_faults.faults import FULL_DISK, Fault, SmallDisk
from tests.real_faults.installation import Installation, revive_control_plane
from tests.real_faults.load import Load
from tests.real_faults.observer import Observer
from tests.real_faults.processes import processes

_ACTIONS = 4
# Longer than any component waits before it writes on its own account.
_QUIET_SECONDS = 2.5
# Leases, retries with pauses and starts of processes on a busy machine.
_PATIENCE_SECONDS = 150.0


@dataclass
class Round:
    """What came of one round."""

    fault: str
    seconds: float
    broken: list[str]


@dataclass
class Report:
    """What came of all rounds."""

    rounds: list[Round] = field(default_factory=list)
    actions: int = 0
    events: int = 0
    checks: int = 0
    # Of processes that ended by themselves.
    restarts: int = 0
    # Of rules that hold at any time, by rule.
    violations: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Every violation, with the round it was seen in."""
        at_rest = [f"after {each.fault}: {text}" for each in self.rounds for text in each.broken]
        return [*(f"{rule}: {text}" for rule, text in self.violations.items()), *at_rest]


async def run(folder: Path, faults: Sequence[Fault], seconds: float, seed: int, *, kubelets: bool = False) -> Report:
    """Load and faults in turn, until the time is over and every fault was there once."""
    place = containers if kubelets else processes
    with SmallDisk(folder) as disk, place(folder) as installation:
        client = installation.plane.client()
        await installation.start(client)
        chosen = [fault for fault in faults if disk.is_bounded or fault is not FULL_DISK]
        report = await rounds(installation, client, chosen, seconds, seed)
        await client.close()
        return report


async def rounds(
    installation: Installation, client: Client, faults: Sequence[Fault], seconds: float, seed: int
) -> Report:
    """The rounds, on an installation that runs."""
    loop, chance, report = asyncio.get_running_loop(), Chance(seed), Report()
    supervision = asyncio.ensure_future(installation.supervise())
    observer, load = Observer(client), Load(client, seed, installation.image)
    await observer.ready()
    end, number = loop.time() + seconds, 0
    while number < len(faults) or loop.time() < end:
        fault, started = faults[number % len(faults)], loop.time()
        await asyncio.gather(_acts(load), _later(fault, installation, chance.random() * 2))
        await revive_control_plane(installation)
        await observer.ready()
        broken = await observer.settled(_QUIET_SECONDS, _PATIENCE_SECONDS)
        report.rounds.append(Round(fault.name, loop.time() - started, broken))
        print(f"{fault.name}: at rest after {loop.time() - started:.1f} s", *broken, sep="\n  ", flush=True)
        number += 1
    await load.delete_all()
    report.rounds.append(Round("everything was deleted", 0, await observer.settled(_QUIET_SECONDS, _PATIENCE_SECONDS)))
    supervision.cancel()
    await observer.close()
    report.restarts = installation.restarts()
    report.actions, report.events = load.done, observer.events
    report.checks, report.violations = observer.checks.total(), observer.violations
    return report


async def _acts(load: Load) -> None:
    for _ in range(_ACTIONS):
        await load.act()


async def _later(fault: Fault, installation: Installation, delay: float) -> None:
    await asyncio.sleep(delay)
    await fault.inject(installation)
