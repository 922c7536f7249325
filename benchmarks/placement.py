"""How well placement uses a cluster: GPU allocation and fragments on the openb traces, makespan of knavigator's gangs.

Usage: python benchmarks/placement.py TRACES [--trace default] [--seeds 10] [--out DIR]
TRACES holds openb/ and knavigator/. The published means are those of the FGD paper (ATC'23) at 130 % load.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import time
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from spinney.scheduler import status as st
from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.plan import plan
from spinney.scheduler.specs import (
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
from spinney.scheduler.state import State

PUBLISHED = {
    "default": (93.08, 95.39),
    "gpushare100": (85.01, 86.90),
    "gpushare40": (91.69, 94.15),
    "multigpu20": (93.93, 95.65),
    "gpuspec10": (93.30, 94.95),
    "cpu050": (93.79, 95.21),
    "cpu250": (91.45, 93.41),
}
LOAD = 1.3
FREE = Share(-1, -1, 1)
BASE = ("predicates", "proportion", "priority", "elastic", "nodeavailability", "resourcetype")
STRATEGIES = {
    "binpack": (*(PluginConfig(name) for name in (*BASE, "gpupack", "nodeplacement")),),
    "spread": (
        *(PluginConfig(name) for name in (*BASE, "gpuspread")),
        PluginConfig("nodeplacement", {"gpu": "spread", "cpu": "spread"}),
    ),
    "fragmentation": (*(PluginConfig(name) for name in (*BASE, "gpupack", "fragmentation")),),
}


def rows(file: Path) -> list[dict[str, str]]:
    """A CSV file as dictionaries."""
    with file.open() as lines:
        return list(csv.DictReader(lines))


def workload(pods: list[dict[str, str]], gpus: int, seed: int) -> list[dict[str, str]]:
    """Pods in the order they arrive, cut or filled up to 130 % of the cluster's GPUs."""
    chance = random.Random(seed)
    pods = sorted(pods, key=lambda pod: pod["name"])
    chance.shuffle(pods)

    def size(pod: dict[str, str]) -> float:
        return int(pod["num_gpu"]) * int(pod["gpu_milli"]) / 1000

    total, known = sum(map(size, pods)), list(pods)
    while total < LOAD * gpus:
        pods.append(chance.choice(known))
        total += size(pods[-1])
    while total > LOAD * gpus:
        total -= size(pods.pop(chance.randrange(len(pods))))
    return pods


def openb(nodes: list[dict[str, str]], pods: list[dict[str, str]]) -> State:
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
        key, count, milli = f"p{number}", int(pod["num_gpu"]), int(pod["gpu_milli"])
        models = tuple(filter(None, pod["gpu_spec"].split("|")))
        rule = Constraints(node_affinity=((Match("model", "In", models),),)) if models else Constraints()
        whole = GpuRequest(
            whole=count if milli >= 1000 else 0, portion=milli / 1000 if 0 < milli < 1000 and count else 0
        )
        request = {"cpu": float(pod["cpu_milli"]), "memory": float(pod["memory_mib"])}
        state.set_job(JobSpec(key, "q", created=float(number), tree=gang(1)))
        state.set_task(TaskSpec(key, key, request=request, gpu=whole, constraints=rule))
    return state


def allocation(state: State, strategy: str) -> tuple[float, float]:
    """GPU allocated in percent, and how long that took in seconds."""
    start = time.perf_counter()
    done = plan(state, Config(actions=("allocate",), plugins=STRATEGIES[strategy]), 0.0)
    seconds = time.perf_counter() - start
    used = sum(state.tasks[decision.task].cls.gpus for decision in done.decisions)
    total = sum(spec.allocatable["gpu"] for spec in state.nodes.specs if spec is not None)
    return 100 * used / total, seconds


def makespan(jobs: list[dict[str, str]]) -> dict[str, float]:
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
            state.assume(decision.task, st.RUNNING, decision.node)
            ends[decision.job] = now + lasting[decision.job]
        now = min(ends.values())
        for key in [key for key, end in ends.items() if end == now]:
            tasks = [task.key for task in state.jobs[key].all_tasks()]
            busy += len(tasks) * lasting[key]
            for task in tasks:
                state.drop_task(task)
            state.drop_job(key)
            del ends[key]
    return {"minutes": now, "occupancy": round(100 * busy / (32 * now), 1)}


def chart(results: list[dict[str, object]], file: Path) -> None:
    """Allocation by trace and strategy."""
    mpl.use("Agg")
    figure, axes = plt.subplots(figsize=(10, 4))
    names = list(dict.fromkeys(str(one["trace"]) for one in results))
    kinds = list(dict.fromkeys(str(one["strategy"]) for one in results))
    for number, kind in enumerate(kinds):
        values = {one["trace"]: one["allocated"] for one in results if one["strategy"] == kind}
        places = [place + 0.15 * number for place in range(len(names))]
        axes.bar(places, [values.get(name, 0) for name in names], 0.14, label=kind)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(70, 100)
    axes.set_ylabel("GPUs allocated at 130 % load, %")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


def main() -> None:
    """Run traces and write placement.json and placement.png."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--trace", default="")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    arguments = parser.parse_args()
    nodes = rows(arguments.traces / "openb/openb_node_list_gpu_node.csv")
    gpus = sum(int(node["gpu"]) for node in nodes)
    results: list[dict[str, object]] = []
    for file in sorted((arguments.traces / "openb").glob("openb_pod_list_*.csv")):
        name = file.stem.removeprefix("openb_pod_list_")
        if arguments.trace not in name:
            continue
        best, fgd = PUBLISHED.get(name, (0.0, 0.0))
        results += [
            {"trace": name, "strategy": "BestFit, published", "allocated": best},
            {"trace": name, "strategy": "FGD, published", "allocated": fgd},
        ]
        for strategy in STRATEGIES:
            runs = [
                allocation(openb(nodes, workload(rows(file), gpus, seed)), strategy) for seed in range(arguments.seeds)
            ]
            found: dict[str, object] = {
                "trace": name,
                "strategy": strategy,
                "allocated": round(statistics.mean(run[0] for run in runs), 2),
                "seconds": round(statistics.mean(run[1] for run in runs), 1),
                "seeds": arguments.seeds,
            }
            results.append(found)
            print(json.dumps(found), flush=True)
    gangs = makespan(rows(arguments.traces / "knavigator/gang_scheduling_53_jobs.csv"))
    print(json.dumps(gangs))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "placement.json").write_text(json.dumps({"openb": results, "knavigator": gangs}, indent=1))
    chart(results, arguments.out / "placement.png")


if __name__ == "__main__":
    main()
