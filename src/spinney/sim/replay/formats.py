"""Readers of published traces: openb (Alibaba), knavigator (NVIDIA), Kueue's performance tests."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spinney.api import duration, labels
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.scheduler.state.specs import (
    Constraint,
    Constraints,
    GpuRequest,
    JobSpec,
    Match,
    NodeSpec,
    Share,
    TaskSpec,
    TopologySpec,
    gang,
)
from spinney.sim.replay.trace import Trace, TraceError, TraceJob, queue

OPENB_NODES = "openb_node_list_gpu_node.csv"
_MODEL = "nvidia.com/gpu.product"
_MIB = float(1 << 20)
_POD_SLOTS = 110.0
# Knavigator's cluster: its jobs take whole nodes.
_KNAVIGATOR = (32, 8)
_KUEUE_NODE_CORES = 100.0
Row = dict[str, str]


def read_csv(path: Path) -> Trace:
    """A trace from a CSV file, by its header."""
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    header = set(rows[0]) if rows else set()
    if {"job_count", "replicas_nodes_each", "ttl"} <= header:
        return _knavigator(path, rows)
    if {"cpu_milli", "num_gpu", "gpu_milli"} <= header:
        return _openb(path, rows)
    raise TraceError(f"{path}: neither a list of openb pods nor of knavigator jobs, by its header")


def _openb(path: Path, rows: list[Row]) -> Trace:
    """Pods as jobs of one task; its classes of service are the queues."""
    nodes_file = path.parent / OPENB_NODES
    if not nodes_file.exists():
        raise TraceError(f"{path}: the nodes are missing: {OPENB_NODES} must be beside it")
    if "creation_time" not in rows[0]:
        raise TraceError(f"{path}: this list has no times, so it cannot be replayed")
    with nodes_file.open() as lines:
        nodes = [_openb_node(row) for row in csv.DictReader(lines)]
    first = min(float(row["creation_time"]) for row in rows)
    jobs = [_openb_job(row, first) for row in rows]
    names = sorted({job.spec.queue for job in jobs})
    return Trace(path.stem, nodes, [queue(name) for name in names], jobs)


def _openb_node(row: Row) -> NodeSpec:
    gpus = float(row["gpu"])
    allocatable = {
        "cpu": float(row["cpu_milli"]),
        "memory": float(row["memory_mib"]) * _MIB,
        "pods": _POD_SLOTS,
        labels.GPU_RESOURCE: gpus,
    }
    return NodeSpec(row["sn"], allocatable, {labels.HOSTNAME: row["sn"], _MODEL: row["model"]}, gpu_count=int(gpus))


def _openb_job(row: Row, first: float) -> TraceJob:
    devices, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    gpu = GpuRequest(whole=devices) if milli >= 1000 else GpuRequest(portion=milli / 1000, devices=max(devices, 1))
    models = tuple(filter(None, (row.get("gpu_spec") or "").split("|")))
    affinity = ((Match(_MODEL, "In", models),),) if models else None
    key = f"trace/{row['name']}"
    began = float(row.get("scheduled_time") or row["creation_time"])
    return TraceJob(
        JobSpec(key, row.get("qos") or "default", name=row["name"], namespace="trace"),
        [
            TaskSpec(
                uid=row["name"],
                job=key,
                name=row["name"],
                namespace="trace",
                group="default",
                request={"cpu": float(row["cpu_milli"]), "memory": float(row["memory_mib"]) * _MIB, "pods": 1.0},
                gpu=gpu,
                constraints=Constraints(node_affinity=affinity),
            )
        ],
        float(row["creation_time"]) - first,
        max(float(row["deletion_time"]) - began, 1.0),
    )


def _knavigator(path: Path, rows: list[Row]) -> Trace:
    """Gangs of pods that take whole nodes, all of them submitted at once, in the order of the file."""
    count, gpus = _KNAVIGATOR
    jobs = [
        _gang(f"{row['task_id']}-{number}", "default", int(row["replicas_nodes_each"]), GpuRequest(whole=gpus))
        for row in rows
        for number in range(int(row["job_count"]))
    ]
    runtimes = [duration.seconds(row["ttl"]) for row in rows for _ in range(int(row["job_count"]))]
    # A thousandth of a second apart: the order of the file is the order of arrival.
    timed = [
        TraceJob(job, tasks, place / 1000, runtime)
        for place, ((job, tasks), runtime) in enumerate(zip(jobs, runtimes, strict=True))
    ]
    nodes = [_node(f"node-{number:02}", cpu=128_000.0, gpus=float(gpus)) for number in range(count)]
    return Trace(path.stem, nodes, [queue("default")], timed, assumed=[f"{count} nodes with {gpus} GPUs"])


def _node(name: str, cpu: float, gpus: float = 0.0, marks: dict[str, str] | None = None) -> NodeSpec:
    allocatable = {"cpu": cpu, "memory": 1e12, "pods": 10 * _POD_SLOTS, labels.GPU_RESOURCE: gpus}
    return NodeSpec(name, allocatable, {labels.HOSTNAME: name, **(marks or {})}, gpu_count=int(gpus))


def _gang(
    name: str,
    where: str,
    pods: int,
    gpu: GpuRequest,
    *,
    cpu: float = 0.0,
    priority: int = 50,
    constraint: Constraint | None = None,
) -> tuple[JobSpec, list[TaskSpec]]:
    key = f"trace/{name}"
    spec = JobSpec(key, where, priority=priority, tree=gang(pods, constraint), name=name, namespace="trace")
    tasks = [
        TaskSpec(
            uid=f"{name}-{number}",
            job=key,
            name=f"{name}-{number}",
            namespace="trace",
            group="default",
            request={"cpu": cpu, "pods": 1.0},
            gpu=gpu,
        )
        for number in range(pods)
    ]
    return spec, tasks


def read_kueue(path: Path) -> Trace:
    """The generator of one of Kueue's performance tests: cohorts are queues above, cluster queues are queues."""
    try:
        document = read_yaml(path.read_bytes())
    except YamlError as error:
        raise TraceError(f"{path}: {error}") from None
    cohorts = document.get("cohorts") if isinstance(document, dict) else document
    if not isinstance(cohorts, list) or not cohorts:
        raise TraceError(f"{path}: neither a generator of Kueue's performance tests nor another trace")
    try:
        return _kueue(path, document if isinstance(document, dict) else {}, cohorts)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path}: not a generator of Kueue's performance tests: {error!r}") from error


def _kueue(path: Path, document: dict[str, Any], cohorts: list[dict[str, Any]]) -> Trace:
    queues, jobs, total = [], [], 0.0
    for cohort in cohorts:
        for place in range(cohort["count"]):
            above = f"{cohort['className']}-{place}"
            queues.append(queue(above))
            for kind in cohort["queuesSets"]:
                for number in range(kind["count"]):
                    name = f"{above}-{kind['className']}-{number}"
                    nominal = float(kind["nominalQuota"]) * 1000
                    limit = nominal + float(kind["borrowingLimit"]) * 1000 if "borrowingLimit" in kind else -1.0
                    queues.append(queue(name, above, cpu=Share(nominal, limit, 1.0)))
                    jobs += list(_kueue_jobs(name, kind["workloadsSets"]))
                    total += nominal
    nodes, topologies = _kueue_nodes(document.get("topology"), total)
    assumed = ["priorities from 100 on are preemptible"]
    if not topologies:
        assumed.append(f"{len(nodes)} nodes with {_KUEUE_NODE_CORES:g} cores, as much as all quotas together")
    return Trace(path.parent.name or path.stem, nodes, queues, jobs, topologies, resource=0, assumed=assumed)


def _kueue_jobs(where: str, sets: Iterable[dict[str, Any]]) -> Iterator[TraceJob]:
    for place, group in enumerate(sets):
        for number in range(group["count"]):
            for work in group["workloads"]:
                level = str(work.get("tasLevel", ""))
                required = level if work.get("tasConstraint") == "required" else ""
                constraint = Constraint("topology", required, "" if required else level) if level else None
                name = f"{where}-{place}-{work['className']}-{number}"
                spec, tasks = _gang(
                    name,
                    where,
                    int(work.get("podCount", 1)),
                    GpuRequest(),
                    cpu=float(work["request"]) * 1000,
                    priority=int(work.get("priority", 50)),
                    constraint=constraint,
                )
                arrival = number * group.get("creationIntervalMs", 0) / 1000
                yield TraceJob(spec, tasks, arrival, work["runtimeMs"] / 1000)


def _kueue_nodes(topology: dict[str, Any] | None, cores: float) -> tuple[list[NodeSpec], list[TopologySpec]]:
    if topology is None:
        count = max(int(-(-cores // (_KUEUE_NODE_CORES * 1000))), 1)
        return [_node(f"node-{number}", _KUEUE_NODE_CORES * 1000) for number in range(count)], []
    levels = topology["levels"]
    domains: list[dict[str, str]] = [{}]
    for level in levels[:-1]:
        domains = [
            {**above, level["nodeLabel"]: "-".join([*above.values(), f"{level['name']}{number}"])}
            for above in domains
            for number in range(level["count"])
        ]
    cpu = float(levels[-1]["capacity"]["cpu"]) * 1000
    nodes = [
        _node(f"{'-'.join(marks.values())}-{number}", cpu, marks=marks)
        for marks in domains
        for number in range(levels[-1]["count"])
    ]
    return nodes, [TopologySpec("topology", tuple((level["nodeLabel"], "") for level in levels))]
