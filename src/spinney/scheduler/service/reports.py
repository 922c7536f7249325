"""Write conditions and events that say why gangs wait, only when they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, ConnectionLost
from spinney.kube.errors import NotFound as NotFoundError
from spinney.kube.runtime import Runtime
from spinney.scheduler.plan import Plan
from spinney.scheduler.service.default_scheduler import is_stand_in
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.views import Views
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import NoRoom, NotFound, NotReady, Problem
from spinney.scheduler.why import texts


class _Waiting(NamedTuple):
    """A waiting gang: whether it has started, its problems, and its pending pods."""

    started: bool
    problems: tuple[Problem, ...]
    pending: tuple[str, ...]


class Reports:
    """Keeps `status.schedulingConditions` of PodGroups and `PodScheduled` of pods current."""

    def __init__(self, runtime: Runtime, shard: Shard, state: State, views: Views) -> None:
        self._client: Client = runtime.client
        self._clock = runtime.clock
        self._pool = shard.pool or "default"
        self._views = views
        self._state = state
        self._events = Recorder(runtime.client, runtime.clock, shard.scheduler_name)
        # What was last told about each waiting gang.
        self._reported: dict[str, _Waiting] = {}
        # Groups that carry a condition of ours, by what we wrote or what their watch tells, a predecessor's included.
        self._marked: dict[str, None] = {}
        self._next: dict[str, _Waiting] | None = None
        self._reporting = False
        views.groups.on_change(self._look)

    async def report(self, plan: Plan) -> None:
        """Report what changed since the last plan; one report at a time, so that the newest is written last."""
        placed = {decision.job for decision in plan.decisions if decision.kind == "bind"}
        self._next = {
            key: _Waiting(any(job.active), tuple(plan.problems.get(key, ())), _pending_tasks(job))
            for key, job in self._state.jobs.items()
            if job.pending and key not in placed
        }
        if self._reporting:
            return
        self._reporting = True
        try:
            while self._next is not None:
                waiting, self._next = self._next, None
                await self._report(waiting)
        finally:
            self._reporting = False

    async def _report(self, waiting: dict[str, _Waiting]) -> None:
        for key in [key for key in self._reported if key not in waiting]:
            del self._reported[key]
        for key in [key for key in self._marked if key not in waiting]:
            await self._clear(key)
        for key, gang in waiting.items():
            if self._reported.get(key) != gang:
                self._reported[key] = gang
                await self._write(key, gang.started, gang.problems)

    def _look(self, change: Change[PodGroup]) -> None:
        key = f"{change.object.namespace}/{change.object.name}"
        if change.new is None:
            self._marked.pop(key, None)
        elif any(condition.node_pool == self._pool for condition in change.new.status.scheduling_conditions):
            self._marked[key] = None

    async def _write(self, key: str, started: bool, problems: tuple[Problem, ...]) -> None:
        group = self._group(key)
        if group is None and not is_stand_in(key):
            return
        unready = [problem for problem in problems if isinstance(problem, NotReady)]
        if unready:
            if group is not None:
                self._events.event(group, "Normal", "NotReady", texts.message(unready[0]))
            return
        # How the search for victims went is for `spinney explain`; here the blocker itself is told.
        blockers = [problem for problem in problems if not isinstance(problem, NotFound)]
        text = _text(blockers)
        if started:
            # What is left of a gang that runs are extras: their pods say why they wait, the group is well.
            await self._clear(key)
        elif group is not None:
            self._events.event(group, "Normal", "Unschedulable", text)
            await self._condition(group, blockers, text)
        if group is None or group.spec.mark_unschedulable is not False:
            for pod in self._pending(key):
                await self._mark(key, pod, _text_for(pod, blockers))

    async def _condition(self, group: PodGroup, blockers: Sequence[Problem], text: str) -> None:
        conditions = group.status.scheduling_conditions
        own = next((condition for condition in conditions if condition.node_pool == self._pool), None)
        if own is not None and own.message == text:
            return
        entry: Json = {
            "type": reasons.UNSCHEDULABLE_ON_NODE_POOL,
            "nodePool": self._pool,
            "status": "True",
            "reason": texts.reason(blockers[0]) if blockers else texts.PODS,
            "message": text,
            "reasons": [{"reason": texts.reason(problem), "message": texts.message(problem)} for problem in blockers],
            "transitionID": str(max((int(condition.transition_id or 0) for condition in conditions), default=0) + 1),
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        self._marked[f"{group.namespace}/{group.name}"] = None
        # The newest condition stands last; there is one per node pool.
        await self._patch(group, {"status": {"schedulingConditions": [*self._others(group), entry]}})

    async def _clear(self, key: str) -> None:
        """Remove our condition, even if the cache does not show it yet."""
        if key not in self._marked:
            return
        group = self._group(key)
        del self._marked[key]
        if group is not None and not await self._patch(
            group, {"status": {"schedulingConditions": self._others(group) or None}}
        ):
            self._marked[key] = None

    def _others(self, group: PodGroup) -> list[Json]:
        conditions = group.status.scheduling_conditions
        return [msgspec.to_builtins(condition) for condition in conditions if condition.node_pool != self._pool]

    async def _patch(self, group: PodGroup, patch: Json) -> bool:
        try:
            await self._client.patch(PodGroup, group.key, patch, subresource="status")
        except NotFoundError:
            return True
        except (ApiError, ConnectionLost):
            # The next plan says it again.
            self._reported.pop(f"{group.namespace}/{group.name}", None)
            return False
        return True

    async def _mark(self, key: str, pod: Pod, text: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
        current = find(pod.status.conditions, "PodScheduled")
        if current is not None and (current.status, current.reason, current.message) == _unschedulable(text):
            return
        self._events.event(pod, "Warning", "Unschedulable", text)
        patch = {"status": {"conditions": [condition]}}
        try:
            await self._client.patch(Pod, pod.key, patch, subresource="status", kind=Patch.STRATEGIC)
        except NotFoundError:
            return
        except (ApiError, ConnectionLost):
            # The next plan says it again.
            self._reported.pop(key, None)

    def _pending(self, key: str) -> list[Pod]:
        job = self._state.jobs.get(key)
        if job is None:
            return []
        pods = (self._views.pods.get((task.spec.namespace, task.spec.name)) for task in job.all_tasks())
        return [pod for pod in pods if pod is not None and not pod.spec.node_name]

    def _group(self, key: str) -> PodGroup | None:
        namespace, _, name = key.partition("/")
        return self._views.groups.get((namespace, name))


def _text(blockers: Sequence[Problem]) -> str:
    return "; ".join(dict.fromkeys(texts.message(problem) for problem in blockers)) or texts.DEFAULT


def _text_for(pod: Pod, blockers: Sequence[Problem]) -> str:
    """The blockers in the words for one pod: a problem that names a pod names this one, which waits for the same."""
    name = f"{pod.namespace}/{pod.name}"
    own = [replace(problem, task=name) if isinstance(problem, NoRoom) else problem for problem in blockers]
    return _text(own)


def _unschedulable(text: str) -> tuple[str, str, str]:
    return "False", "Unschedulable", text


def _pending_tasks(job: Job) -> tuple[str, ...]:
    return tuple(task.key for task in job.all_tasks() if task.status == st.PENDING)
