"""How long one cycle's decisions take: the scheduler rows of the design's table, as JSON and as a chart.

Usage: python benchmarks/scheduler.py [--out DIR] [--only PART] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from _mixed import mixed

from spinney.kube.gc_tuning import collect_rarely, keep_what_is_here
from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import (
    Constraint,
    GpuRequest,
    JobSpec,
    NodeSpec,
    QueueSpec,
    Share,
    TaskSpec,
    TopologySpec,
    gang,
)

NOW = 1_000_000.0
FREE = Share(-1, -1, 1)
SMALL = {"cpu": 1000.0, "memory": 1e9}


@dataclass(frozen=True)
class Row:
    """One line of the table: the setting, KAI's time on two cores, our aim, and how to set it up."""

    name: str
    size: int
    peer_ms: float | None
    aim_ms: float
    build: Callable[[int], State]
    actions: tuple[str, ...]
    check: Callable[[int, Plan], bool]
    # Jobs that one consolidation may move; KAI was measured without a bound, a cluster has the default of 16.
    consolidation: int = -1


def cluster(nodes: int, gpus: int = 8, labels: Callable[[int], dict[str, str]] = lambda _: {}) -> State:
    """So many nodes under one department."""
    state = State()
    state.set_queue(QueueSpec("department", cpu=FREE, memory=FREE, gpu=FREE))
    for number in range(nodes):
        amounts = {"cpu": 20_000_000.0, "memory": 2e12, "gpu": float(gpus), "pods": 1100.0}
        state.set_node(NodeSpec(f"node{number}", amounts, labels(number)))
    return state


def queue(state: State, name: str, gpus: float, weight: float = 0) -> None:
    """A queue with a GPU quota."""
    share = Share(gpus, -1, weight)
    state.set_queue(QueueSpec(name, "department", created=len(state.queue_specs), cpu=FREE, memory=FREE, gpu=share))


def job(state: State, name: str, where: str, tasks: list[str], gpus: int, inside: Constraint | None = None) -> None:  # noqa: PLR0917  # builder
    """A gang of equal tasks; an empty node is pending."""
    state.set_job(JobSpec(name, where, created=float(len(state.jobs)), tree=gang(len(tasks), inside)))
    for number, node in enumerate(tasks):
        status = st.RUNNING if node else st.PENDING
        spec = TaskSpec(f"{name}-{number}", name, status=status, node=node, request=SMALL, gpu=GpuRequest(whole=gpus))
        state.set_task(spec)


def allocate_singles(nodes: int) -> State:
    """Five one-GPU jobs a node, over four queues, on an empty cluster."""
    state = cluster(nodes)
    for number in range(4):
        queue(state, f"q{number}", nodes * 2, 1)
    for number in range(5 * nodes):
        job(state, f"pending{number}", f"q{number % 4}", [""], 1)
    return state


def full_of_singles(nodes: int) -> State:
    """A full cluster in a queue without quota, and as many jobs pending in one that owns it all."""
    state = cluster(nodes)
    queue(state, "running", 0)
    queue(state, "pending", 8 * nodes)
    for number in range(8 * nodes):
        job(state, f"running{number}", "running", [f"node{number % nodes}"], 1)
    for number in range(8 * nodes):
        job(state, f"pending{number}", "pending", [""], 1)
    return state


def one_gpu_short(nodes: int) -> State:
    """A gang of 10 × 8 GPUs whose victims' queue may give one GPU too few."""
    state = cluster(nodes)
    queue(state, "running", 8 * nodes - 80 + 1)
    queue(state, "pending", 80)
    for number in range(8 * nodes):
        job(state, f"running{number}", "running", [f"node{number % nodes}"], 1)
    job(state, "gang", "pending", [""] * 10, 8)
    return state


def large_gang(nodes: int) -> State:
    """Half of a full cluster is taken back for one gang of whole nodes."""
    state = cluster(nodes)
    queue(state, "running", 0)
    queue(state, "pending", 4 * nodes)
    for number in range(8 * nodes):
        job(state, f"running{number}", "running", [f"node{number % nodes}"], 1)
    job(state, "gang", "pending", [""] * (nodes // 2), 8)
    return state


def steady(nodes: int) -> State:
    """35 running tasks a node, most without GPUs; nothing to do but look."""
    state = cluster(nodes)
    for number in range(20):
        queue(state, f"q{number}", nodes / 4, 1)
    for number in range(nodes * 7 // 2):
        job(state, f"gang{number}", f"q{number % 20}", [f"node{(number + step) % nodes}" for step in range(10)], 0)
    for number in range(100):
        job(state, f"pending{number}", f"q{number % 20}", [""], 9)
    return state


def topology_gangs(nodes: int) -> State:
    """Gangs of 64 tasks that each must stay in one rack of 50 nodes."""
    state = cluster(nodes, labels=lambda number: {"zone": f"z{number // 500}", "rack": f"r{number // 50}"})
    state.set_topology(TopologySpec("tree", (("zone", ""), ("rack", ""))))
    queue(state, "q", 8 * nodes, 1)
    for number in range(nodes // 50 * 3):
        job(state, f"gang{number}", "q", [""] * 64, 1, Constraint("tree", required="rack"))
    return state


def count(done: Plan, kind: str) -> int:
    """How many decisions of a kind there are."""
    return sum(decision.kind == kind for decision in done.decisions)


ALL = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
FULL = "full cycle: full of one-GPU jobs, as many pending in another queue"
NO = "a gang of 10 × 8 GPUs is unschedulable"
MIXED = "full cycle: 20 queues, gangs and shared GPUs, jobs of eight kinds"
BIG = "reclaim for one gang of N/2 × 8 GPUs"


def _all_placed(nodes: int, done: Plan) -> bool:
    return count(done, "bind") == 5 * nodes


def _all_swapped(nodes: int, done: Plan) -> bool:
    return count(done, "evict") == count(done, "wait") == 8 * nodes


def _nothing(_: int, done: Plan) -> bool:
    return not done.decisions


def _half_swapped(nodes: int, done: Plan) -> bool:
    return count(done, "evict") == 4 * nodes and count(done, "wait") == nodes // 2


def _some_swapped(nodes: int, done: Plan) -> bool:
    return count(done, "evict") > nodes and count(done, "wait") > nodes


def _racks_filled(nodes: int, done: Plan) -> bool:
    return count(done, "bind") == nodes // 50 * 3 * 64


ROWS = [
    Row("allocate 5 one-GPU jobs a node", 100, 191, 30, allocate_singles, ("allocate",), _all_placed),
    Row(FULL, 50, 840, 100, full_of_singles, ALL, _all_swapped),
    Row(FULL, 100, 3000, 200, full_of_singles, ALL, _all_swapped),
    Row(FULL, 200, 13_300, 500, full_of_singles, ALL, _all_swapped),
    Row(FULL, 500, 166_000, 2000, full_of_singles, ALL, _all_swapped),
    Row(NO, 50, 3300, 20, one_gpu_short, ("reclaim",), _nothing),
    Row(NO, 100, 15_500, 50, one_gpu_short, ("reclaim",), _nothing),
    Row(NO, 500, 124_000, 250, one_gpu_short, ("reclaim",), _nothing),
    Row(BIG, 100, 570, 50, large_gang, ("reclaim",), _half_swapped),
    Row(BIG, 500, 6600, 200, large_gang, ("reclaim",), _half_swapped),
    Row(BIG, 1000, 29_700, 500, large_gang, ("reclaim",), _half_swapped),
    Row(MIXED, 50, None, 500, lambda nodes: mixed(nodes, NOW), ALL, _some_swapped, 16),
    Row(MIXED, 200, None, 2000, lambda nodes: mixed(nodes, NOW), ALL, _some_swapped, 16),
    Row("steady cycle with 35 tasks a node", 4000, 2400, 200, steady, ALL, _nothing),
    Row("topology gangs of 64 (192 tasks to 50 nodes)", 5000, None, 1920, topology_gangs, ("allocate",), _racks_filled),
]


def measure(row: Row, repeats: int) -> dict[str, object]:
    """Run one row and say how it went."""
    state = row.build(row.size)
    # As in `spinney run`.
    keep_what_is_here()
    config = Config(actions=row.actions, consolidation_victims=row.consolidation)
    times, cpu = [], []
    for _ in range(repeats):
        start, spent = time.perf_counter(), time.process_time()
        done = plan(state, config, NOW)
        times.append(1000 * (time.perf_counter() - start))
        cpu.append(1000 * (time.process_time() - spent))
        if times[-1] > 10_000:
            break
    ours = statistics.median(times)
    return {
        "name": row.name,
        "nodes": row.size,
        "ms": round(ours, 1),
        # Processor time: the same as the time on the clock when nothing else runs.
        "cpu_ms": round(statistics.median(cpu), 1),
        "aim_ms": row.aim_ms,
        "kai_ms": row.peer_ms,
        "times_faster": round(row.peer_ms / ours, 1) if row.peer_ms else None,
        "right": row.check(row.size, done),
        "decisions": len(done.decisions),
    }


def chart(results: list[dict[str, object]], file: Path) -> None:
    """Bars of our time beside KAI's, on a logarithmic axis."""
    mpl.use("Agg")
    labels = [f"{one['name']} ({one['nodes']} nodes)" for one in results]
    figure, axes = plt.subplots(figsize=(11, 0.5 * len(results) + 1.5))
    places = range(len(results))
    axes.barh(
        [place + 0.2 for place in places],
        [one["kai_ms"] or 0 for one in results],
        0.35,
        label="KAI, 2 cores (steady cycle: its own report)",
    )
    axes.barh([place - 0.2 for place in places], [one["ms"] for one in results], 0.35, label="Spinney, 2 cores")
    axes.set_yticks(list(places), labels)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds for the decisions of one cycle")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


def main() -> None:
    """Run the rows and write scheduler.json and scheduler.png."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    results = []
    collect_rarely()
    for row in ROWS:
        if arguments.only not in f"{row.name} {row.size} nodes":
            continue
        profile = cProfile.Profile()
        if arguments.profile:
            profile.enable()
        results.append(measure(row, 1 if arguments.profile else arguments.repeats))
        profile.disable()
        print(json.dumps(results[-1]), flush=True)
        if arguments.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    if arguments.only:
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "scheduler.json").write_text(json.dumps(results, indent=1))
    chart(results, arguments.out / "scheduler.png")


if __name__ == "__main__":
    main()
