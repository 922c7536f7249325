"""Queues: their quotas, limits and fair shares, what they use, how many gangs wait, and what is wrong with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from spinney.answers.cluster import Cluster
from spinney.answers.model import Amounts, Listing, Queue
from spinney.api import kai
from spinney.api.numbers import number
from spinney.api.times import rfc3339
from spinney.scheduler.intake.cluster_objects import queue_spec
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import QueueSpec, Share
from spinney.scheduler.state.tasks import Triple
from spinney.scheduler.why.queue_reports import QueueReport, queue_reports

_RESOURCES = (("gpu", "GPUs", 1.0), ("cpu", "cores", 1000.0), ("memory", "GB", 1e9))


def queues(cluster: Cluster) -> Listing[Queue]:
    """Every queue, parents before children; those without their parent come last."""
    at, partial = rfc3339(cluster.now), cluster.partial
    if cluster.schedule is None:
        return Listing(at=at, items=[_from_status(queue) for queue in cluster.queues], partial=partial)
    state, plan = cluster.schedule.state, cluster.schedule.plan
    waiting, running = _counts(state)
    items = [
        _from_report(report, waiting[report.name], running[report.name], _problem(state.queue_specs, report.name))
        for report in queue_reports(state, plan)
    ]
    return Listing(at=at, items=items, partial=partial)


def _from_report(report: QueueReport, waiting: int, running: int, problem: str | None) -> Queue:
    return Queue(
        name=report.name,
        parent=report.parent or None,
        depth=report.depth,
        priority=report.priority,
        quota=amounts_of(report.quota),
        limit=amounts_of(report.limit),
        fair_share=amounts_of(report.fair_share),
        allocated=amounts_of(report.allocated),
        borrowed=amounts_of(report.borrowed),
        requested=amounts_of(report.pending),
        waiting=waiting,
        running=running,
        problem=problem,
    )


def _from_status(queue: kai.Queue) -> Queue:
    """A queue by its own object, where too little may be read to know more."""
    spec = queue_spec(queue)
    return Queue(
        name=queue.name,
        parent=spec.parent or None,
        depth=0,
        priority=spec.priority,
        quota=_shares(spec, "quota"),
        limit=_shares(spec, "limit"),
        fair_share=Amounts(),
        allocated=Amounts(),
        borrowed=Amounts(),
        requested=Amounts(),
        problem=None,
    )


def _shares(spec: QueueSpec, field: str) -> Amounts:
    return amounts_of((getattr(spec.cpu, field), getattr(spec.memory, field), getattr(spec.gpu, field)))


def amounts_of(triple: Triple) -> Amounts:
    """CPU, memory and GPUs of the scheduler as an answer."""
    cpu, memory, gpu = triple
    return Amounts(
        gpu=None if gpu < 0 else float(gpu),
        cpu=None if cpu < 0 else cpu / 1000,
        memory=None if memory < 0 else float(memory),
    )


def _counts(state: State) -> tuple[Counter[str], Counter[str]]:
    """Gangs that wait and gangs that run, in each queue and all above it."""
    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for job in state.jobs.values():
        names = _upwards(job.spec.queue, state.queue_specs)
        if job.pending or any(job.gated):
            waiting.update(names)
        elif any(job.active):
            running.update(names)
    return waiting, running


def _upwards(name: str, specs: Mapping[str, QueueSpec]) -> list[str]:
    path: list[str] = []
    while name in specs and name not in path:
        path.append(name)
        name = specs[name].parent
    return path


def _problem(specs: Mapping[str, QueueSpec], name: str) -> str | None:
    """What keeps a queue from working as its object says; None if nothing does."""
    path = _upwards(name, specs)
    top = specs[path[-1]]
    if top.parent in path:
        return f"queue {top.parent} is its own ancestor: nothing runs below it"
    if top.parent:
        whose = "its parent" if top.name == name else f"the parent of {top.name} above it,"
        return f"{whose} {top.parent} does not exist: nothing runs in it"
    spec = specs[name]
    over = [_over(label, unit, size, getattr(spec, label)) for label, unit, size in _RESOURCES]
    return "; ".join(filter(None, over)) or None


def _over(label: str, unit: str, size: float, share: Share) -> str:
    if share.limit < 0 or (share.quota >= 0 and share.quota <= share.limit):
        return ""
    quota = "unlimited" if share.quota < 0 else f"{number(share.quota / size)} {unit}"
    return f"its {label} quota ({quota}) is above its limit of {number(share.limit / size)}: the limit holds"
