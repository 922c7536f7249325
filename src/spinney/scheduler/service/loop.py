"""The scheduler's loop: something changed → a plan → its writes go out, while the next cycle may already run."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from spinney.api import labels
from spinney.api.meta import Key
from spinney.kube.runtime import Runtime
from spinney.scheduler.config import Config
from spinney.scheduler.deadlines import next_deadline
from spinney.scheduler.plan import Decision, Plan
from spinney.scheduler.plugins.minruntime import longest_runtime
from spinney.scheduler.result import Turn
from spinney.scheduler.service.default_scheduler import is_ours
from spinney.scheduler.service.failing_gangs import Aside
from spinney.scheduler.service.feed import Feed, Shard
from spinney.scheduler.service.metrics import CycleMetrics, Timing
from spinney.scheduler.service.partial_decisions import Halves
from spinney.scheduler.service.persistence import Memory
from spinney.scheduler.service.prometheus_usage import PrometheusUsage
from spinney.scheduler.service.record import shard_name
from spinney.scheduler.service.reports import Reports
from spinney.scheduler.service.writes import Eviction, Placement, Writes
from spinney.scheduler.share.usage import UsageRecord
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import TaskSpec
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
    """Plan beside the event loop, so that a long plan freezes neither leases nor watches."""
    return await asyncio.to_thread(work)


async def think_inline(work: Callable[[], Plan]) -> Plan:
    """Plan right here: in virtual time nothing else moves meanwhile."""
    return work()


class Scheduler:
    """Feeds the core and carries out what it decides."""

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
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._think = think
        self._wake = asyncio.Event()
        self.state = State()
        self.state.flat = not config.full_hierarchy
        self.feed = Feed(
            runtime,
            self.state,
            shard,
            self._wake.set,
            stand_in=stand_in,
            devices=devices,
            zones=zones,
            stuck_after=config.stuck_after,
        )
        self._halves = Halves(self.feed, self._wake.set)
        self._writes = Writes(runtime, self.feed)
        self._reports = Reports(runtime, self.feed)
        self._usage = usage
        self._usage_refreshed = float("-inf")
        if usage is not None:
            self.feed.usage_of = usage.share
        self.memory = Memory(runtime, shard_name(shard), usage if isinstance(usage, UsageRecord) else None)
        self._metrics = CycleMetrics(shard.pool, self.feed.views.queues)
        self._aside = Aside()
        self._tasks: set[asyncio.Task[None]] = set()
        self.cycles = 0
        # The order in which the last cycle took gangs; None before the first.
        self.turns: Sequence[Turn] | None = None

    async def run(self) -> None:
        """Cycle whenever something changed, until cancelled."""
        await self.feed.synced()
        await self.memory.load()
        self.feed.apply()
        self.state.freed.restore(self.memory.freed)
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
        deadline = next_deadline(self.state, self._config, now, self.memory.reservations.since)
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
        for request in (*self.feed.given_up, *self._halves.take()):
            self._start(self._writes.remove(request))
        self.feed.given_up.clear()
        loop = asyncio.get_running_loop()
        started = loop.time()
        self.feed.apply()
        now = self._runtime.clock.now().timestamp()
        self._account(now)
        described = loop.time()
        kept, stopwatch = self.memory.reservations, Stopwatch(loop.time)
        made = await self._think(lambda: self._aside.plan(self.state, self._config, now, kept, stopwatch))
        planned = loop.time()
        self.cycles += 1
        self.turns = made.turns
        self._carry_out(made)
        self.memory.note(self.state, made, now)
        told = loop.time()
        timing = Timing(described - started, told - planned, told - started, stopwatch.plugins, stopwatch.actions)
        self._metrics.count(self.state, made, now, timing)
        self._start(self._reports.tell(self.state, made))

    def _account(self, now: float) -> None:
        """Add what queues held since the last cycle to the record of their use, and let it count from time to time."""
        if isinstance(self._usage, UsageRecord):
            held = {name: _triple(self.state.charged[row]) for name, row in self.state.queues.index.items()}
            nodes = self.state.nodes
            self._usage.add(now, held, _triple(nodes.allocatable[nodes.live][:, :3].sum(axis=0).tolist()))
        if self._usage is not None and now - self._usage_refreshed >= _USAGE_SECONDS:
            self._usage_refreshed = now
            self.feed.refresh_usage()

    def _carry_out(self, made: Plan) -> None:
        binds: dict[str, list[Decision]] = defaultdict(list)
        evictions: dict[tuple[str, str, str], list[Decision]] = defaultdict(list)
        for decision in made.decisions:
            if decision.kind == "bind":
                binds[decision.job].append(decision)
            elif decision.kind == "evict":
                # Victims of one beneficiary stand or fall together.
                owner = decision.beneficiary or decision.job
                evictions[decision.action, owner, decision.beneficiary].append(decision)
        for job, decisions in binds.items():
            if bodies := self._writes.intend([self._placement(decision) for decision in decisions]):
                self._start(self._writes.bind_directly(bodies) if is_ours(job) else self._writes.bind(bodies))
        for decisions in evictions.values():
            for decision in decisions:
                self.feed.intentions.evictions.add(decision.task)
                self.feed.mark("pod", self._pod(decision))
            self._start(self._evict([self._eviction(decision) for decision in decisions], decisions[0].beneficiary))
            for job in dict.fromkeys(decision.job for decision in decisions):
                self._annotate(job, labels.LAST_EVICTION, self._runtime.clock.now().timestamp())
        if longest_runtime(self._config, self.state.queue_specs.values()) > 0:
            # Only rules about minimal run times ask when a gang started; without one it is not worth a write each.
            for job, moment in made.last_start.items():
                self._annotate(job, labels.LAST_START, moment)
        for job, since in made.staleness.items():
            self._annotate(job, labels.STALE_SINCE, since)

    async def _evict(self, evictions: list[Eviction], beneficiary: str) -> None:
        if not await self._writes.evict(evictions):
            self.memory.let_go(beneficiary)

    def _annotate(self, job: str, annotation: str, moment: float | None) -> None:
        namespace, _, name = job.partition("/")
        group = self.feed.groups.get((namespace, name))
        if group is None:
            return
        text = datetime.fromtimestamp(moment, UTC).isoformat() if moment is not None else None
        if group.metadata.annotations.get(annotation) != text:
            self._start(self._writes.annotate(group, {annotation: text}))

    def _placement(self, decision: Decision) -> Placement:
        spec = self._task(decision)
        shares = bool(decision.gpu_groups)
        return Placement(
            pod=self._pod(decision),
            node=decision.node,
            gpu_groups=decision.gpu_groups,
            gpu_count=spec.gpu.devices if shares else spec.gpu.whole,
            gpu_portion=self._portion(spec, decision.node) if shares else float(bool(spec.gpu.whole)),
            zones=decision.zones,
        )

    def _portion(self, spec: TaskSpec, node: str) -> float:
        if not spec.gpu.memory:
            return spec.gpu.portion
        row = self.state.nodes.rows[node]
        return -(-spec.gpu.memory * 100 // int(self.state.nodes.gpu_memory[row])) / 100

    def _eviction(self, decision: Decision) -> Eviction:
        namespace, _, name = decision.beneficiary.partition("/")
        message = f"Pod {self._task(decision).name} was evicted by {decision.action}{self._why_evicted(decision)}"
        return Eviction(self._pod(decision), decision.action, message, (namespace, name) if name else None)

    def _why_evicted(self, decision: Decision) -> str:
        """Who gets the place, and by what right."""
        victim, other = self.state.jobs.get(decision.job), self.state.jobs.get(decision.beneficiary)
        if victim is None or other is None:
            return ""
        if decision.action == "reclaim":
            giver, taker = (self.state.queues.names[job.queue] for job in (victim, other))
            return f" for {other.key}: queue {giver} gives back to queue {taker} what it is owed"
        if decision.action == "preempt":
            return f" for {other.key}, which has priority {other.priority} over {victim.priority}"
        return f" for {other.key}"

    def _task(self, decision: Decision) -> TaskSpec:
        return self.state.tasks[decision.task].spec

    def _pod(self, decision: Decision) -> Key:
        spec = self._task(decision)
        return spec.namespace, spec.name

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _triple(row: list[float]) -> Triple:
    return row[0], row[1], row[2]
