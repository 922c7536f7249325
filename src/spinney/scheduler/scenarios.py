"""Scenarios: sets of tasks to evict, built up victim by victim from the least deserving on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.filters import GpuFilter, NodeFilter, TopologyFilter, freed_gpus, spare_gpus
from spinney.scheduler.gangs import Gang, Job, eviction_step
from spinney.scheduler.nodes import Rows
from spinney.scheduler.order import JobOrder
from spinney.scheduler.tasks import Task

# Tasks of one job that go together.
Batch = list[Task]


class Trial:
    """One scenario: who wants room, the victims settled for by smaller trials, and those tried now."""

    __slots__ = ("pending", "potential", "preemptor", "recorded")

    def __init__(self, preemptor: Gang, pending: list[Task], recorded: list[Batch], potential: list[Batch]) -> None:
        self.preemptor = preemptor
        self.pending = pending
        self.recorded = recorded
        self.potential = potential

    def tasks(self) -> list[Task]:
        """Every task to evict, once."""
        found = {task.key: task for batch in (*self.recorded, *self.potential) for task in batch}
        return list(found.values())

    def victims(self) -> list[tuple[Job, list[Task]]]:
        """Every task to evict, by job."""
        by_job: dict[str, tuple[Job, list[Task]]] = {}
        for task in self.tasks():
            assert task.job is not None
            by_job.setdefault(task.job.key, (task.job, []))[1].append(task)
        return list(by_job.values())

    def batch_of(self, task: Task) -> Batch:
        """The batch that a victim belongs to."""
        return next(batch for batch in (*self.recorded, *self.potential) if any(one is task for one in batch))

    def fingerprint(self) -> tuple[object, ...]:
        """Equal for scenarios that would come out alike."""
        recorded = frozenset(task.key for batch in self.recorded for task in batch)
        potential = frozenset(task.key for batch in self.potential for task in batch)
        return (tuple(task.key for task in self.pending), recorded, potential)


class Search:
    """What a scenario generator works on: a gang, or the part of it being probed, and an order of victims."""

    __slots__ = ("cycle", "feasible", "pending", "preemptor", "recorded", "victim_order")

    def __init__(
        self,
        cycle: Cycle,
        preemptor: Gang,
        recorded: list[Batch],
        victim_order: Callable[[], JobOrder],
        feasible: Rows,
    ) -> None:
        self.cycle = cycle
        self.preemptor = preemptor
        self.pending = cycle.chunk(preemptor)
        self.recorded = recorded
        self.victim_order = victim_order
        self.feasible = feasible


class Accumulator:
    """Adds victims one step at a time, and says when enough are gone for the search to make sense."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.potential: list[Batch] = []
        self._order = search.victim_order()
        self._recorded = {task.key for batch in search.recorded for task in batch}
        cycle = search.cycle
        filters = [NodeFilter.of(cycle, search), TopologyFilter.of(cycle, search), GpuFilter.of(cycle, search)]
        self._filters = [one for one in filters if one is not None]
        for one in self._filters:
            for batch in search.recorded:
                one.add(batch)

    def steps(self) -> Iterator[None]:
        """Stop at every accumulation that passes the filters, the empty one first."""
        if not self.search.pending:
            return
        if self._valid():
            yield
        while self._order:
            if self._add_next() and self._valid():
                yield

    def _valid(self) -> bool:
        return all(one.possible() for one in self._filters)

    def _add_next(self) -> bool:
        gang = self._order.pop()
        step, more = eviction_step(gang)
        if any(task.key in self._recorded for task in step):
            rest = [task for task in gang.all_tasks() if task.key not in self._recorded]
            if rest:
                self._order.push(gang.part(rest))
            return False
        if more:
            gone = {task.key for task in step}
            self._order.push(gang.part(task for task in gang.all_tasks() if task.key not in gone))
        if step:
            self.potential.append(step)
            for one in self._filters:
                one.add(step)
        return True

    def trial(self, potential: list[Batch]) -> Trial:
        """A scenario with some of the victims so far."""
        return Trial(self.search.preemptor, self.search.pending, self.search.recorded, potential)


def node_local(search: Search) -> Iterator[Trial]:
    """Victims on one node at a time: each node of the latest victim, with every victim so far that touches it."""
    victims = Accumulator(search)
    names = search.cycle.nodes
    for _ in victims.steps():
        if not victims.potential:
            if search.recorded:
                yield victims.trial([])
            continue
        latest = victims.potential[-1][-1].job
        assert latest is not None
        rows = sorted({task.node for task in latest.all_tasks() if task.node >= 0}, key=names.name)
        seen: set[frozenset[str]] = set()
        for row in rows:
            potential = _jobs_on(victims, row)
            key = frozenset(task.key for batch in potential for task in batch)
            if key and key not in seen:
                seen.add(key)
                yield victims.trial(potential)


def _jobs_on(victims: Accumulator, row: int) -> list[Batch]:
    """Every victim of the jobs that have one on a node, job by job."""
    touched = {_job(task).key for batch in victims.potential for task in batch if task.node == row}
    by_job: dict[str, Batch] = {}
    for batch in victims.potential:
        key = _job(batch[0]).key
        if key in touched:
            by_job.setdefault(key, []).extend(batch)
    return list(by_job.values())


def multi_node(search: Search) -> Iterator[Trial]:
    """Victims on several nodes at once: as few nodes as can hold the gang, the least roomy first, then more."""
    victims = Accumulator(search)
    for _ in victims.steps():
        if not victims.potential:
            yield victims.trial([])
            continue
        yield from _prefixes(search, victims)


def _prefixes(search: Search, victims: Accumulator) -> Iterator[Trial]:
    batches = list(victims.potential)
    first_seen: dict[int, int] = {}
    touching: dict[int, list[int]] = {}
    room: dict[int, float] = {}
    freed = _freed_by(search)
    capacity = spare_gpus(search.cycle)
    position = 0
    for number, batch in enumerate(batches):
        for task in batch:
            row = task.node
            if row >= 0:
                first_seen.setdefault(row, position)
                if number not in touching.setdefault(row, []):
                    touching[row].append(number)
                room.setdefault(row, float(capacity[row]) + freed.get(row, 0.0))
                room[row] += freed_gpus(search.cycle, task)
            position += 1
    demands = [task.cls.quota for task in search.pending]
    smallest = min(demands)
    rows = [row for row in touching if smallest <= 0 or room[row] >= smallest]
    rows.sort(key=lambda row: (room[row], first_seen[row]))
    base = sum(float(capacity[row]) + freed.get(int(row), 0.0) for row in search.feasible if int(row) not in touching)
    count = _covering([room[row] for row in rows], sum(demands) - base)
    step = 1
    while count <= len(rows):
        picked = sorted({number for row in rows[:count] for number in touching[row]})
        yield victims.trial([batches[number] for number in picked])
        if count == len(rows):
            return
        count = min(len(rows), count + step)
        step *= 2


def _covering(rooms: list[float], demand: float) -> int:
    """How many rooms from the front hold a demand; one more than there are if all do not."""
    if demand <= 0:
        return 0
    total = 0.0
    for number, room in enumerate(rooms, start=1):
        total += room
        if total >= demand:
            return number
    return len(rooms) + 1


def _freed_by(search: Search) -> dict[int, float]:
    freed: dict[int, float] = {}
    for batch in search.recorded:
        for task in batch:
            if task.node >= 0:
                freed[task.node] = freed.get(task.node, 0.0) + freed_gpus(search.cycle, task)
    return freed


def _job(task: Task) -> Job:
    assert task.job is not None
    return task.job
