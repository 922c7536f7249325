"""A trial: the scheduler's state with some descriptions changed, and put back at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import JobSpec, NodeSpec, QueueSpec, TaskSpec, TopologySpec


class Trial:
    """Changes descriptions of a state and remembers how each was."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._undo: list[Callable[[], None]] = []

    def undo(self) -> None:
        """Put everything back, the latest change first."""
        while self._undo:
            self._undo.pop()()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Changes within are put back at its end; those before it stay."""
        before = len(self._undo)
        try:
            yield
        finally:
            while len(self._undo) > before:
                self._undo.pop()()

    @property
    def nodes(self) -> list[NodeSpec]:
        """The nodes as they are now."""
        return [spec for spec in self.state.nodes.specs if spec is not None]

    def set_queue(self, spec: QueueSpec) -> None:
        """Add a queue, or change it."""
        before = self.state.queue_specs.get(spec.name)
        self.state.set_queue(spec)
        if before is None:
            self._undo.append(lambda: self.state.drop_queue(spec.name))
        else:
            self._undo.append(lambda: self.state.set_queue(before))

    def set_flat(self, flat: bool) -> None:
        """Divide shares among the leaves of the queue tree only, or at every level."""
        before = self.state.flat
        self.state.set_flat(flat)
        self._undo.append(lambda: self.state.set_flat(before))

    def set_node(self, spec: NodeSpec) -> None:
        """Add a node, or change it."""
        row = self.state.nodes.rows.get(spec.name)
        before = self.state.nodes.specs[row] if row is not None else None
        self.state.set_node(spec)
        if before is None:
            self._undo.append(lambda: self.state.drop_node(spec.name))
        else:
            self._undo.append(lambda: self.state.set_node(before))

    def drop_node(self, name: str) -> None:
        """Take a node away."""
        row = self.state.nodes.rows.get(name)
        before = self.state.nodes.specs[row] if row is not None else None
        if before is not None:
            self.state.drop_node(name)
            self._undo.append(lambda: self.state.set_node(before))

    def set_topology(self, spec: TopologySpec) -> None:
        """Add a topology, or change it."""
        before = self.state.topologies.get(spec.name)
        self.state.set_topology(spec)
        if before is None:
            self._undo.append(lambda: self.state.drop_topology(spec.name))
        else:
            self._undo.append(lambda: self.state.set_topology(before))

    def set_job(self, spec: JobSpec) -> None:
        """Add a gang, or change it."""
        job = self.state.jobs.get(spec.key)
        before = job.spec if job is not None else None
        self.state.set_job(spec)
        if before is None:
            self._undo.append(lambda: self.state.drop_job(spec.key))
        else:
            self._undo.append(lambda: self.state.set_job(before))

    def set_task(self, spec: TaskSpec) -> None:
        """Add a task, or change it."""
        task = self.state.tasks.get(spec.uid)
        before = task.spec if task is not None else None
        self.state.set_task(spec)
        if before is None:
            self._undo.append(lambda: self.state.drop_task(spec.uid))
        else:
            self._undo.append(lambda: self.state.set_task(before))

    def set_status(self, uid: str, status: int) -> None:
        """Let a task begin or end."""
        before = self.state.tasks[uid].status
        self.state.set_status(uid, status)
        self._undo.append(lambda: self.state.set_status(uid, before))

    def drop_task(self, uid: str) -> None:
        """Take a task away."""
        before = self.state.tasks[uid].spec
        self.state.drop_task(uid)
        self._undo.append(lambda: self.state.set_task(before))


@contextmanager
def trial(state: State) -> Iterator[Trial]:
    """A trial that ends with the state as it was."""
    changed = Trial(state)
    try:
        yield changed
    finally:
        changed.undo()
