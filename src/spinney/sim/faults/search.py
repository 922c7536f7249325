"""The search: one clean run of a scenario, then one run per fault, each compared with the clean one."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from spinney.sim.faults.forks import Forks
from spinney.sim.faults.network import Fault
from spinney.sim.faults.scenarios import Scenario
from spinney.sim.faults.snapshot import CreatedPods, Snapshot, differences, take_snapshot
from spinney.sim.faults.world import World

_REST_SECONDS = 240.0


@dataclass
class Run:
    """The result of one run: a snapshot and the pods created so far after each step, and all writes."""

    snapshots: list[Snapshot] = field(default_factory=list)
    created_pods: list[Counter[str]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    # What went wrong on the network.
    faults: str = ""
    writes_at_rest: list[str] = field(default_factory=list)
    error: str = ""


async def run_scenario(world: World, scenario: Scenario) -> Run:
    """Take the steps of a scenario, waiting for rest after each."""
    store, network, run = world.cluster.server.store, world.network, Run(writes=world.network.writes)
    await world.settled()
    created = CreatedPods(store)
    network.armed = True
    try:
        for step in scenario.steps:
            await step(world)
            await world.settled()
            run.snapshots.append(take_snapshot(store))
            run.created_pods.append(created.counts.copy())
        network.recent_writes.clear()
        await asyncio.sleep(_REST_SECONDS)
        run.writes_at_rest = list(network.recent_writes)
    except Exception:
        run.error = traceback.format_exc()[-3000:]
    run.faults = network.crashed_at or ", ".join(f"{count} {fault}" for fault, count in network.fault_counts.items())
    return run


def problems(scenario: Scenario, clean: Run, run: Run) -> str:
    """How a run ended differently from the clean one; empty where it did not."""
    if run.error:
        return run.error
    found = []
    for number, (expected, actual) in enumerate(zip(clean.snapshots, run.snapshots, strict=True), 1):
        if expected != actual:
            found.append(f"after step {number}:\n{differences(expected, actual)}")
            break
    if run.writes_at_rest:
        found.append(f"writes at rest: {run.writes_at_rest}")
    extra = run.created_pods[-1] - clean.created_pods[-1]
    if extra and not scenario.has_victims:
        found.append(f"pods created once more: {dict(extra)}")
    return "\n".join(found)


async def search(
    world: World, scenario: Scenario, faults: Callable[[Run], Iterable[Fault]], jobs: int
) -> AsyncIterator[tuple[Fault, str, str]]:
    """Run a scenario clean, then once per fault; yields the fault, where it happened, and the problems."""
    await world.settled()
    # Keep the collector away from what exists already, so that its pages stay shared with the children.
    gc.collect()
    gc.freeze()
    forks = Forks(jobs)
    deliver = forks.fork()
    if deliver:
        deliver(await run_scenario(world, scenario))
    clean: Run = forks.read()
    if clean.error or clean.writes_at_rest:
        raise AssertionError(f"the clean run: {clean.error} {clean.writes_at_rest}")
    running: list[Fault] = []
    for fault in faults(clean):
        if forks.full:
            yield running.pop(0), *forks.read()
        running.append(fault)
        deliver = forks.fork()
        if deliver:
            fault.inject(world.network)
            run = await run_scenario(world, scenario)
            deliver((run.faults, problems(scenario, clean, run)))
    while running:
        yield running.pop(0), *forks.read()
