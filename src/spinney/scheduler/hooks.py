"""Extension points of a cycle: plugins append functions to these lists, and the core calls them in order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.problems import NodeRefusal, OverLimit, OverQuota
from spinney.scheduler.state.refusal import Refusal
from spinney.scheduler.state.specs import Constraint, ZoneShares
from spinney.scheduler.state.tasks import Task, TaskClass, Triple

Scores = NDArray[np.float64]


class Scenario(Protocol):
    """What a scenario check sees: the gang that needs room, and the victims that would leave for it."""

    @property
    def preemptor(self) -> Gang:
        """The gang, or the part of it, that room is made for."""
        ...

    @property
    def pending(self) -> list[Task]:
        """The tasks that room is made for."""
        ...

    def victims(self) -> list[tuple[Job, list[Task]]]:
        """The tasks evicted in the trial, by job; those placed again are active."""
        ...


class Group(NamedTuple):
    """Tasks that are placed together: a subgroup, or a whole gang, with its constraint and its leaves."""

    gang: Gang
    name: str
    constraint: Constraint | None
    leaves: list[int]
    tasks: list[Task]


class Head(NamedTuple):
    """A queue in an order: judged by its first job, or by what its victims so far and the next one give back."""

    queue: int
    gang: Gang | None
    given: Triple


@dataclass(frozen=True, slots=True)
class Score:
    """A score over a set of nodes; all are summed, and a node scored -inf is left out.

    The role says how it changes while tasks of one class are placed: see `place.bulk_placement`. A score without a
    role is computed again for every task.
    """

    score: Callable[[Task, Rows], Scores | None]
    role: str = ""


@dataclass(slots=True)
class Hooks:
    """The lists, by what they decide."""

    # Which nodes take a task: masks that hold for a class all cycle long, and masks that change with placements.
    class_masks: list[Callable[[TaskClass], Mask]] = field(default_factory=list)
    task_masks: list[Callable[[Task, Rows], tuple[Mask, Refusal | None] | None]] = field(default_factory=list)
    # Why a node refuses a class, or a task; only asked when a gang could not be placed.
    class_refusals: list[Callable[[TaskClass, int], NodeRefusal | None]] = field(default_factory=list)
    task_refusals: list[Callable[[Task, int], NodeRefusal | None]] = field(default_factory=list)
    # Which tasks on nodes count as present for rules between pods; all rules must accept a task.
    presence: list[Callable[[Task], bool]] = field(default_factory=list)
    # Which of these nodes is best.
    scores: list[Score] = field(default_factory=list)
    # Which shared GPU of a node is best, by the part of it in use; None stands for a GPU not shared yet.
    gpu_scores: list[Callable[[float | None], float]] = field(default_factory=list)
    # Replaces the scores of a node's GPUs, given as (score, device), for a task that shares them.
    gpu_orders: list[Callable[[Task, int, list[tuple[float, int]]], list[tuple[float, int]]]] = field(
        default_factory=list
    )
    # Node sets to try in order for a group of tasks; the second list is only asked for groups with a constraint.
    subsets: list[Callable[[Group, Rows], Iterable[Rows]]] = field(default_factory=list)
    constrained_subsets: list[Callable[[Group, Rows], Iterable[Rows]]] = field(default_factory=list)
    # What distinguishes a task from others of its class: results are shared among tasks with equal keys only.
    placement_keys: list[Callable[[Task], Hashable]] = field(default_factory=list)
    # Called before a gang is placed, and before a task is moved to a node.
    before_job: list[Callable[[Gang], None]] = field(default_factory=list)
    before_placement: list[Callable[[Task, int], None]] = field(default_factory=list)
    # The NUMA zones that a placed task is expected to get.
    zone_shares: list[Callable[[Task, int], ZoneShares]] = field(default_factory=list)

    # The order of jobs in a queue, and of two queues: below 0 the left one is first, above 0 the right one.
    job_keys: list[Callable[[Gang], Any]] = field(default_factory=list)
    queue_orders: list[Callable[[Head, Head], int]] = field(default_factory=list)
    # Why a job's next tasks, or an amount, go beyond what its queue may hold; or beyond what may not be evicted there.
    over_capacity: list[Callable[[Job, list[Task]], Any]] = field(default_factory=list)
    over_quota: list[Callable[[Job, list[Task]], Any]] = field(default_factory=list)
    queue_limits: list[Callable[[Job, Triple], OverLimit | OverQuota | None]] = field(default_factory=list)
    # Whether a queue may have an amount for a job, were it the only one; and whether a job goes before another that
    # nodes are reserved for.
    entitled: list[Callable[[Job, Triple], bool]] = field(default_factory=list)
    outranks: list[Callable[[Job, Job], bool]] = field(default_factory=list)

    # Whether a gang may reclaim, from which queues, less than how much of each (None: any amount), and which jobs.
    can_reclaim: list[Callable[[Gang], bool]] = field(default_factory=list)
    reclaim_queue_filters: list[Callable[[Gang, int], bool]] = field(default_factory=list)
    reclaim_caps: list[Callable[[Gang, int, float], float | None]] = field(default_factory=list)
    reclaim_filters: list[Callable[[Gang, Job], bool]] = field(default_factory=list)
    preempt_filters: list[Callable[[Gang, Job], bool]] = field(default_factory=list)
    # Whether a scenario is allowed, once everyone in it is placed.
    reclaim_checks: list[Callable[[Scenario], bool]] = field(default_factory=list)
    preempt_checks: list[Callable[[Scenario], bool]] = field(default_factory=list)
    # How long a job is protected from a gang after it started.
    min_runtimes: list[Callable[[Gang, Job], float]] = field(default_factory=list)
    # Called before the search for victims begins; and the ways to search, by name.
    search_started: list[Callable[[], None]] = field(default_factory=list)
    generators: list[tuple[str, Callable[..., Any]]] = field(default_factory=list)

    # Called once all plugins are installed and nothing has been decided.
    opened: list[Callable[[], None]] = field(default_factory=list)
