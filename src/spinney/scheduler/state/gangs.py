"""Gangs: the tasks of a job by subgroup, and whether there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import JobSpec
from spinney.scheduler.state.subgroup_tree import Tree
from spinney.scheduler.state.tasks import Task, Triple

# A member of a set: (True, index) is a set, (False, index) a leaf.
Member = tuple[bool, int]


class Gang:
    """The tasks of a job, or of a part of it, by subgroup, with counts."""

    __slots__ = (
        "active",
        "job",
        "minimums",
        "next_request",
        "next_tasks",
        "next_tasks_beside",
        "set_minimums",
        "tasks",
        "tree",
    )

    def __init__(self, job: Job, tree: Tree, minimums: list[int], set_minimums: list[int | None]) -> None:
        self.job = job
        self.tree = tree
        self.minimums = minimums
        self.set_minimums = set_minimums
        self.tasks: list[dict[str, Task]] = [{} for _ in minimums]
        self.active = [0] * len(minimums)
        # Cached next tasks and their request; valid while the job's own next tasks are the same list.
        self.next_tasks: list[Task] | None = None
        self.next_tasks_beside: list[Task] | None = None
        self.next_request: Triple | None = None

    def all_tasks(self) -> list[Task]:
        """Every task of the gang."""
        if len(self.tasks) == 1:
            return list(self.tasks[0].values())
        return [task for tasks in self.tasks for task in tasks.values()]

    def needed(self, index: int) -> int:
        """Return how many members of a set must be satisfied."""
        minimum = self.set_minimums[index]
        if minimum is not None:
            return minimum
        node = self.tree.sets[index]
        return len(node.sets) + len(node.podsets)

    def satisfied_members(self, index: int) -> int:
        """Return how many members of a set are satisfied."""
        node = self.tree.sets[index]
        count = sum(self.satisfied_members(child) >= self.needed(child) for child in node.sets)
        return count + sum(self.active[leaf] >= self.minimums[leaf] for leaf in node.podsets)

    def set_satisfied(self, index: int) -> bool:
        """Whether a set has enough satisfied members."""
        return self.satisfied_members(index) >= self.needed(index)

    def members(self, index: int) -> list[Member]:
        """Members of a set in the order they are served: unsatisfied first, then the least filled."""
        node = self.tree.sets[index]
        members: list[Member] = [(True, child) for child in node.sets]
        members += [(False, leaf) for leaf in node.podsets]
        if len(members) > 1:
            members.sort(key=self._member_order)
        return members

    def _member_order(self, member: Member) -> tuple[int, float, str]:
        is_set, index = member
        if is_set:
            count, needed, name = self.satisfied_members(index), self.needed(index), self.tree.sets[index].name
        else:
            count, needed, name = self.active[index], self.minimums[index], self.tree.podsets[index].name
        if count < needed:
            return (0, 0.0, name)
        return (1, count / needed, name) if needed else (2, float(count), name)

    def elastic_state(self) -> int:
        """0 below the minimum somewhere, 1 exactly at it, 2 above it."""
        if len(self.active) == 1:
            return (self.active[0] >= self.minimums[0]) + (self.active[0] > self.minimums[0])
        exact = True
        for active, minimum in zip(self.active, self.minimums, strict=True):
            if active < minimum:
                return 0
            exact = exact and active == minimum
        return 1 if exact else 2

    def charged(self) -> Triple:
        """What the tasks that count against the queue ask for."""
        cpu = memory = gpus = 0.0
        for tasks in self.tasks:
            for task in tasks.values():
                if task.status & st.CHARGED:
                    charge = task.cls.triple
                    cpu, memory, gpus = cpu + charge[0], memory + charge[1], gpus + charge[2]
        return (cpu, memory, gpus)

    def part(self, tasks: Iterable[Task]) -> Gang:
        """The same gang with only these tasks."""
        part = Gang(self.job, self.tree, self.minimums, self.set_minimums)
        for task in tasks:
            part.tasks[task.podset][task.key] = task
            if task.status & st.ACTIVE:
                part.active[task.podset] += 1
        return part


class Job(Gang):
    """A gang in the state, with the counts that rules look at."""

    __slots__ = (
        "alive",
        "created",
        "gated",
        "key",
        "last_eviction",
        "last_start",
        "lone",
        "pending",
        "preemptible",
        "priority",
        "queue",
        "spec",
        "stale_since",
        "succeeded",
        "used",
    )

    def __init__(self, spec: JobSpec, tree: Tree) -> None:
        super().__init__(self, tree, tree.minimums, tree.set_minimums)
        self.key = spec.key
        self.spec = spec
        self.queue = -1
        self.priority = spec.priority
        self.preemptible = spec.preemptible
        self.created = spec.created
        self.last_start = spec.last_start
        self.last_eviction = spec.last_eviction
        self.stale_since = spec.stale_since
        self.used = [0] * len(tree.podsets)
        self.alive = [0] * len(tree.podsets)
        self.gated = [0] * len(tree.podsets)
        self.pending = 0
        self.succeeded = 0
        # Most gangs have a single subgroup: a fast path, because every cycle asks all gangs.
        self.lone = tree.simple and tree.set_minimums[0] is None

    def __repr__(self) -> str:
        return f"Job({self.key})"

    def recount(self, podset: int, before: int, after: int) -> None:
        """Count a task under its new status."""
        if before & st.USED and after & st.USED:
            # Of the tasks on nodes, those are alive that are active.
            change = ((after & st.ACTIVE) != 0) - ((before & st.ACTIVE) != 0)
            self.active[podset] += change
            self.alive[podset] += change
            return
        self.count(podset, before, -1)
        self.count(podset, after, 1)

    def count(self, podset: int, status: int, change: int) -> None:
        """Change the count of tasks in a status."""
        if status & st.ACTIVE:
            self.active[podset] += change
        if status & st.USED:
            self.used[podset] += change
        if status & st.ALIVE:
            self.alive[podset] += change
            if status == st.PENDING:
                self.pending += change
            elif status == st.GATED:
                self.gated[podset] += change
        elif status == st.SUCCEEDED:
            self.succeeded += change

    def delayed_until(self) -> float:
        """Return the end of the preemption delay, which starts with the gang and with each eviction of it."""
        return max(self.created, self.last_eviction or 0.0) + self.spec.preemption_delay

    def ready(self, index: int = 0) -> bool:
        """Whether enough tasks exist, and are not held by gates, for the gang to start."""
        if self.lone:
            return self.alive[0] - self.gated[0] >= self.minimums[0]
        node = self.tree.sets[index]
        count = sum(self.ready(child) for child in node.sets)
        count += sum(self.alive[leaf] - self.gated[leaf] >= self.minimums[leaf] for leaf in node.podsets)
        return count >= self.needed(index)

    def gang_satisfied(self, index: int = 0) -> bool:
        """Whether enough subgroups have their minimum on nodes, releasing tasks included."""
        if self.lone:
            return self.used[0] >= self.minimums[0]
        node = self.tree.sets[index]
        count = sum(self.gang_satisfied(child) for child in node.sets)
        count += sum(self.used[leaf] >= self.minimums[leaf] for leaf in node.podsets)
        return count >= self.needed(index)

    def in_one_piece(self) -> bool:
        """Whether the gang is satisfied and no subgroup runs below its minimum."""
        if self.lone:
            return self.active[0] >= self.minimums[0]
        leaves = zip(self.active, self.minimums, strict=True)
        return self.set_satisfied(0) and all(not active or active >= least for active, least in leaves)

    def elastic(self) -> bool:
        """Whether some leaf has more tasks than it needs."""
        return any(len(tasks) > minimum for tasks, minimum in zip(self.tasks, self.minimums, strict=True))
