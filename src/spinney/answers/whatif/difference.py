"""Answer a what-if: play the cluster forward with and without the changes, and compare."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.evictions import right_of
from spinney.answers.model import (
    Amounts,
    Displacement,
    ExpectedStart,
    Placement,
    Reason,
    ShareChange,
    StillWaiting,
    WhatIf,
    WorkloadRef,
)
from spinney.answers.queues import amounts_of
from spinney.answers.whatif.applying import Applied, Applier, Expand, refuse_workloads
from spinney.answers.whatif.changes import Change, ChangeError, sentence_of
from spinney.answers.whatif.forecast import expected_starts, latest_start, player_of, waiting_gangs
from spinney.answers.whatif.playing import Departure, origin_of
from spinney.answers.whatif.trial import Trial, trial
from spinney.answers.why import reason_of
from spinney.answers.workloads import parts_of
from spinney.api.times import rfc3339
from spinney.scheduler.config import Config
from spinney.scheduler.intake.cluster_objects import job_key
from spinney.scheduler.plan import Plan
from spinney.scheduler.state import status as st
from spinney.scheduler.why.advice import counted
from spinney.scheduler.why.blocker import dominant, sentence
from spinney.scheduler.why.queue_reports import queue_reports
from spinney.scheduler.why.texts import sentence_case

# How long rules about time, such as the grace period of stale gangs, are followed.
_SOON = 180.0
_WAITS = Reason(code="Waiting", text="It waits for its turn.")


Workloads = Mapping[str, WorkloadRef]


@dataclass(frozen=True)
class Placed:
    """A task that was placed: its node, its gang and its GPUs."""

    node: str
    job: str
    gpus: float


@dataclass(frozen=True)
class Future:
    """What the scheduler does with a cluster that nobody changes any more."""

    last: Plan
    started: Mapping[str, float]
    placed: Mapping[str, Placed]
    departures: Mapping[str, Departure]
    waiting: frozenset[str]
    # Tasks that left their node, and whose successor waits.
    returning: frozenset[str]
    starts: Mapping[str, ExpectedStart]
    # Fair share and allocation of each queue.
    shares: Mapping[str, tuple[Amounts, Amounts]]

    def node_of(self, uid: str) -> str | None:
        """Where a task, or the one that took its place, ends up."""
        return next((placed.node for each, placed in self.placed.items() if origin_of(each) == uid), None)


def whatif(cluster: Cluster, changes: Sequence[Change], expand: Expand = refuse_workloads) -> WhatIf:
    """What would be different with the changes; the cluster is the same afterwards.

    A change that names something unknown is a `ChangeError`, and so is a cluster of which too little may be read.
    """
    schedule = cluster.schedule
    if schedule is None:
        raise ChangeError("a what-if needs to read nodes, queues, pods and PodGroups of the whole cluster")
    with trial(schedule.state) as untouched:
        before = _future(cluster, schedule.config, untouched, _first(schedule.plan))
    with trial(schedule.state) as changed:
        applied = _applied(cluster, schedule, changed, changes, expand)
        after = _future(applied.cluster, applied.config, changed, None, applied.leaving)
    difference = _difference(applied.cluster, changes, before, after)
    return replace(difference, assumed=[sentence_case(each) for each in dict.fromkeys(applied.assumed)])


def _first(planned: Plan) -> Plan | None:
    """The plan to begin with; None to plan again with reservations, so that gangs keep the capacity they free."""
    evicts = any(decision.kind == "evict" for decision in planned.decisions)
    return None if evicts and planned.reservations is None else planned


def _applied(
    cluster: Cluster, schedule: Schedule, changed: Trial, changes: Sequence[Change], expand: Expand
) -> Applied:
    applier = Applier(cluster, schedule, changed, expand)
    for change in changes:
        applier.apply(change)
    return applier.result


def _future(
    cluster: Cluster, config: Config, changed: Trial, first: Plan | None, leaving: Mapping[str, str] | None = None
) -> Future:
    player = player_of(cluster, config, changed)
    if cluster.schedule is not None:
        player.remember(cluster.schedule.plan.reservations)
        if cluster.schedule.picture is not None:
            player.volume_nodes = cluster.schedule.picture.volume_nodes(cluster.pods)
    for uid, why in (leaving or {}).items():
        player.displace(uid, why)
    last = player.play_deadlines(player.settle(first), player.now + _SOON)
    state = changed.state
    started, departures, waiting = dict(player.started), dict(player.departures), waiting_gangs(state)
    placed = {
        uid: Placed(node, state.tasks[uid].spec.job, state.tasks[uid].cls.triple[2])
        for uid, node in player.placed.items()
        if uid in state.tasks
    }
    returning = frozenset(
        origin_of(uid) for uid, task in state.tasks.items() if uid != origin_of(uid) and task.status == st.PENDING
    )
    shares = {
        report.name: (amounts_of(report.fair_share), amounts_of(report.allocated))
        for report in queue_reports(state, last)
    }
    starts = expected_starts(player, last, waiting, cluster.pods)
    return Future(last, started, placed, departures, frozenset(waiting), returning, starts, shares)


def _difference(cluster: Cluster, changes: Sequence[Change], before: Future, after: Future) -> WhatIf:
    workload_of = {
        job_key(group.namespace, group.name): ref for ref, parts in parts_of(cluster).items() for group in parts.groups
    }
    starts = list(_starts(cluster, workload_of, before, after))
    displaced = list(_displaced(workload_of, before, after))
    evicted = [each for each in displaced if each.to is None]
    moved = [each for each in displaced if each.to is not None]
    waiting = list(_still_waiting(cluster, workload_of, before, after))
    parts = [
        f"{counted(len(starts), 'workload')} would start" if starts else "nothing more would start",
        f"{counted(len(evicted), 'pod')} would be evicted" if evicted else "",
        f"{counted(len(moved), 'pod')} would move" if moved else "",
        f"{counted(len(waiting), 'workload')} would wait" if waiting else "",
    ]
    return WhatIf(
        changes=[sentence_of(change) for change in changes],
        starts=starts,
        evicted=evicted,
        moved=moved,
        shares=list(_share_changes(before, after)),
        still_waiting=waiting,
        text=sentence_case(", ".join(filter(None, parts))),
    )


def _starts(cluster: Cluster, workload_of: Workloads, before: Future, after: Future) -> Iterable[Placement]:
    """Pods that only the changes let start, by workload; those that only move are left out."""
    newly: dict[WorkloadRef, list[Placed]] = defaultdict(list)
    for uid, placed in after.placed.items():
        if uid not in before.placed and origin_of(uid) not in after.departures and placed.job in workload_of:
            newly[workload_of[placed.job]].append(placed)
    queue_of = {job_key(group.namespace, group.name): group.spec.queue for group in cluster.groups}
    for ref, pods in sorted(newly.items(), key=lambda each: (each[0].namespace, str(each[0]))):
        gangs = sorted({placed.job for placed in pods})
        last = max(after.started[key] for key in gangs)
        yield Placement(
            workload=ref,
            nodes=sorted({placed.node for placed in pods}),
            queue=queue_of.get(gangs[0], ""),
            pods=len(pods),
            pods_by_node=dict(sorted(Counter(placed.node for placed in pods).items())),
            gpus=sum(placed.gpus for placed in pods),
            expected_start=_start(cluster, last),
            before=latest_start(before.starts, gangs),
        )


def _displaced(workload_of: Workloads, before: Future, after: Future) -> Iterable[Displacement]:
    """Pods that leave their node only with the changes, or find no other one then."""
    for uid, departure in after.departures.items():
        to = after.node_of(uid)
        if uid in before.departures and (before.node_of(uid) is None or to is not None):
            continue
        spec = departure.spec
        yield Displacement(
            pod=f"{spec.namespace}/{spec.name}",
            workload=workload_of.get(spec.job),
            beneficiary=workload_of.get(departure.beneficiary),
            node=spec.node,
            to=to,
            right=right_of(departure.action),
            text=f"{_reason_to_leave(departure, workload_of)}, and {_where_it_goes(departure, to, after)}",
            gpus=float(spec.gpu.whole) or spec.gpu.portion * spec.gpu.devices,
        )


def _reason_to_leave(departure: Departure, workload_of: Workloads) -> str:
    reasons = {
        "drain": "its node is drained",
        "node-removed": "its node is removed",
        "stalegangeviction": "too little of its gang is left",
    }
    beneficiary = workload_of.get(departure.beneficiary)
    for_whom = f"it makes room for {beneficiary}" if beneficiary is not None else f"by {departure.action}"
    return reasons.get(departure.action, for_whom)


def _where_it_goes(departure: Departure, to: str | None, after: Future) -> str:
    if to is not None:
        return f"it goes to {to}"
    if departure.spec.uid not in after.returning:
        return "no controller creates it again"
    problem = dominant(after.last.problems.get(departure.spec.job, ()))
    return f"it waits: {sentence(problem)}" if problem is not None else "it waits"


def _share_changes(before: Future, after: Future) -> Iterable[ShareChange]:
    nothing = (Amounts(), Amounts())
    for name in dict.fromkeys((*before.shares, *after.shares)):
        old, new = before.shares.get(name, nothing), after.shares.get(name, nothing)
        if old != new:
            yield ShareChange(queue=name, before=old[0], after=new[0], allocated_before=old[1], allocated_after=new[1])


def _still_waiting(cluster: Cluster, workload_of: Workloads, before: Future, after: Future) -> Iterable[StillWaiting]:
    gangs: dict[WorkloadRef, list[str]] = defaultdict(list)
    for key in sorted(after.waiting & workload_of.keys()):
        gangs[workload_of[key]].append(key)
    jobs = cluster.schedule.state.jobs if cluster.schedule is not None else {}
    for ref, keys in gangs.items():
        problems = [problem for key in keys if (problem := dominant(after.last.problems.get(key, ()))) is not None]
        yield StillWaiting(
            workload=ref,
            why=reason_of(problems[0]) if problems else _WAITS,
            expected_start=latest_start(after.starts, keys),
            before=latest_start(before.starts, keys),
            worse=any(key in jobs and key not in before.waiting for key in keys),
        )


def _start(cluster: Cluster, at: float) -> ExpectedStart:
    now = cluster.now.timestamp()
    moment = rfc3339(datetime.fromtimestamp(at, UTC))
    text = "with the next cycles" if at <= now else "once rules about time allow it"
    return ExpectedStart(at=moment, sureness="exact", text=text)
