"""The Queue controller: usage rolled up the tree, children, and conditions of every queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import Json
from spinney.api.quantity import milli
from spinney.kube.cache import Change, Key
from spinney.kube.clock import Clock, seconds
from spinney.kube.controller import Controller, run_controllers
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.podgroups import replaced
from spinney.services.queuechecks import WEBHOOK
from spinney.services.queuemetrics import QueueMetrics, QueueSettings, served
from spinney.services.usage import Amounts, add, is_gpu, quantities

_FIELDS = ("requested", "allocated", "allocated_non_preemptible")
_WIRE = dict(zip(_FIELDS, ("requested", "allocated", "allocatedNonPreemptible"), strict=True))
# Many groups change at once when a gang starts: the tree is written once for all of them.
_GATHER_SECONDS = 1.0

Usage = dict[str, Amounts]


def usage_of(group: PodGroup) -> Usage:
    """What a group reports, in thousandths."""
    report = group.status.resources_status
    return {name: {key: milli(value) for key, value in getattr(report, name).items()} for name in _FIELDS}


class Tree:
    """Usage per queue, kept by differences: one changed group touches its queue and the queues above it."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._own: dict[str, Usage] = defaultdict(_nothing)
        self._group: dict[Key, tuple[str, Usage]] = {}

    def put_queue(self, name: str, parent: str | None) -> None:
        """A queue came, moved, or (without a parent at all) went."""
        if parent is None:
            self._parent.pop(name, None)
        else:
            self._parent[name] = parent

    def put_group(self, key: Key, queue: str, usage: Usage | None) -> set[str]:
        """A group's report changed; the queues whose totals changed with it."""
        touched: set[str] = set()
        before = self._group.pop(key, None)
        if before is not None:
            self._move(before[0], before[1], -1)
            touched |= set(self.upwards(before[0]))
        if usage is not None:
            self._group[key] = (queue, usage)
            self._move(queue, usage, 1)
            touched |= set(self.upwards(queue))
        return touched

    def _move(self, queue: str, usage: Usage, sign: int) -> None:
        for field, amounts in usage.items():
            add(self._own[queue][field], {name: sign * amount for name, amount in amounts.items()})

    def upwards(self, name: str) -> list[str]:
        """A queue and the queues above it; a cycle ends the way."""
        way: list[str] = []
        while name and name not in way:
            way.append(name)
            name = self._parent.get(name, "")
        return way

    def children(self, name: str) -> list[str]:
        """The queues right below, by name."""
        return sorted(child for child, parent in self._parent.items() if parent == name)

    def total(self, name: str) -> Usage:
        """What the queue and everything below it use."""
        total = _nothing()
        waiting, seen = [name], set()
        while waiting:
            queue = waiting.pop()
            if queue in seen:
                continue
            seen.add(queue)
            for field in _FIELDS:
                add(total[field], self._own[queue][field] if queue in self._own else {})
            waiting += self.children(queue)
        return total


def _nothing() -> Usage:
    return {field: {} for field in _FIELDS}


def plan_status(queue: Queue, tree: Tree, exists: bool, clock: Clock) -> Json | None:
    """The status patch that brings a queue's report up to date; None where it is."""
    status: Json = {}
    children = tree.children(queue.name)
    if tuple(children) != queue.status.child_queues:
        status["childQueues"] = children
    total = tree.total(queue.name)
    for field in _FIELDS:
        wanted, known = quantities(total[field]), getattr(queue.status, field)
        if wanted != known:
            status[_WIRE[field]] = replaced(known, wanted)
    wanted_conditions = _conditions(queue, total, exists)
    known_conditions = {found.type: (found.status, found.reason) for found in queue.status.conditions}
    if any(known_conditions.get(entry["type"]) != (entry["status"], entry["reason"]) for entry in wanted_conditions):
        now = seconds(clock.now()).isoformat().replace("+00:00", "Z")
        status["conditions"] = [{**entry, "lastTransitionTime": now} for entry in wanted_conditions]
    return {"status": status} if status else None


def _conditions(queue: Queue, total: Usage, parent_exists: bool) -> list[Json]:
    orphan = bool(queue.spec.parent_queue) and not parent_exists
    quota = queue.spec.resources.gpu.quota if queue.spec.resources else 0
    gpus = sum(amount for name, amount in total["allocated"].items() if is_gpu(name))
    over = quota >= 0 and gpus > quota * 1000
    return [
        {
            "type": "Orphan",
            "status": "True" if orphan else "False",
            "reason": "ParentNotFound" if orphan else "ParentFound",
            "message": f"parent queue {queue.spec.parent_queue} does not exist" if orphan else "",
        },
        {
            "type": "OverQuota",
            "status": "True" if over else "False",
            "reason": "GpusAboveQuota" if over else "WithinQuota",
            "message": f"{gpus / 1000:g} GPUs held, quota {quota:g}" if over else "",
        },
    ]


class Queues:
    """Keeps `status` of every Queue true."""

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
        """Bring one queue's status up to date."""
        queue = self._queues.get(key[1])
        if queue is None:
            return
        exists = not queue.spec.parent_queue or self._queues.get(queue.spec.parent_queue) is not None
        patch = plan_status(queue, self._tree, exists, self._clock)
        if patch is None:
            return
        try:
            await self._client.patch(Queue, queue.name, "", patch, subresource="status")
        except NotFound:
            return


async def run(runtime: Runtime, settings: QueueSettings | None = None) -> None:
    """Keep Queue status true until cancelled."""
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
