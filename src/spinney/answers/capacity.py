"""Idle GPUs by the reason why no pod uses them: in the cluster, in each rack, for each queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.model import Capacity, CapacityPart, CapacityShare
from spinney.api.numbers import number
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import NoDomain, OverLimit, OverQuota, QueueKept
from spinney.scheduler.state.refusal import Code
from spinney.scheduler.state.tasks import CPU, GPU, MEMORY, TaskClass, Vector

_TEXTS = {
    "free": "nobody asks for them",
    "cpu": "the pods that wait find no CPU cores beside them",
    "memory": "the pods that wait find no memory beside them",
    "topology": "the gangs that wait need more of them in one domain",
    "quota": "the queues of the gangs that wait may not use them",
    "fragmentation": "the pods that wait need more of them on one node",
    "claimed": "they are being freed, or kept for a gang",
    "cordoned": "their nodes are cordoned",
    "not-ready": "their nodes are not ready",
}
# From the cause that is easiest to remove to the hardest.
_EASIEST_FIRST = ("cpu", "memory", "fragmentation", "topology", "quota")


def capacity(cluster: Cluster) -> Capacity:
    """Total, used and idle GPUs with the reasons; zeros where too little may be read to plan."""
    if cluster.schedule is None:
        return Capacity(total=0.0, used=0.0, idle=0.0)
    state = cluster.schedule.state
    rows = [int(row) for row in np.flatnonzero(state.nodes.live) if state.nodes.allocatable[row, GPU] > 0]
    demand = _demand(cluster.schedule)
    idle_for = {row: _reason(state, demand, row) for row in rows}
    whole = _share("", state, rows, idle_for)
    return Capacity(
        total=whole.total,
        used=whole.used,
        idle=whole.idle,
        by_reason=whole.by_reason,
        by_rack=_by_rack(cluster, state, rows, idle_for),
        by_queue=_by_queue(cluster.schedule),
    )


def reason_of_node(cluster: Cluster, name: str) -> str:
    """Why the idle GPUs of a node are idle, in a sentence; empty if it has none."""
    if cluster.schedule is None or name not in cluster.schedule.state.nodes.rows:
        return ""
    state = cluster.schedule.state
    row = state.nodes.rows[name]
    idle = _idle(state, row)
    return f"{_text(_reason(state, _demand(cluster.schedule), row), idle)}." if idle > 0 else ""


def _by_rack(cluster: Cluster, state: State, rows: Sequence[int], idle_for: dict[int, str]) -> list[CapacityShare]:
    if not cluster.levels:
        return []
    racks: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        domain = cluster.domain_of(state.nodes.name(row))
        racks[".".join(domain[level] for level in cluster.levels if level in domain) or "none"].append(row)
    return [_share(name, state, members, idle_for) for name, members in sorted(racks.items())]


def _by_queue(schedule: Schedule) -> list[CapacityShare]:
    """What each queue leaves unused of its fair share, and why its gangs do not take it."""
    state, shares = schedule.state, []
    for name, index in state.queues.index.items():
        if not state.queues.leaf(index):
            continue
        fair = schedule.plan.fair_share.get(name, (0.0, 0.0, 0.0))[2]
        used = state.charged[index][2]
        idle = max(fair - used, 0.0)
        reason = _queue_reason(schedule, name)
        parts = [CapacityPart(reason=reason, gpus=idle, nodes=0, text=_TEXTS[reason])] if idle else []
        shares.append(CapacityShare(name=name, total=fair, used=used, idle=idle, by_reason=parts))
    return shares


def _queue_reason(schedule: Schedule, queue: str) -> str:
    for job in _waiting(schedule):
        if job.spec.queue == queue:
            return _gang_reason(schedule, job)
    return "free"


def _share(name: str, state: State, rows: Sequence[int], idle_for: dict[int, str]) -> CapacityShare:
    total = float(sum(state.nodes.allocatable[row, GPU] for row in rows))
    by_reason: dict[str, list[float]] = {}
    for row in rows:
        idle = _idle(state, row)
        if idle > 0:
            sums = by_reason.setdefault(idle_for[row], [0.0, 0.0])
            sums[0] += idle
            sums[1] += 1
    parts = [
        CapacityPart(reason=reason, gpus=round(sums[0], 3), nodes=int(sums[1]), text=_text(reason, sums[0]))
        for reason, sums in sorted(by_reason.items(), key=lambda each: -each[1][0])
    ]
    idle_gpus = round(sum(part.gpus for part in parts), 3)
    return CapacityShare(name=name, total=total, used=round(total - idle_gpus, 3), idle=idle_gpus, by_reason=parts)


def _text(reason: str, gpus: float) -> str:
    are = "GPU is idle" if gpus == 1 else "GPUs are idle"
    return f"{number(gpus)} {are}: {_TEXTS[reason]}"


def _idle(state: State, row: int) -> float:
    """Idle GPUs of a node, with the idle parts of shared devices."""
    return max(float(state.nodes.idle[row, GPU]), 0.0) + state.gpus.leftover(row)[0]


@dataclass(frozen=True)
class _Demand:
    """The gangs that wait for GPUs (why, and their task classes), and the nodes that a plan has claimed."""

    gangs: Sequence[tuple[str, Sequence[TaskClass]]]
    claimed: frozenset[str]


def _demand(schedule: Schedule) -> _Demand:
    kinds: dict[tuple[str, tuple[int, ...]], tuple[str, list[TaskClass]]] = {}
    for job in _waiting(schedule):
        classes = {task.cls.id: task.cls for task in job.all_tasks() if task.cls.gpus}
        reason = _gang_reason(schedule, job)
        kinds[reason, tuple(sorted(classes))] = (reason, list(classes.values()))
    kept = schedule.plan.reservations
    nodes = {name for reservation in kept.held for name in reservation.nodes} if kept is not None else set()
    nodes |= {decision.node for decision in schedule.plan.decisions if decision.kind in ("bind", "wait")}
    return _Demand(list(kinds.values()), frozenset(nodes))


def _waiting(schedule: Schedule) -> list[Job]:
    """Gangs with pending pods that ask for GPUs and that this plan does not place."""
    placed = {decision.job for decision in schedule.plan.decisions}
    return [
        job
        for job in schedule.state.jobs.values()
        if job.pending and job.key not in placed and any(task.cls.gpus or task.cls.memory for task in job.all_tasks())
    ]


def _reason(state: State, demand: _Demand, row: int) -> str:
    """Why the idle GPUs of a node are idle; of several waiting gangs, the one with the easiest cause decides."""
    spec = state.nodes.specs[row]
    if spec is not None and spec.blocked is not None:
        return "cordoned" if spec.blocked.code == Code.NODE_UNSCHEDULABLE else "not-ready"
    if spec is not None and spec.name in demand.claimed:
        return "claimed"
    if not demand.gangs:
        return "free"
    causes = {_cause(state.nodes.idle[row], reason, classes) for reason, classes in demand.gangs}
    return min(causes, key=_EASIEST_FIRST.index)


def _cause(idle: Vector, reason: str, classes: Sequence[TaskClass]) -> str:
    """Why a gang cannot use a node's idle GPUs: what the node lacks, else what holds the whole gang."""
    if reason == "quota":
        return reason
    lacks = [_lack(idle, cls.request) for cls in classes]
    return min(lacks, key=_EASIEST_FIRST.index) if lacks and all(lacks) else reason


def _lack(idle: Vector, request: Vector) -> str:
    """Which resource keeps a task off a node that has idle GPUs; empty if it would fit."""
    if request[GPU] > idle[GPU]:
        return "fragmentation"
    if request[CPU] > idle[CPU]:
        return "cpu"
    return "memory" if request[MEMORY] > idle[MEMORY] else ""


def _gang_reason(schedule: Schedule, job: Job) -> str:
    problems = schedule.plan.problems.get(job.key, ())
    if any(isinstance(problem, OverLimit | OverQuota | QueueKept) for problem in problems):
        return "quota"
    if any(isinstance(problem, NoDomain) for problem in problems):
        return "topology"
    return "fragmentation"
