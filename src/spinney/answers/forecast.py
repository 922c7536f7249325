"""When a waiting gang is expected to start: the cluster played forward by the known ends of what runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.model import ExpectedStart
from spinney.api import duration, labels
from spinney.api.core import Pod
from spinney.api.times import rfc3339
from spinney.scheduler.config import ALLOCATE
from spinney.scheduler.plan import Decision, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import TaskSpec
from spinney.scheduler.why.blocker import dominant, is_lasting

# Moments looked at: each costs a plan, which takes longer the more tasks there are.
_MOST_MOMENTS = 64
_LEAST_MOMENTS = 4
_MOST_TASKS = 100_000
_UNKNOWN = "nobody knows when the pods that are in its way end (activeDeadlineSeconds would tell)"
_NEVER = "it would wait even if everything else ended"


def forecast(cluster: Cluster) -> dict[str, ExpectedStart]:
    """The expected start of every waiting gang, by the key of its PodGroup; the state is the same afterwards."""
    schedule = cluster.schedule
    if schedule is None:
        return {}
    waiting = {key for key, job in schedule.state.jobs.items() if job.pending and not job.in_one_piece()}
    if not waiting:
        return {}
    player = _Player(cluster, schedule)
    try:
        return player.play(waiting)
    finally:
        player.undo()


class _Player:
    """Plays a state forward: tasks end, gangs are placed, until all of them are or no end is known."""

    def __init__(self, cluster: Cluster, schedule: Schedule) -> None:
        self._schedule = schedule
        # Later moments: places for who waits as others end; nobody is evicted for a guess.
        self._config = replace(schedule.config, actions=(ALLOCATE,))
        self._state = schedule.state
        self._before: dict[str, TaskSpec] = {}
        self._now = cluster.now.timestamp()
        pods = {pod.uid: pod for pod in cluster.pods}
        self._lifetimes = {uid: lifetime for uid, pod in pods.items() if (lifetime := lifetime_of(pod)) is not None}
        self._ends = _ends(pods, self._lifetimes, self._now)
        self._deadlines = {uid for uid, pod in pods.items() if pod.spec.active_deadline_seconds is not None}

    def play(self, waiting: set[str]) -> dict[str, ExpectedStart]:
        """The start of each gang; those that are never placed start at an unknown time."""
        starts: dict[str, ExpectedStart] = {}
        current, now = self._schedule.plan, self._now
        moments = max(_LEAST_MOMENTS, min(_MOST_MOMENTS, _MOST_TASKS // max(len(self._state.tasks), 1)))
        for turn in range(moments):
            placed = self._carry_out(current.decisions, now)
            for key in placed & waiting:
                starts.setdefault(key, self._expected(now))
            if waiting <= starts.keys() or not any(end > now for end in self._ends.values()):
                break
            now = self._next_moment(now, moments - turn)
            self._end(now)
            current = plan(self._state, self._config, now)
        for key in waiting - starts.keys():
            problem = dominant(self._schedule.plan.problems.get(key, ()))
            text = _NEVER if problem is not None and is_lasting(problem) else _UNKNOWN
            starts[key] = ExpectedStart(at=None, sureness="unknown", text=text)
        return starts

    def _next_moment(self, now: float, moments: int) -> float:
        """The next end; in a large cluster several ends are taken together, so that few plans are made."""
        ends = sorted(end for end in self._ends.values() if end > now)
        return ends[min(len(ends) // moments, len(ends) - 1)]

    def undo(self) -> None:
        """Describe every task as it was."""
        for spec in self._before.values():
            self._state.set_task(spec)

    def _carry_out(self, decisions: Sequence[Decision], now: float) -> set[str]:
        """Evict and place as the plan says; who is evicted does not come back in this forecast."""
        placed: set[str] = set()
        for decision in decisions:
            if decision.kind == "evict":
                self._ends.pop(decision.task, None)
                self._set(replace(self._state.tasks[decision.task].spec, status=st.SUCCEEDED))
        for decision in decisions:
            if decision.kind == "evict":
                continue
            uid, spec = decision.task, self._state.tasks[decision.task].spec
            self._set(replace(spec, status=st.RUNNING, node=decision.node, gpu_groups=decision.gpu_groups))
            placed.add(decision.job)
            if uid in self._lifetimes:
                self._ends[uid] = now + self._lifetimes[uid]
        return placed

    def _end(self, now: float) -> None:
        for uid, end in list(self._ends.items()):
            if end <= now:
                del self._ends[uid]
                if uid in self._state.tasks:
                    self._set(replace(self._state.tasks[uid].spec, status=st.SUCCEEDED))

    def _set(self, spec: TaskSpec) -> None:
        self._before.setdefault(spec.uid, self._state.tasks[spec.uid].spec)
        self._state.set_task(spec)

    def _expected(self, at: float) -> ExpectedStart:
        if at == self._now:
            return ExpectedStart(at=rfc3339(_moment(at)), sureness="exact", text="with the next cycle")
        ends = "the pods in its way end by their deadlines, or sooner"
        if not self._deadlines:
            ends = "the run times of the pods in its way are known by annotation"
        return ExpectedStart(at=rfc3339(_moment(at)), sureness="estimate", text=ends)


def lifetime_of(pod: Pod) -> float | None:
    """How long a pod runs once started: by annotation, else until its deadline; None where neither says."""
    text = pod.metadata.annotations.get(labels.RUN_FOR, "")
    try:
        stated = duration.seconds(text) if text else None
    except ValueError:
        stated = None
    limit = pod.spec.active_deadline_seconds
    if stated is None:
        return None if limit is None else float(limit)
    return stated if limit is None else min(stated, float(limit))


def _ends(pods: Mapping[str, Pod], lifetimes: Mapping[str, float], now: float) -> dict[str, float]:
    """When each running pod with a known lifetime ends; one that is overdue ends any moment."""
    ends: dict[str, float] = {}
    for uid, lifetime in lifetimes.items():
        pod = pods[uid]
        if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
            started = pod.status.start_time.timestamp() if pod.status.start_time is not None else now
            ends[uid] = max(started + lifetime, now + 1.0)
    return ends


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
