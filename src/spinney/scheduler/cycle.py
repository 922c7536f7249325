"""One cycle: the state, the configuration, the hooks of plugins, and what is decided on the way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TypeVar, cast

from spinney.scheduler.config import Config
from spinney.scheduler.hooks import Hooks
from spinney.scheduler.result import Result
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.nodes import Mask, NodeSizes, Rows
from spinney.scheduler.state.tasks import NOTHING, Task, TaskClass, Triple
from spinney.scheduler.state.transaction import Checkpoint, Transaction
from spinney.scheduler.stopwatch import Stopwatch

T = TypeVar("T")


class Cycle:
    """The working set of one plan."""

    def __init__(
        self,
        state: State,
        config: Config,
        now: float,
        aside: Mapping[str, str] = MappingProxyType({}),
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.state = state
        self.config = config
        self.now = now
        # Gangs that are left out, with the error that a plan met on them; and the gang that is considered now.
        self.aside = aside
        self.considering: Job | None = None
        self.stopwatch = stopwatch or Stopwatch()
        self.nodes = state.nodes
        self.queues = state.queues
        self.all_rows: Rows = state.nodes.all_rows()
        self.sizes = NodeSizes(state.nodes, self.all_rows)
        # Rows that an earlier cycle changed and changed back are of no interest.
        self.nodes.touched.clear()
        self.transaction = Transaction(state)
        self.hooks = Hooks()
        self.result = Result()
        self._parts: dict[object, object] = {}
        self._masks: dict[int, Mask] = {}

    def close(self) -> None:
        """Let go of plugins and modules, which refer back: else all of the cycle waits for Python's cycle collector."""
        self.hooks = Hooks()
        self._parts.clear()
        self.transaction.observers.clear()

    def get(self, kind: Callable[[Cycle], T]) -> T:
        """Return the cycle's instance of a class, made on first use: the state that a module or plugin keeps."""
        part = self._parts.get(kind)
        if part is None:
            part = self._parts[kind] = kind(self)
        return cast(T, part)

    def wanted(self, gang: Gang) -> Triple:
        """What the next tasks of a gang ask for, in the units of queues."""
        job = gang.job
        if (
            gang.next_request is not None
            and job.next_tasks is not None
            and (gang is job or gang.next_tasks_beside is job.next_tasks)
        ):
            return gang.next_request
        want, by_memory = NOTHING, False
        for task in next_tasks(gang):
            cpu, memory, gpus = task.cls.wanted(self.sizes.smallest_gpu)
            want = (want[0] + cpu, want[1] + memory, want[2] + gpus)
            by_memory = by_memory or task.cls.memory > 0
        # The worth of GPU memory depends on the nodes, so it is not kept for the next cycle.
        gang.next_request = None if by_memory else want
        return want

    def placement_key(self, task: Task) -> Hashable:
        """Return a key that is equal for tasks of one class which every node treats alike."""
        keys = self.hooks.placement_keys
        return tuple([key(task) for key in keys]) if keys else ()

    def class_mask(self, cls: TaskClass) -> Mask:
        """Return the nodes that a class may run on, by rules that do not change during the cycle."""
        mask = self._masks.get(cls.id)
        if mask is None:
            mask = self.nodes.live.copy()
            for hook in self.hooks.class_masks:
                mask &= hook(cls)
            self._masks[cls.id] = mask
        return mask

    def commit(self, action: str, since: Checkpoint, beneficiary: Job | None = None) -> None:
        """Decide the moves since a checkpoint."""
        self.result.changes += 1
        for move in self.transaction.settle(since):
            self.result.decided.append((action, move, beneficiary))
            if move.kind == "evict" and move.task.job is not None:
                self.result.evicts = True
                self.transaction.set(move.task.job, "last_eviction", self.now)

    def pending_jobs(self) -> list[Job]:
        """Jobs with pending tasks, in a queue that can hold jobs."""
        queues = self.queues
        return [
            job
            for job in self.state.jobs.values()
            if job.pending and job.queue >= 0 and queues.leaf(job.queue) and job.key not in self.aside
        ]
