"""How well placement uses a cluster: GPU allocation and fragments on the openb traces, makespan of knavigator's gangs.

Usage: python benchmarks/placement.py TRACES [--trace NAME] [--strategy NAME] [--seeds 10] [--first 0] [--out DIR]
TRACES holds openb/ and knavigator/. The published means are those of the FGD paper (ATC'23) at 130 % load; `fgd` is the
paper's scoring, run here, so that ours is compared with it on the very same pods in the very same order.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from _mixed import run

from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Score, Scores
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.plugins import registry
from spinney.scheduler.plugins.fragmentation import Fragments, Rule
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.specs import (
    Constraints,
    GpuRequest,
    JobSpec,
    Match,
    NodeSpec,
    QueueSpec,
    Share,
    TaskSpec,
    gang,
)
from spinney.scheduler.state.tasks import Task

# GPUs allocated at 130 % load, in percent.
POLICIES = ("Random", "DotProd", "Clustering", "Packing", "BestFit", "FGD")
PUBLISHED = {
    "default": (87.47, 90.85, 91.88, 92.00, 93.08, 95.39),
    "gpushare100": (79.44, 82.42, 82.65, 82.57, 85.01, 86.90),
    "gpushare40": (86.00, 89.56, 90.02, 90.03, 91.69, 94.15),
    "multigpu20": (88.69, 92.06, 93.56, 93.71, 93.93, 95.65),
    "gpuspec10": (87.43, 90.39, 92.18, 92.46, 93.30, 94.95),
    "cpu050": (91.24, 93.27, 93.79, 93.72, 93.79, 95.21),
    "cpu250": (80.42, 83.81, 87.99, 88.28, 91.45, 93.41),
}
LOAD = 1.3
MARKS = (0.5, 0.8, 0.95, 1.3)
FREE = Share(-1, -1, 1)
BASE = ("predicates", "proportion", "priority", "elastic", "nodeavailability", "resourcetype")
STRATEGIES = {
    "binpack": (*(PluginConfig(name) for name in (*BASE, "gpupack", "nodeplacement")),),
    "spread": (
        *(PluginConfig(name) for name in (*BASE, "gpuspread")),
        PluginConfig("nodeplacement", {"gpu": "spread", "cpu": "spread"}),
    ),
    "fgd": (*(PluginConfig(name) for name in (*BASE, "gpupack", "fgd")),),
    "fragmentation": (*(PluginConfig(name) for name in (*BASE, "gpupack", "fragmentation")),),
}
Row = dict[str, str]


def paper(cycle: Cycle, _: PluginConfig) -> None:
    """The scoring of the paper as its authors run it: whole points out of 100, the first of the best nodes wins."""
    fragments = Fragments(cycle, Rule(filled=0.0, processors=0.0, untouched=0.0, by_size=False))

    def score(task: Task, rows: Rows) -> Scores:
        points: Scores = np.floor(100 / (1 + np.exp(fragments.growth(task)[rows])))
        return points

    cycle.hooks.scores.append(Score(score))
    cycle.hooks.gpu_orders.append(fragments.choose)


registry.BUILT_IN["fgd"] = paper


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a trace: processors in thousandths, memory in MiB, devices, thousandths of each, models it may use."""

    cpu: int
    memory: int
    devices: int
    milli: int
    models: tuple[str, ...]

    @property
    def gpus(self) -> float:
        """GPUs asked for."""
        return self.devices * self.milli / 1000


def rows(file: Path) -> list[Row]:
    """A CSV file as dictionaries."""
    with file.open() as lines:
        return list(csv.DictReader(lines))


def trace(file: Path) -> list[Pod]:
    """The pods of a trace, by name; some traces say nothing of models."""
    return [
        Pod(
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
        )
        for row in sorted(rows(file), key=lambda row: row["name"])
    ]


def workload(pods: list[Pod], gpus: int, seed: int) -> list[Pod]:
    """Pods in the order they arrive, cut or filled up to 130 % of the cluster's GPUs."""
    chance = random.Random(seed)
    known = list(pods)
    chance.shuffle(known)
    arriving = list(known)
    total = sum(pod.gpus for pod in known)
    while total < LOAD * gpus:
        arriving.append(chance.choice(known))
        total += arriving[-1].gpus
    while total > LOAD * gpus:
        total -= arriving.pop(chance.randrange(len(arriving))).gpus
    return arriving


def openb(nodes: list[Row], pods: list[Pod]) -> State:
    """The cluster with every pod waiting, one job each, in order of arrival."""
    state = State()
    state.set_queue(QueueSpec("q", cpu=FREE, memory=FREE, gpu=FREE))
    for node in nodes:
        amounts = {"cpu": float(node["cpu_milli"]), "memory": float(node["memory_mib"]), "gpu": float(node["gpu"])}
        spec = NodeSpec(
            node["sn"], {**amounts, "pods": 10_000.0}, {"model": node["model"]}, gpu_memory=1000, gpu_memory_known=True
        )
        state.set_node(spec)
    for number, pod in enumerate(pods):
        rule = Constraints(node_affinity=((Match("model", "In", pod.models),),)) if pod.models else Constraints()
        gpu = GpuRequest(whole=pod.devices)
        if pod.devices and pod.milli < 1000:
            gpu = GpuRequest(portion=pod.milli / 1000, devices=pod.devices)
        key, request = f"p{number}", {"cpu": float(pod.cpu), "memory": float(pod.memory)}
        state.set_job(JobSpec(key, "q", created=float(number), tree=gang(1)))
        state.set_task(TaskSpec(key, key, request=request, gpu=gpu, constraints=rule))
    return state


class Replay:
    """A plan carried out pod by pod, to measure fragments at several loads as the paper measures them."""

    def __init__(self, nodes: list[Row], pods: list[Pod]) -> None:
        self.index = {node["sn"]: number for number, node in enumerate(nodes)}
        counts = np.array([int(node["gpu"]) for node in nodes])
        self.free = np.where(np.arange(counts.max()) < counts[:, None], 1000, 0)
        self.cpu = np.array([int(node["cpu_milli"]) for node in nodes])
        self.model = np.array([node["model"] for node in nodes])
        self.groups: dict[tuple[int, str], int] = {}
        self.total = int(counts.sum())
        kinds = Counter((pod.cpu, pod.devices, pod.milli, pod.models) for pod in pods)
        covered, self.typical = 0, []
        for kind, count in kinds.most_common():
            if covered >= 0.95 * len(pods):
                break
            covered += count
            self.typical.append((kind, count))
        self.covered = covered

    def put(self, pod: Pod, node: str, groups: tuple[str, ...]) -> None:
        """Place a pod where the plan says."""
        row = self.index[node]
        self.cpu[row] -= pod.cpu
        whole = np.flatnonzero(self.free[row] == 1000)
        if groups:
            for group in groups:
                device = self.groups.setdefault((row, group), int(whole[0]) if len(whole) else -1)
                self.free[row, device] -= pod.milli
        else:
            self.free[row, whole[: pod.devices]] = 0
        if self.cpu[row] < 0 or (self.free[row] < 0).any():
            raise AssertionError(f"{node} holds more than it has")

    def fragments(self) -> float:
        """Fragments as a share of all GPUs, in percent."""
        left = self.free.sum(axis=1)
        total = 0.0
        for (cpu, devices, milli, models), count in self.typical:
            usable = self.free >= milli
            fits = (self.cpu >= cpu) & (usable.sum(axis=1) >= devices) & bool(devices)
            if models:
                fits &= np.isin(self.model, models)
            useless = np.where(fits, np.where(usable, 0, self.free).sum(axis=1), left)
            total += count / self.covered * float(useless.sum())
        return total / 10 / self.total

    def curve(self, pods: list[Pod], done: Plan) -> list[float]:
        """Fragments when so much of the cluster's GPUs has been asked for."""
        places = {decision.task: decision for decision in done.decisions}
        measured: list[float] = []
        asked = 0.0
        for number, pod in enumerate(pods):
            asked += pod.gpus
            decision = places.get(f"p{number}")
            if decision is not None:
                self.put(pod, decision.node, decision.gpu_groups)
            while len(measured) < len(MARKS) - 1 and asked >= MARKS[len(measured)] * self.total:
                measured.append(self.fragments())
        return [*measured, self.fragments()]


def placed(nodes: list[Row], pods: list[Pod], strategy: str) -> dict[str, Any]:
    """One run: GPUs allocated and fragments in percent, and the seconds that the decisions took."""
    state = openb(nodes, pods)
    start, spent = time.perf_counter(), time.process_time()
    done = plan(state, Config(actions=("allocate",), plugins=STRATEGIES[strategy]), 0.0)
    seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    replay = Replay(nodes, pods)
    fragments = replay.curve(pods, done)
    used = 100 * (1 - float(replay.free.sum()) / 1000 / replay.total)
    return {"allocated": used, "fragments": fragments, "seconds": seconds, "cpu_seconds": cpu}


def summary(name: str, strategy: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean over seeds, with how far single runs are apart."""
    values = [run["allocated"] for run in runs]
    return {
        "trace": name,
        "strategy": strategy,
        "allocated": round(statistics.mean(values), 2),
        "spread": round(statistics.stdev(values), 2) if len(values) > 1 else 0.0,
        "fragments": [round(statistics.mean(at), 2) for at in zip(*(run["fragments"] for run in runs), strict=True)],
        "seconds": round(statistics.mean(run["seconds"] for run in runs), 1),
        # Processor time: the same as the time on the clock when nothing else runs.
        "cpu_seconds": round(statistics.mean(run["cpu_seconds"] for run in runs), 1),
        "published_fgd": PUBLISHED[name][-1] if name in PUBLISHED else None,
        "runs": [round(value, 2) for value in values],
    }


def makespan(jobs: list[Row]) -> dict[str, float]:
    """Gangs of whole nodes, all submitted at once: minutes until the last ends, and how full the cluster was."""
    state = State()
    state.set_queue(QueueSpec("q", cpu=FREE, memory=FREE, gpu=FREE))
    for number in range(32):
        state.set_node(NodeSpec(f"n{number:02}", {"cpu": 64000.0, "memory": 1e12, "gpu": 8.0, "pods": 110.0}))
    ends: dict[str, float] = {}
    lasting: dict[str, float] = {}
    for row in jobs:
        for copy in range(int(row["job_count"])):
            key = f"{row['task_id']}-{copy}"
            lasting[key] = float(row["ttl"].rstrip("m"))
            size = int(row["replicas_nodes_each"])
            state.set_job(JobSpec(key, "q", created=float(len(lasting)), tree=gang(size)))
            for task in range(size):
                state.set_task(TaskSpec(f"{key}-{task}", key, request={"cpu": 1000.0}, gpu=GpuRequest(whole=8)))
    now = busy = 0.0
    while state.jobs:
        for decision in plan(state, Config(), 60 * now).decisions:
            run(state, decision)
            ends[decision.job] = now + lasting[decision.job]
        now = min(ends.values())
        for key in [key for key, end in ends.items() if end == now]:
            tasks = [task.key for task in state.jobs[key].all_tasks()]
            busy += len(tasks) * lasting[key]
            for task in tasks:
                state.drop_task(task)
            state.drop_job(key)
            del ends[key]
    return {"minutes": now, "perfect": 18.0, "occupancy": round(100 * busy / (32 * now), 1)}


def chart(results: list[dict[str, Any]], file: Path) -> None:
    """Allocation by trace and strategy, beside what the paper reports; and fragments by load on the default trace."""
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 4), width_ratios=(3, 1))
    names = list(dict.fromkeys(one["trace"] for one in results))
    bars = {
        strategy: {one["trace"]: one["allocated"] for one in results if one["strategy"] == strategy}
        for strategy in STRATEGIES
    }
    for place, policy in ((4, "BestFit"), (5, "FGD")):
        bars[f"{policy}, published"] = {name: values[place] for name, values in PUBLISHED.items()}
    for number, (label, values) in enumerate(bars.items()):
        places = [place + 0.13 * number for place in range(len(names))]
        left.bar(places, [values.get(name, 0) for name in names], 0.12, label=label)
    left.set_xticks([place + 0.32 for place in range(len(names))], names)
    left.set_ylim(70, 104)
    left.set_ylabel("GPUs allocated at 130 % load, %")
    left.legend(ncols=3, fontsize="small")
    for one in results:
        if one["trace"] == "default":
            right.plot([100 * mark for mark in MARKS], one["fragments"], marker="o", label=one["strategy"])
    right.set_xlabel("load, % of GPUs asked for")
    right.set_ylabel("fragments, % of GPUs (default trace)")
    if right.lines:
        right.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(file)


def main() -> None:
    """Run traces and write placement.json and placement.png."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--trace", default="")
    parser.add_argument("--strategy", default="")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    gangs = makespan(rows(arguments.traces / "knavigator/gang_scheduling_53_jobs.csv"))
    print(json.dumps(gangs), flush=True)
    nodes = rows(arguments.traces / "openb/openb_node_list_gpu_node.csv")
    gpus = sum(int(node["gpu"]) for node in nodes)
    results: list[dict[str, Any]] = []
    for file in sorted((arguments.traces / "openb").glob("openb_pod_list_*.csv")):
        name = file.stem.removeprefix("openb_pod_list_")
        pods = trace(file)
        for strategy in STRATEGIES:
            if arguments.trace not in name or arguments.strategy not in strategy:
                continue
            seeds = range(arguments.first, arguments.first + arguments.seeds)
            runs = [placed(nodes, workload(pods, gpus, seed), strategy) for seed in seeds]
            results.append(summary(name, strategy, runs))
            print(json.dumps(results[-1]), flush=True)
            report = {"knavigator": gangs, "published": {"policies": POLICIES, **PUBLISHED}, "openb": results}
            (arguments.out / "placement.json").write_text(json.dumps(report, indent=1))
    chart(results, arguments.out / "placement.png")


if __name__ == "__main__":
    main()
