"""The Queue controller: usage of whole subtrees, child queues and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from spinney.api import reasons
from spinney.api.kai import PodGroup, Queue, QueueCondition, QueueResources
from spinney.api.meta import Json, Key
from spinney.kube.caches.cache import Change
from spinney.kube.clock import Clock, seconds
from spinney.kube.controllers.controller import Controller, run_controllers
from spinney.kube.difference import exact_merge_patch
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.pods.usage import Amounts, is_gpu, quantities
from spinney.services.queues.metrics import QueueMetrics, QueueSettings, served
from spinney.services.queues.queue_checks import WEBHOOK
from spinney.services.queues.tree import FIELDS, Tree, Usage, usage_of

_WIRE = dict(zip(FIELDS, ("requested", "allocated", "allocatedNonPreemptible"), strict=True))
# Many groups change at once when a gang starts: queues are written once for all of them.
_GATHER_SECONDS = 1.0


def plan_status(queue: Queue, tree: Tree, exists: bool, clock: Clock) -> Json | None:
    """The status patch of a queue; None where nothing changes."""
    status: Json = {}
    children = tree.children(queue.name)
    if tuple(children) != queue.status.child_queues:
        status["childQueues"] = children
    total = tree.total(queue.name)
    for field in FIELDS:
        wanted, existing = quantities(total[field]), getattr(queue.status, field)
        if wanted != existing:
            status[_WIRE[field]] = exact_merge_patch(existing, wanted)
    if conditions := _changed(queue, _conditions(queue, total, exists), clock):
        status["conditions"] = conditions
    return {"status": status} if status else None


def _changed(queue: Queue, wanted: list[QueueCondition], clock: Clock) -> list[Json] | None:
    """All conditions, if one of ours changes; a transition time moves only with its status."""
    ours = {condition.type: condition for condition in wanted}
    existing = {condition.type: condition for condition in queue.status.conditions}
    stamped = []
    for condition in wanted:
        old = existing.get(condition.type)
        since = old.last_transition_time if old is not None and old.status == condition.status else None
        stamped.append(msgspec.structs.replace(condition, last_transition_time=since or seconds(clock.now())))
    if all(existing.get(condition.type) == condition for condition in stamped):
        return None
    others = [condition for condition in queue.status.conditions if condition.type not in ours]
    return [msgspec.to_builtins(condition) for condition in (*others, *stamped)]


def _conditions(queue: Queue, total: Usage, parent_exists: bool) -> list[QueueCondition]:
    above = queue.spec.parent_queue
    orphan = bool(above) and not parent_exists
    exceeded = "; ".join(_above_quota(queue, total["allocated"]))
    return [
        QueueCondition(
            type=reasons.ORPHAN,
            status="True" if orphan else "False",
            reason="ParentNotFound" if orphan else "ParentFound",
            message=f"parent queue {above} does not exist" if orphan else "",
        ),
        QueueCondition(
            type=reasons.OVER_QUOTA,
            status="True" if exceeded else "False",
            reason="AboveQuota" if exceeded else "WithinQuota",
            message=exceeded,
        ),
    ]


def _above_quota(queue: Queue, held: Amounts) -> Iterator[str]:
    """What is allocated above quota, in the queue's units."""
    shares = queue.spec.resources or QueueResources()
    gpus = sum(amount for name, amount in held.items() if is_gpu(name))
    rows = (
        (shares.gpu.quota, gpus / 1000, "GPUs"),
        (shares.cpu.quota, float(held.get("cpu", 0)), "millicores of CPU"),
        (shares.memory.quota, held.get("memory", 0) / 10**9, "MB of memory"),
    )
    for quota, amount, unit in rows:
        if quota >= 0 and amount > quota:
            yield f"{amount:g} {unit} held, quota {quota:g}"


class Queues:
    """The controller of Queue status."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._queues = runtime.caches.of(Queue)
        self._groups = runtime.caches.of(PodGroup)
        self._tree = Tree()
        self.controller = Controller("queue-controller", runtime, self.reconcile, concurrency=8)
        self.controller.wait_for(self._queues, self._groups)
        self._queues.on_change(self._queue_changed)
        self._groups.on_change(self._group_changed)

    def _look_at(self, names: Iterable[str]) -> None:
        for name in names:
            self.controller.enqueue("", name, after=_GATHER_SECONDS)

    def _queue_changed(self, change: Change[Queue]) -> None:
        if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
            return
        name = change.object.name
        before = self._tree.upwards(name)
        self._tree.put_queue(name, change.new.spec.parent_queue if change.new is not None else None)
        self._look_at({*before, *self._tree.upwards(name), *self._tree.children(name)})

    def _group_changed(self, change: Change[PodGroup]) -> None:
        group = change.new
        key = (change.object.namespace, change.object.name)
        usage = usage_of(group) if group is not None else None
        self._look_at(self._tree.put_group(key, group.spec.queue if group is not None else "", usage))

    async def reconcile(self, key: Key) -> None:
        """Update one queue's status."""
        queue = self._queues.get(key[1])
        if queue is None:
            return
        exists = not queue.spec.parent_queue or self._queues.get(queue.spec.parent_queue) is not None
        patch = plan_status(queue, self._tree, exists, self._clock)
        if patch is None:
            return
        with suppress(NotFound):
            await self._client.patch(Queue, queue.name, patch, subresource="status")


async def run(runtime: Runtime, settings: QueueSettings | None = None) -> None:
    """Update the status of Queues until cancelled."""
    with served(QueueMetrics(runtime.caches.of(Queue), settings or QueueSettings())):
        await run_controllers(runtime, Queues(runtime).controller)


COMPONENT = Component(
    name="queue-controller",
    summary="Rolls usage up the tree of queues.",
    run=run,
    settings=QueueSettings,
    rules=(
        Rule(("scheduling.run.ai",), ("podgroups", "queues"), ("get", "list", "watch")),
        Rule(("scheduling.run.ai",), ("queues/status",), ("patch",)),
    ),
    webhooks=(WEBHOOK,),
)
