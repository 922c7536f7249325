"""The scheduler's loop: something changed → a plan → its writes go out, while the next cycle may already run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import structlog

from spinney.api import labels
from spinney.kube.cache import Key
from spinney.kube.runtime import Runtime
from spinney.scheduler.config import Config
from spinney.scheduler.plan import Decision, Plan, plan
from spinney.scheduler.service.feed import Feed, Shard
from spinney.scheduler.service.reports import Reports
from spinney.scheduler.service.standin import is_ours
from spinney.scheduler.service.writes import Eviction, Placement, Writes
from spinney.scheduler.specs import TaskSpec
from spinney.scheduler.state import State

_log = structlog.get_logger("spinney.scheduler")

# Events come in bursts: a short wait lets one cycle answer all of them.
_GATHER_SECONDS = 0.02
# Rules that look at the time (delays, grace periods, minimal run times) are looked at again so often while gangs wait.
_RULES_SECONDS = 5.0

Think = Callable[[Callable[[], Plan]], Coroutine[Any, Any, Plan]]


async def think_in_thread(work: Callable[[], Plan]) -> Plan:
    """Plan beside the event loop, so that a long plan freezes neither leases nor watches."""
    return await asyncio.to_thread(work)


async def think_inline(work: Callable[[], Plan]) -> Plan:
    """Plan right here: in virtual time nothing else moves meanwhile."""
    return work()


class Scheduler:
    """Feeds the core and carries out what it decides."""

    def __init__(self, runtime: Runtime, shard: Shard, config: Config, think: Think, *, stand_in: bool = False) -> None:
        self._runtime = runtime
        self._config = config
        self._think = think
        self._wake = asyncio.Event()
        self.state = State()
        self.feed = Feed(runtime, self.state, shard, self._wake.set, stand_in=stand_in)
        self._writes = Writes(runtime, self.feed)
        self._reports = Reports(runtime, self.feed)
        self._tasks: set[asyncio.Task[None]] = set()
        self.cycles = 0

    async def run(self) -> None:
        """Cycle whenever something changed, until cancelled."""
        await self.feed.views.synced()
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
        finally:
            for task in self._tasks:
                task.cancel()

    async def _something_changed(self) -> None:
        if not self._reports.anyone_waits:
            await self._wake.wait()
            return
        try:
            async with asyncio.timeout(_RULES_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            return

    async def cycle(self) -> None:
        """One plan and the start of its writes."""
        for request in self.feed.given_up:
            self._start(self._writes.remove(request))
        self.feed.given_up.clear()
        self.feed.apply()
        now = self._runtime.clock.now()
        made = await self._think(lambda: plan(self.state, self._config, now.timestamp()))
        self.cycles += 1
        self._carry_out(made)
        self._start(self._reports.tell(self.state, made))

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
            self._start(self._evict([self._eviction(decision) for decision in decisions]))
        for job, moment in made.last_start.items():
            self._annotate(job, labels.LAST_START, moment)
        for job, since in made.staleness.items():
            self._annotate(job, labels.STALE_SINCE, since)

    async def _evict(self, evictions: list[Eviction]) -> None:
        await self._writes.evict(evictions)

    def _annotate(self, job: str, annotation: str, moment: float | None) -> None:
        namespace, _, name = job.partition("/")
        group = self.feed.groups.get(name, namespace)
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
        )

    def _portion(self, spec: TaskSpec, node: str) -> float:
        if not spec.gpu.memory:
            return spec.gpu.portion
        row = self.state.nodes.rows[node]
        return -(-spec.gpu.memory * 100 // int(self.state.nodes.gpu_memory[row])) / 100

    def _eviction(self, decision: Decision) -> Eviction:
        namespace, _, name = decision.beneficiary.partition("/")
        message = f"Pod {self._task(decision).name} was evicted by {decision.action}"
        return Eviction(self._pod(decision), decision.action, message, (namespace, name) if name else None)

    def _task(self, decision: Decision) -> TaskSpec:
        return self.state.tasks[decision.task].spec

    def _pod(self, decision: Decision) -> Key:
        spec = self._task(decision)
        return spec.namespace, spec.name

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
