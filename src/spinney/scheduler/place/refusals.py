"""Why nodes refuse a task, counted by reason: what users read first when something does not start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import islice

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.task_placement import free, has_room
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.problems import NodeRefusal, NoRoom
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.tasks import GPU, UNSERVED, Task, Vector, mig_slices

# Of the resources that no node offers, so many are named.
_MOST_UNSERVED = 8


class RefusalCounts:
    """Refusals of a class, with the version of the state and the node set that they hold for."""

    def __init__(self, _: Cycle) -> None:
        self.by_class: dict[tuple[int, Hashable], tuple[int, Rows, tuple[tuple[NodeRefusal, int], ...]]] = {}


def no_room(cycle: Cycle, gang: Gang, task: Task, placed: int, rows: Rows) -> NoRoom:
    """The problem of a task that no node took."""
    leaf, job = task.podset, gang.job
    minimum = gang.minimums[leaf]
    needs_gang = any(minimum_of_leaf > 1 for minimum_of_leaf in gang.minimums) and job.used[leaf] < minimum
    lone = len(gang.tree.podsets) == 1 and gang.tree.podsets[0].name == "default"
    return NoRoom(
        task=f"{task.spec.namespace}/{task.spec.name or task.key}",
        group=gang.tree.podsets[leaf].name,
        found=placed,
        required=minimum,
        gang=needs_gang,
        subgroups=not lone,
        refusals=_refusals(cycle, task, rows),
        needed=task.cls.triple,
        gpu_memory=task.cls.memory,
        too_large=cycle.sizes.too_large(task.cls) or task.cls.memory > cycle.sizes.largest_gpu,
        selective=bool(task.cls.constraints.node_selector or task.cls.constraints.node_affinity),
    )


def _refusals(cycle: Cycle, task: Task, rows: Rows) -> tuple[tuple[NodeRefusal, int], ...]:
    """Reasons with their numbers of nodes, in a fixed order; kept for a class while nothing changes."""
    if not task.cls.plain or cycle.state.inter_pod:
        return _in_order(count(cycle, task, rows))
    key = (task.cls.id, cycle.placement_key(task))
    counts = cycle.get(RefusalCounts).by_class
    version, where, refusals = counts.get(key, (-1, rows, ()))
    if version == cycle.transaction.version and where is rows:
        return refusals
    refusals = _in_order(count(cycle, task, rows))
    counts[key] = (cycle.transaction.version, rows, refusals)
    return refusals


def _in_order(counts: Counter[NodeRefusal]) -> tuple[tuple[NodeRefusal, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))


def count(cycle: Cycle, task: Task, rows: Rows) -> Counter[NodeRefusal]:
    """How many nodes refuse a task, by reason."""
    counts: Counter[NodeRefusal] = Counter()
    if task.cls.constraints.impossible is not None:
        # A reason that holds on every node hides what single nodes lack.
        return Counter({task.cls.constraints.impossible: len(rows)})
    fits = has_room(cycle, task.cls, rows, free(cycle, rows))
    counts.update(_short(cycle, task, rows[~fits]))
    roomy = rows[fits]
    allowed = cycle.class_mask(task.cls)[roomy]
    for row in roomy[~allowed]:
        counts.update(filter(None, (hook(task.cls, int(row)) for hook in cycle.hooks.class_refusals)))
    roomy = roomy[allowed]
    for row in roomy if cycle.hooks.task_refusals else ():
        counts.update(filter(None, (hook(task, int(row)) for hook in cycle.hooks.task_refusals)))
    for mask_hook in cycle.hooks.task_masks:
        answer = mask_hook(task, roomy)
        if answer is not None and answer[1] is not None:
            counts[answer[1]] += int((~answer[0]).sum())
            roomy = roomy[answer[0]]
    return +counts


def _short(cycle: Cycle, task: Task, rows: Rows) -> dict[NodeRefusal, int]:
    """What nodes without room lack now; room that is being released does not count."""
    cls, nodes = task.cls, cycle.nodes
    available: Vector = nodes.idle[rows]
    lacking: dict[NodeRefusal, int] = {}
    for column, name in enumerate(cycle.state.columns.names):
        wanted = cls.request[column]
        if wanted <= 0 or column == UNSERVED or (column == GPU and cls.memory):
            continue
        short = int(np.count_nonzero(available[:, column] < wanted))
        if short:
            lacking[Refusal(Code.MIG_PROFILE if mig_slices(name) else Code.RESOURCE, name)] = short
    for name in islice(cls.unserved, _MOST_UNSERVED):
        lacking[Refusal(Code.MIG_PROFILE if mig_slices(name) else Code.RESOURCE, name)] = len(rows)
    if cls.memory:
        small = int(np.count_nonzero(nodes.gpu_memory[rows] < cls.memory))
        if small:
            lacking[Refusal(Code.GPU_MEMORY)] = small
    return lacking
