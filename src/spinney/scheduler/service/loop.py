"""The scheduler's loop: wait for a change, plan, start the writes; the next cycle does not wait for them."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog

from spinney.api import labels, reasons
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime
from spinney.scheduler.config import Config
from spinney.scheduler.deadlines import next_deadline
from spinney.scheduler.plan import Decision, Plan
from spinney.scheduler.plugins.minruntime import longest_runtime
from spinney.scheduler.result import Turn
from spinney.scheduler.service.binds import Binds
from spinney.scheduler.service.decision_log import DecisionLog
from spinney.scheduler.service.default_scheduler import is_stand_in
from spinney.scheduler.service.evictions import Evictions, Victim
from spinney.scheduler.service.failing_gangs import FailingGangs
from spinney.scheduler.service.feed import Feed
from spinney.scheduler.service.group_notes import GroupNotes
from spinney.scheduler.service.metrics import CycleMetrics, Timing
from spinney.scheduler.service.partial_decisions import PartialDecisions
from spinney.scheduler.service.prometheus_usage import PrometheusUsage
from spinney.scheduler.service.reports import Reports
from spinney.scheduler.service.saved_record import SavedRecord, UnfinishedEvictions
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.share.usage import UsageRecord
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.tasks import Triple
from spinney.scheduler.stopwatch import Stopwatch

_log = structlog.get_logger("spinney.scheduler")

# Events come in bursts: a short wait lets one cycle answer all of them.
_GATHER_SECONDS = 0.02
# What a cycle decided comes back as events, and new pods trickle in: they are answered together, ten times a second.
_REST_SECONDS = 0.08
# How often recent use is worked into fair shares.
_USAGE_SECONDS = 60.0

Think = Callable[[Callable[[], Plan]], Coroutine[Any, Any, Plan]]


async def think_in_thread(work: Callable[[], Plan]) -> Plan:
    """Plan in a thread, so that a long plan blocks neither leases nor watches."""
    return await asyncio.to_thread(work)


async def think_inline(work: Callable[[], Plan]) -> Plan:
    """Plan in the event loop: in virtual time nothing else runs meanwhile."""
    return work()


class Scheduler:
    """Plans whenever something changed, and carries the plans out."""

    def __init__(
        self,
        runtime: Runtime,
        shard: Shard,
        config: Config,
        think: Think,
        *,
        stand_in: bool = False,
        devices: bool = False,
        zones: bool = False,
        usage: UsageRecord | PrometheusUsage | None = None,
        decision_log: DecisionLog | None = None,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._think = think
        self._wake = asyncio.Event()
        self.state = State()
        self.state.flat = not config.full_hierarchy
        events = Recorder(runtime.client, runtime.clock, shard.scheduler_name)
        feed = self.feed = Feed(
            runtime,
            self.state,
            shard,
            self._wake.set,
            stand_in=stand_in,
            devices=devices,
            zones=zones,
            stuck_after=config.stuck_after,
            warn=lambda item, message: events.event(item, "Warning", reasons.UNSCHEDULABLE, message),
        )
        views, intentions = feed.views, feed.intentions
        self._notes = GroupNotes(runtime.client, views.groups, self._wake.set)
        self._partial = PartialDecisions(views.requests, intentions, shard, self._wake.set)
        self._binds = Binds(
            runtime, shard, self.state, views, intentions=intentions, backoff=feed.backoff, claims=feed.claims
        )
        self._evictions = Evictions(runtime, shard, self.state, views, intentions)
        self._reports = Reports(runtime, shard, self.state, views)
        self._decision_log = decision_log
        self._usage = usage
        self._usage_refreshed = float("-inf")
        if usage is not None:
            feed.descriptions.usage_of = usage.share
        self.saved = SavedRecord(runtime, shard, usage if isinstance(usage, UsageRecord) else None)
        self._metrics = CycleMetrics(shard.pool, views.queues)
        self._failing = FailingGangs()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.cycles = 0
        # The order in which the last cycle took gangs; None before the first.
        self.turns: Sequence[Turn] | None = None

    async def run(self) -> None:
        """Run a cycle whenever something changed, until cancelled."""
        await self.feed.synced()
        await self.saved.load()
        self.feed.apply()
        self.state.departures.restore(self.saved.freed)
        self._resume_evictions()
        if isinstance(self._usage, PrometheusUsage):
            self._start(self._usage.run())
        self._runtime.ready()
        self._wake.set()
        if self.feed.stand_in is not None:
            self._start(self.feed.stand_in.run())
        try:
            while True:
                await self._something_changed()
                await asyncio.sleep(_GATHER_SECONDS)
                self._wake.clear()
                await self.cycle()
                await asyncio.sleep(_REST_SECONDS)
        finally:
            for task in self._tasks:
                task.cancel()

    async def _something_changed(self) -> None:
        now = self._runtime.clock.now().timestamp()
        deadline = next_deadline(self.state, self._config, now, self.saved.reservations.since)
        if self._usage is not None:
            # Shares move with time alone where they depend on past use.
            deadline = min(deadline or math.inf, now + _USAGE_SECONDS)
        try:
            async with asyncio.timeout(None if deadline is None else deadline - now):
                await self._wake.wait()
        except TimeoutError:
            return

    async def cycle(self) -> None:
        """One plan and the start of its writes."""
        for request in (*self.feed.take_failed_requests(), *self._partial.take()):
            self._start(self._binds.remove(request))
        self._start(self._notes.write_missing())
        loop = asyncio.get_running_loop()
        started = loop.time()
        self.feed.apply()
        now = self._runtime.clock.now().timestamp()
        self._account(now)
        described = loop.time()
        kept, stopwatch = self.saved.reservations, Stopwatch(loop.time)
        plan = await self._think(lambda: self._failing.plan(self.state, self._config, now, kept, stopwatch))
        if self._decision_log is not None:
            self._decision_log.add(self.state, self._config, kept, self._failing.errors, plan)
        planned = loop.time()
        self.cycles += 1
        self.turns = plan.turns
        self._carry_out(plan)
        self.saved.record(self.state, plan, now)
        reported = loop.time()
        timing = Timing(
            described - started, reported - planned, reported - started, stopwatch.plugins, stopwatch.actions
        )
        self._metrics.count(self.state, plan, now, timing)
        self._start(self._reports.report(plan))

    def _account(self, now: float) -> None:
        """Record what queues held since the last cycle, and update their usage once a minute."""
        if isinstance(self._usage, UsageRecord):
            held = {name: _triple(self.state.charged[row]) for name, row in self.state.queues.index.items()}
            nodes = self.state.nodes
            self._usage.add(now, held, _triple(nodes.allocatable[nodes.live][:, :3].sum(axis=0).tolist()))
        if self._usage is not None and now - self._usage_refreshed >= _USAGE_SECONDS:
            self._usage_refreshed = now
            self.feed.descriptions.queues_by_usage()

    def _carry_out(self, plan: Plan) -> None:
        binds: dict[str, list[Decision]] = defaultdict(list)
        evictions: dict[tuple[str, str, str], list[Decision]] = defaultdict(list)
        for decision in plan.decisions:
            if decision.kind == "bind":
                binds[decision.job].append(decision)
            elif decision.kind == "evict":
                # Victims of one beneficiary stand or fall together.
                owner = decision.beneficiary or decision.job
                evictions[decision.action, owner, decision.beneficiary].append(decision)
        for job, decisions in binds.items():
            if bodies := self._binds.intend(decisions):
                self._start(self._binds.bind_directly(bodies) if is_stand_in(job) else self._binds.bind(bodies))
        for decisions in evictions.values():
            self._start_evictions(decisions)
        if longest_runtime(self._config, self.state.queue_specs.values()) > 0:
            # Only rules about minimal run times ask when a gang started; without one it is not worth a write each.
            for job, moment in plan.last_start.items():
                self._start(self._notes.write(job, labels.LAST_START, moment))
        for job, since in plan.staleness.items():
            self._start(self._notes.write(job, labels.STALE_SINCE, since))

    def _start_evictions(self, decisions: list[Decision], unfinished: UnfinishedEvictions | None = None) -> None:
        victims = self._evictions.intend(decisions)
        first = decisions[0]
        all_of_them = unfinished or UnfinishedEvictions(
            first.action, first.beneficiary, tuple(decision.task for decision in decisions)
        )
        self._start(self._evict(victims, all_of_them))

    async def _evict(self, victims: list[Victim], decision: UnfinishedEvictions) -> None:
        """Evict the victims of one decision; one that could be left half done is saved first."""
        if decision.beneficiary and len(victims) > 1 and decision not in self.saved.unfinished:
            await self.saved.begin(decision)
        jobs = dict.fromkeys(victim.decision.job for victim in victims)
        await self._notes.evicted(jobs, self._runtime.clock.now().timestamp())
        if not await self._evictions.evict(victims):
            self.saved.drop_reservation(decision.beneficiary)
        self.saved.finish(decision)

    def _resume_evictions(self) -> None:
        """Go on with the decisions that an earlier scheduler left half done."""
        for unfinished in self.saved.unfinished:
            if decisions := self._evictions.resumed(unfinished):
                self._start_evictions(decisions, unfinished)
            else:
                self.saved.finish(unfinished)

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("task.failed", exc_info=task.exception())


def _triple(row: list[float]) -> Triple:
    return row[0], row[1], row[2]
