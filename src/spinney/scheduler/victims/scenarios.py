"""Scenarios: which victims to try together, one generator for each way to look for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice

import numpy as np

from spinney.scheduler.state.tasks import affordable
from spinney.scheduler.victims.freed_gpus import Batch, FreedGpus
from spinney.scheduler.victims.trials import Accumulator, Search, Trial, job_of

# Up to this many eviction steps, every choice of them is tried.
FEW_ENOUGH = 8


def node_local(search: Search) -> Iterator[Trial]:
    """Yield victims of one node at a time: each node of the latest victim, with all victims so far on it."""
    if search.one_node_is_not_enough():
        return
    victims = Accumulator(search)
    nodes = search.cycle.nodes
    for _ in victims.steps():
        if not victims.potential:
            if search.recorded and not search.too_small([]):
                yield victims.trial([])
            continue
        latest = job_of(victims.potential[-1][-1])
        rows = list({task.node for task in latest.all_tasks() if task.node >= 0})
        if len(rows) > 1:
            rows.sort(key=nodes.name)
        seen: set[frozenset[str]] = set()
        for row in rows:
            potential = victims.jobs_on(row)
            if not potential or search.too_small(potential):
                continue
            key = frozenset(task.key for batch in potential for task in batch)
            if key not in seen:
                seen.add(key)
                yield victims.trial(potential)


def multi_node(search: Search) -> Iterator[Trial]:
    """Yield victims of several nodes: as few nodes as can hold the gang, those with the least room first, then more."""
    victims = Accumulator(search)
    for _ in victims.steps():
        if not victims.potential:
            if not search.too_small([]):
                yield victims.trial([])
            continue
        leaving = victims.leaving()
        if not search.too_small_together(leaving):
            yield from _prefixes(search, victims, leaving)


def _prefixes(search: Search, victims: Accumulator, leaving: FreedGpus) -> Iterator[Trial]:
    batches = list(victims.potential)
    touched, first, place = np.unique(leaving.rows, return_index=True, return_inverse=True)
    room = search.room[touched]
    # One by one, so that floating-point sums do not depend on other rows.
    np.add.at(room, place, leaving.gpus)
    demands = [task.cls.quota for task in search.pending]
    smallest = min(demands)
    order = np.lexsort((first, room))
    if smallest > 0:
        order = order[room[order] >= smallest]
    rows = touched[order]
    untouched = search.feasible[~search.flags(touched)[search.feasible]]
    base = sum(room for room in search.room[untouched].tolist() if room > 0)
    count = _covering(room[order].tolist(), sum(demands) - base)
    step = 1
    while count <= len(rows):
        inside = search.flags(rows[:count])[leaving.rows]
        picked = dict.fromkeys(leaving.batch[inside].tolist())
        yield victims.trial(victims.within_budgets([batches[number] for number in picked]))
        if count == len(rows):
            return
        count = min(len(rows), count + step)
        step *= 2


def every_choice(search: Search) -> Iterator[Trial]:
    """Yield every set of victims if there are few, small sets and low-ranked victims first."""
    steps = [step for step in islice(search.victims.steps(set()), FEW_ENOUGH + 1) if step]
    if not search.pending or len(steps) > FEW_ENOUGH:
        return
    for size in range(1, len(steps) + 1):
        for chosen in combinations(range(len(steps)), size):
            potential = [steps[number] for number in chosen]
            if (
                _from_the_front(steps, chosen)
                and affordable(list(chain(*potential)))
                and not search.too_small(potential)
            ):
                yield Trial(search.preemptor, search.pending, [], potential)


def _from_the_front(steps: list[Batch], chosen: tuple[int, ...]) -> bool:
    """Whether each job's eviction steps are taken in order: surplus tasks before the core."""
    taken = set(chosen)
    return all(
        earlier in taken for number in chosen for earlier in range(number) if _same_job(steps[earlier], steps[number])
    )


def _same_job(batch: Batch, other: Batch) -> bool:
    return bool(batch and other) and batch[0].job is other[0].job


def _covering(rooms: list[float], demand: float) -> int:
    """Return how many rooms from the front hold a demand; one more than there are if all together do not."""
    if demand <= 0:
        return 0
    total = 0.0
    for number, room in enumerate(rooms, start=1):
        total += room
        if total >= demand:
            return number
    return len(rooms) + 1
