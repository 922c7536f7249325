"""Tells people why their gangs wait: conditions and events, written only when they say something new."""

from __future__ import annotations

import msgspec

from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from spinney.kube.client import Client, Patch
from spinney.kube.clock import seconds
from spinney.kube.errors import ApiError, ConnectionLost
from spinney.kube.events import Recorder
from spinney.kube.runtime import Runtime
from spinney.scheduler.plan import Plan
from spinney.scheduler.service.feed import Feed
from spinney.scheduler.service.standin import is_ours
from spinney.scheduler.state import State

_UNSCHEDULABLE = "UnschedulableOnNodePool"


class Reports:
    """Keeps `status.schedulingConditions` of groups and `PodScheduled` of pods true."""

    def __init__(self, runtime: Runtime, feed: Feed) -> None:
        self._client: Client = runtime.client
        self._clock = runtime.clock
        self._feed = feed
        self._events = Recorder(runtime.client, runtime.clock, feed.shard.scheduler_name)
        # What was last told about each waiting gang.
        self._told: dict[str, str] = {}

    @property
    def anyone_waits(self) -> bool:
        """Whether some gang could not be placed."""
        return bool(self._told)

    async def tell(self, state: State, made: Plan) -> None:
        """Tell what is new since the last plan."""
        placed = {decision.job for decision in made.decisions if decision.kind == "bind"}
        waiting = {key: self._why(key, made) for key, job in state.jobs.items() if job.pending and key not in placed}
        for key in [key for key in self._told if key not in waiting]:
            del self._told[key]
            await self._clear(key)
        for key, why in waiting.items():
            if self._told.get(key) == why:
                continue
            self._told[key] = why
            await self._write(key, why)

    def _why(self, key: str, made: Plan) -> str:
        found = made.problems.get(key) or []
        return (
            "; ".join(dict.fromkeys(str(problem) for problem in found)) or "no nodes with enough resources were found"
        )

    async def _write(self, key: str, why: str) -> None:
        group = self._group(key)
        if group is not None:
            self._events.event(group, "Normal", "Unschedulable", why)
            await self._condition(group, why)
        elif not is_ours(key):
            return
        if group is None or group.spec.mark_unschedulable is not False:
            for pod in self._pending(key):
                await self._mark(pod, why)

    async def _condition(self, group: PodGroup, why: str) -> None:
        pool = self._feed.shard.pool or "default"
        others = [found for found in group.status.scheduling_conditions if found.node_pool != pool]
        numbers = [int(found.transition_id or 0) for found in group.status.scheduling_conditions]
        entry: Json = {
            "type": _UNSCHEDULABLE,
            "nodePool": pool,
            "status": "True",
            "reason": "Unschedulable",
            "message": why,
            "reasons": [{"reason": "PodSchedulingErrors", "message": why}],
            "transitionID": str(max(numbers, default=0) + 1),
            "lastTransitionTime": seconds(self._clock.now()).isoformat().replace("+00:00", "Z"),
        }
        kept = [msgspec.to_builtins(found) for found in others]
        await self._patch(group, {"status": {"schedulingConditions": [*kept, entry]}})

    async def _clear(self, key: str) -> None:
        group = self._group(key)
        if group is not None and group.status.scheduling_conditions:
            await self._patch(group, {"status": {"schedulingConditions": None}})

    async def _patch(self, group: PodGroup, patch: Json) -> None:
        try:
            await self._client.patch(PodGroup, group.name, group.namespace, patch, subresource="status")
        except (ApiError, ConnectionLost):
            # The next plan says it again.
            self._told.pop(f"{group.namespace}/{group.name}", None)

    async def _mark(self, pod: Pod, why: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        known = next((found for found in pod.status.conditions if found.type == "PodScheduled"), None)
        if known is not None and (known.status, known.reason, known.message) == ("False", "Unschedulable", why):
            return
        patch = {"status": {"conditions": [condition]}}
        try:
            await self._client.patch(Pod, pod.name, pod.namespace, patch, subresource="status", kind=Patch.STRATEGIC)
        except (ApiError, ConnectionLost):
            return

    def _pending(self, key: str) -> list[Pod]:
        job = self._feed.state.jobs.get(key)
        if job is None:
            return []
        found = (self._feed.pods.get(task.spec.name, task.spec.namespace) for task in job.all_tasks())
        return [pod for pod in found if pod is not None and not pod.spec.node_name]

    def _group(self, key: str) -> PodGroup | None:
        namespace, _, name = key.partition("/")
        return self._feed.groups.get(name, namespace)
