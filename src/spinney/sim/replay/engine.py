"""Replay a trace: the planner, driven by arrivals and ends, and what it does with the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from spinney.answers.whatif.playing import Lifetimes, Player
from spinney.scheduler.config import Config
from spinney.scheduler.deadlines import next_deadline
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import JobSpec, TaskSpec
from spinney.scheduler.state.tasks import Triple
from spinney.sim.replay.trace import Trace, TraceJob, arrive

# When a replay begins, in seconds since the epoch: after the moments that rules take for "never".
START = 1e9
# Moments that nothing came of, after which what waits is taken to wait for ever.
_MOST_IDLE = 1000


@dataclass(frozen=True)
class Sample:
    """A stretch of time: when it began, how long it lasted, and what was used, stranded and waiting meanwhile."""

    at: float
    seconds: float
    used: float
    capacity: float
    stranded: float
    waiting: int


@dataclass
class Replayed:
    """What happened in a replay; times are in seconds from its beginning."""

    started: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    evictions: int = 0
    # GPU-seconds that evicted tasks had run in vain.
    lost: float = 0.0
    # By queue: what it held, and what would have been fair, over time.
    held: dict[str, float] = field(default_factory=dict)
    fair: dict[str, float] = field(default_factory=dict)
    plans: int = 0


class _Direct:
    """An `Editor` that writes to a state without undo."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.set_task: Callable[[TaskSpec], None] = state.set_task
        self.set_status: Callable[[str, int], None] = state.set_status
        self.drop_task: Callable[[str], None] = state.drop_task
        self.set_job: Callable[[JobSpec], None] = state.set_job


class Replay:
    """One replay of a trace under one configuration."""

    def __init__(self, trace: Trace, config: Config, every: float) -> None:
        self._trace = trace
        self._every = every
        state = trace.state()
        state.set_flat(not config.full_hierarchy)
        self.player = Player(_Direct(state), config, START, Lifetimes(), lambda uid: True)
        self.state = state
        self.result = Replayed()
        self._jobs: dict[str, TraceJob] = {}
        self._arrivals = sorted(trace.jobs, key=lambda job: job.arrival)
        self._next = 0
        self._idle = 0
        self._fair: dict[str, Triple] = {}

    def run(self, progress: Callable[[int], None] = lambda ended: None) -> Replayed:
        """Play to the end: until everything has run, or what is left cannot."""
        while not self.is_stuck() and (moment := self.next_moment()) is not None:
            self.step(moment)
            progress(len(self.result.ended))
        return self.result

    def is_stuck(self) -> bool:
        """Whether nothing has arrived, started or ended for so long that what waits does so for ever."""
        return self._idle >= _MOST_IDLE

    def step(self, moment: float) -> Sequence[TraceJob]:
        """Go to a moment: tasks end, jobs arrive, the scheduler plans; returns the jobs that arrived."""
        before = (self._next, len(self.result.started), len(self.result.ended))
        self._account(moment - self.player.now)
        ending = [uid for uid, end in self.player.ends.items() if end <= moment]
        jobs = {self.state.tasks[uid].spec.job for uid in ending}
        self.player.advance(moment)
        self._drop_ended(jobs)
        arrived = self._arrive()
        self.result.plans += 1
        self._fair = self.player.cycle().fair_share
        self._count_evictions()
        for key, at in self.player.started.items():
            self.result.started.setdefault(key, at - START)
        same = before == (self._next, len(self.result.started), len(self.result.ended))
        self._idle = self._idle + 1 if same else 0
        return arrived

    def next_moment(self) -> float | None:
        """The next arrival, end or deadline, None for none; several within a short while are taken together."""
        moments = list(self.player.ends.values())
        if self._next < len(self._arrivals):
            moments.append(START + self._arrivals[self._next].arrival)
        now = self.player.now
        if self.state.jobs and (deadline := next_deadline(self.state, self.player.config, now, START)) is not None:
            moments.append(deadline)
        if not moments:
            return None
        return max(min(moments), now + self._every)

    def _arrive(self) -> list[TraceJob]:
        arrived: list[TraceJob] = []
        while self._next < len(self._arrivals) and START + self._arrivals[self._next].arrival <= self.player.now:
            job = self._arrivals[self._next]
            self._next += 1
            self._jobs[job.spec.key] = job
            lifetimes = arrive(self.state, job, START)
            self.player.know(lifetimes)
            if lifetimes.ends:
                self.result.started[job.spec.key] = job.arrival
            arrived.append(job)
        return arrived

    def _drop_ended(self, keys: Collection[str]) -> None:
        for key in keys:
            job = self.state.jobs.get(key)
            if job is None or any(task.status != st.SUCCEEDED for task in job.all_tasks()):
                continue
            for task in list(job.all_tasks()):
                self.state.drop_task(task.key)
            self.state.drop_job(key)
            self.result.ended[key] = self.player.now - START

    def _count_evictions(self) -> None:
        for departure in self.player.evictions[self.result.evictions :]:
            ran = departure.at - self.player.bound.get(departure.spec.uid, departure.at)
            self.result.lost += ran * self.state.classes.of(departure.spec).quota
        self.result.evictions = len(self.player.evictions)

    def _account(self, seconds: float) -> None:
        if seconds <= 0:
            return
        nodes, resource = self.state.nodes, self._trace.resource
        rows = np.flatnonzero(nodes.live)
        total, idle = nodes.allocatable[rows, resource], nodes.idle[rows, resource]
        queues = self.state.queues
        waiting = sum(bool(job.pending) for job in self.state.jobs.values())
        partly = (idle > 0) & (idle < total)
        self.result.samples.append(
            Sample(
                self.player.now - START,
                seconds,
                float((total - idle).sum()),
                float(total.sum()),
                float(idle[partly].sum()),
                waiting,
            )
        )
        for name, row in queues.index.items():
            if queues.leaf(row):
                self.result.held[name] = self.result.held.get(name, 0.0) + self.state.charged[row][resource] * seconds
                fair = self._fair.get(name, (0.0, 0.0, 0.0))[resource]
                self.result.fair[name] = self.result.fair.get(name, 0.0) + fair * seconds
