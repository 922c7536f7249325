"""Gangs: jobs with a tree of subgroups, which tasks go next, and which go first when room is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spinney.scheduler import status as st
from spinney.scheduler.specs import DEFAULT_GROUP, Constraint, GroupSpec, JobSpec
from spinney.scheduler.tasks import Task, Triple, affordable


@dataclass(slots=True)
class SetNode:
    """A set of subgroups in a tree."""

    name: str
    constraint: Constraint | None
    parent: int
    sets: list[int] = field(default_factory=list)
    podsets: list[int] = field(default_factory=list)


@dataclass(slots=True)
class PodSet:
    """A leaf of a tree: tasks that are alike."""

    name: str
    constraint: Constraint | None
    parent: int


class Tree:
    """The fixed shape of a gang; many jobs share one."""

    __slots__ = ("by_name", "constrained", "minimums", "podsets", "set_minimums", "sets", "simple")

    def __init__(self, spec: GroupSpec) -> None:
        self.sets: list[SetNode] = []
        self.podsets: list[PodSet] = []
        self.minimums: list[int] = []
        self.set_minimums: list[int | None] = []
        self._add(spec, -1)
        self.by_name = {podset.name: index for index, podset in enumerate(self.podsets)}
        # One set with one leaf: what nearly every job is.
        self.simple = len(self.sets) == 1 and len(self.podsets) == 1
        self.constrained = any(node.constraint for node in self.sets) or any(leaf.constraint for leaf in self.podsets)

    def _add(self, spec: GroupSpec, parent: int) -> None:
        index = len(self.sets)
        self.sets.append(SetNode(spec.name, spec.constraint, parent))
        self.set_minimums.append(spec.minimum)
        if parent >= 0:
            self.sets[parent].sets.append(index)
        for member in spec.members:
            if member.members:
                self._add(member, index)
            else:
                self.sets[index].podsets.append(len(self.podsets))
                self.podsets.append(PodSet(member.name, member.constraint, index))
                self.minimums.append(member.minimum or 0)

    def podset_of(self, group: str) -> int | None:
        """The leaf that a task's subgroup name means."""
        return self.by_name.get(group or DEFAULT_GROUP)

    def podsets_under(self, index: int) -> list[int]:
        """Every leaf below a set."""
        node = self.sets[index]
        found = list(node.podsets)
        for child in node.sets:
            found += self.podsets_under(child)
        return found


# A member of a set: (True, index) is a set, (False, index) a leaf.
Member = tuple[bool, int]


class Gang:
    """A job's tasks by leaf with running counts; also a part of a job, as scenarios try parts out."""

    __slots__ = ("active", "chunk", "chunk_of", "job", "minimums", "set_minimums", "tasks", "tree", "want")

    def __init__(self, job: Job, tree: Tree, minimums: list[int], set_minimums: list[int | None]) -> None:
        self.job = job
        self.tree = tree
        self.minimums = minimums
        self.set_minimums = set_minimums
        self.tasks: list[dict[str, Task]] = [{} for _ in minimums]
        self.active = [0] * len(minimums)
        # The next tasks and what they ask for, kept while the job's next tasks are those they were worked out beside.
        self.chunk: list[Task] | None = None
        self.chunk_of: list[Task] | None = None
        self.want: Triple | None = None

    def all_tasks(self) -> list[Task]:
        """Every task of the gang."""
        if len(self.tasks) == 1:
            return list(self.tasks[0].values())
        return [task for tasks in self.tasks for task in tasks.values()]

    def needed(self, index: int) -> int:
        """How many members of a set must be satisfied."""
        minimum = self.set_minimums[index]
        if minimum is not None:
            return minimum
        node = self.tree.sets[index]
        return len(node.sets) + len(node.podsets)

    def satisfied_members(self, index: int) -> int:
        """How many members of a set have what they need."""
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
                    one = task.cls.triple
                    cpu, memory, gpus = cpu + one[0], memory + one[1], gpus + one[2]
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
    """A gang as the state holds it, with what the cycle remembers about it."""

    __slots__ = (
        "alive",
        "created",
        "gated",
        "key",
        "last_eviction",
        "last_start",
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

    def __repr__(self) -> str:
        return f"Job({self.key})"

    def recount(self, podset: int, before: int, after: int) -> None:
        """Note that a task of a leaf changed its status."""
        if (before & st.ACTIVE) != 0 and (after & st.ACTIVE) != 0:
            # The usual steps on the way to running change no count.
            return
        self.count(podset, before, -1)
        self.count(podset, after, 1)

    def count(self, podset: int, status: int, change: int) -> None:
        """Note that a leaf has one task more or less in a status."""
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

    def ready(self, index: int = 0) -> bool:
        """Whether enough tasks exist, and are not held by gates, for the gang to start."""
        node = self.tree.sets[index]
        count = sum(self.ready(child) for child in node.sets)
        count += sum(self.alive[leaf] - self.gated[leaf] >= self.minimums[leaf] for leaf in node.podsets)
        return count >= self.needed(index)

    def gang_satisfied(self, index: int = 0) -> bool:
        """Whether as many subgroups as needed have their minimum on nodes, tasks on their way out included."""
        if self.tree.simple and self.set_minimums[0] is None:
            # Asked of every gang in every cycle, and most gangs have one subgroup.
            return self.used[0] >= self.minimums[0]
        node = self.tree.sets[index]
        count = sum(self.gang_satisfied(child) for child in node.sets)
        count += sum(self.used[leaf] >= self.minimums[leaf] for leaf in node.podsets)
        return count >= self.needed(index)

    def elastic(self) -> bool:
        """Whether some leaf has more tasks than it needs."""
        return any(len(tasks) > minimum for tasks, minimum in zip(self.tasks, self.minimums, strict=True))


def to_place(task: Task, trial: bool) -> bool:
    """Whether a task wants a node; in a trial also when its eviction is part of the same trial."""
    return task.status == st.PENDING or (trial and task.status == st.RELEASING and task.virtual)


def next_chunk(gang: Gang, trial: bool) -> list[Task]:
    """The tasks to place next: what the gang lacks to run, else one more task."""
    if gang.tree.simple:
        return _from_podset(gang, 0, trial)
    return _from_set(gang, 0, trial)


def _from_set(gang: Gang, index: int, trial: bool) -> list[Task]:
    members = gang.members(index)
    if not gang.set_satisfied(index):
        return [task for member in members[: gang.needed(index)] for task in _missing(gang, member, trial)]
    for is_set, child in members:
        found = _from_set(gang, child, trial) if is_set else _from_podset(gang, child, trial)
        if found:
            return found
    return []


def _missing(gang: Gang, member: Member, trial: bool) -> list[Task]:
    is_set, index = member
    if is_set:
        return [] if gang.set_satisfied(index) else _from_set(gang, index, trial)
    return [] if gang.active[index] >= gang.minimums[index] else _from_podset(gang, index, trial)


def _from_podset(gang: Gang, leaf: int, trial: bool) -> list[Task]:
    waiting = [task for task in gang.tasks[leaf].values() if to_place(task, trial)]
    lacking = gang.minimums[leaf] - gang.active[leaf]
    if len(waiting) <= 1:
        return waiting
    if lacking <= 0:
        return [min(waiting, key=_task_order)]
    waiting.sort(key=_task_order)
    return waiting[:lacking]


def _task_order(task: Task) -> tuple[int, int, int, float, str]:
    return task.order


def eviction_step(gang: Gang) -> tuple[list[Task], bool]:
    """The tasks to evict first: one to spare, else a subgroup to spare, else all; and whether more would remain.

    Nothing where disruption budgets allow none of that.
    """
    lone = gang.tree.simple and gang.set_minimums[0] is None
    if lone and gang.active[0] <= gang.minimums[0]:
        # What nearly every victim is: one group with nobody to spare.
        return _allowed(_active_tasks(gang, 0)), False
    tasks = _spare(gang, 0) or _allowed(_all_active(gang, 0))
    return tasks, 0 < len(tasks) < sum(gang.active)


def _allowed(tasks: list[Task]) -> list[Task]:
    return tasks if affordable(tasks) else []


def _spare(gang: Gang, index: int) -> list[Task]:
    satisfied = gang.satisfied_members(index)
    if not satisfied:
        return []
    members = gang.members(index)[::-1]
    if _has_surplus(gang, index):
        for is_set, child in members:
            found = _spare(gang, child) if is_set else _spare_task(gang, child)
            if found:
                return found
    if gang.needed(index) < satisfied:
        for is_set, child in members:
            found = _allowed(_all_active(gang, child) if is_set else _active_tasks(gang, child))
            if found:
                return found
    return []


def _has_surplus(gang: Gang, index: int) -> bool:
    node = gang.tree.sets[index]
    if gang.satisfied_members(index) > gang.needed(index):
        return True
    if any(gang.active[leaf] > gang.minimums[leaf] for leaf in node.podsets):
        return True
    return any(_has_surplus(gang, child) for child in node.sets)


def _spare_task(gang: Gang, leaf: int) -> list[Task]:
    if gang.active[leaf] <= gang.minimums[leaf]:
        return []
    return [task for task in _active_tasks(gang, leaf) if task.budget is None or task.budget.left > 0][:1]


def _active_tasks(gang: Gang, leaf: int) -> list[Task]:
    tasks = [task for task in gang.tasks[leaf].values() if task.status & st.ACTIVE]
    if len(tasks) > 1:
        tasks.sort(key=_task_order, reverse=True)
    return tasks


def _all_active(gang: Gang, index: int) -> list[Task]:
    return [task for leaf in gang.tree.podsets_under(index) for task in _active_tasks(gang, leaf)]


def trial_part(job: Job, pending: list[Task]) -> Gang:
    """A job with only its active tasks and the first few it wants to place; it needs no more than it holds."""
    active = [task for task in job.all_tasks() if task.status & st.ACTIVE]
    part = job.part([*active, *pending])
    part.minimums = [
        min(minimum, len(tasks)) if tasks else minimum for minimum, tasks in zip(job.minimums, part.tasks, strict=True)
    ]
    part.set_minimums = list(job.set_minimums)
    _clip(part, 0)
    return part


def _clip(part: Gang, index: int) -> bool:
    node = part.tree.sets[index]
    filled = sum(bool(part.tasks[leaf]) for leaf in node.podsets) + sum(_clip(part, child) for child in node.sets)
    minimum = part.set_minimums[index]
    if minimum is not None:
        part.set_minimums[index] = min(minimum, filled)
    return filled > 0
