"""One cycle: the state, the configuration, and the points where plugins take part in decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.config import Config
from spinney.scheduler.place.free_gpus import Spare
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.next_tasks import next_chunk
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.problems import NodeRefusal, OverLimit, OverQuota, Problem
from spinney.scheduler.state.refusal import Refusal
from spinney.scheduler.state.specs import Constraint, SpreadTerm
from spinney.scheduler.state.tasks import NOTHING, Task, TaskClass, Triple
from spinney.scheduler.state.topology_domains import Domains
from spinney.scheduler.state.transaction import Checkpoint, Move, Transaction
from spinney.scheduler.stopwatch import Stopwatch

if TYPE_CHECKING:
    from spinney.scheduler.place.node_ranking import Ranking
    from spinney.scheduler.place.reservations import Book
    from spinney.scheduler.plugins.reuse import Reuse

Scores = NDArray[np.float64]
# The reservations whose nodes a task may not use, by number; below 0 the freed nodes that it prefers.
Apart = tuple[int, ...]


class Scenario(Protocol):
    """What a scenario check sees: who wants room, and who would leave, by job."""

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
    """A queue in an order: judged by the job at its head, or by what victims so far and the next one give back."""

    queue: int
    gang: Gang | None
    given: Triple


class Attempt(NamedTuple):
    """One way to look for victims in a search: its name, how long it took and how it ended."""

    generator: str
    seconds: float
    result: str


class Searched(NamedTuple):
    """A search for victims: which action made it, in how many scenarios, how it ended, and the ways that were tried."""

    action: str
    scenarios: int
    result: str
    attempts: tuple[Attempt, ...]


class Turn(NamedTuple):
    """A gang that waits for its turn."""

    job: str
    queue: str
    priority: int


@dataclass(frozen=True, slots=True)
class Score:
    """A score over a set of nodes; all are summed, and a node scored -inf is left out.

    The role tells how it behaves while tasks of one class are placed: see `fill`. Unknown roles are always asked anew.
    """

    score: Callable[[Task, Rows], Scores | None]
    role: str = ""


class Hooks:
    """Extension points; each is a list that plugins append to."""

    def __init__(self) -> None:
        # Masks that hold for a class all cycle long, and masks that change with every placement.
        self.class_masks: list[Callable[[TaskClass], Mask]] = []
        self.task_masks: list[Callable[[Task, Rows], tuple[Mask, Refusal | None] | None]] = []
        # Why a node refuses a class, or a task; only asked when a gang could not be placed.
        self.class_refusals: list[Callable[[TaskClass, int], NodeRefusal | None]] = []
        self.task_refusals: list[Callable[[Task, int], NodeRefusal | None]] = []
        self.scores: list[Score] = []
        # Score of a shared GPU by the part of it in use; the first argument is None for a GPU not shared yet.
        self.gpu_scores: list[Callable[[float | None], float]] = []
        self.job_keys: list[Callable[[Gang], Any]] = []
        # Splits a set of nodes for a group of tasks: sets to try in order, or a reason why there is none.
        self.subsets: list[Callable[[Group, Rows], Iterable[Rows]]] = []
        # The same, but only asked for groups with a topology constraint.
        self.constrained_subsets: list[Callable[[Group, Rows], Iterable[Rows]]] = []
        self.before_job: list[Callable[[Gang], None]] = []
        self.over_capacity: list[Callable[[Job, list[Task]], Any]] = []
        self.over_quota: list[Callable[[Job, list[Task]], Any]] = []
        self.can_reclaim: list[Callable[[Gang], bool]] = []
        # Whether anything may be taken from a queue at all, and whether a job may be taken.
        self.reclaim_queue_filters: list[Callable[[Gang, int], bool]] = []
        # What may be taken from a queue at most, given the largest job in it: less than this; None is any amount.
        self.reclaim_caps: list[Callable[[Gang, int, float], float | None]] = []
        self.reclaim_filters: list[Callable[[Gang, Job], bool]] = []
        self.preempt_filters: list[Callable[[Gang, Job], bool]] = []
        self.reclaim_checks: list[Callable[[Scenario], bool]] = []
        self.preempt_checks: list[Callable[[Scenario], bool]] = []
        # Whether a queue may have an amount for a job at all, were it the only one; and whether one job goes before
        # another that nodes are kept for.
        self.entitled: list[Callable[[Job, Triple], bool]] = []
        self.outranks: list[Callable[[Job, Job], bool]] = []
        # How long a job is safe from a gang after it started.
        self.min_runtimes: list[Callable[[Gang, Job], float]] = []
        # Until when a job that started not long ago is safe from a gang; 0 if it is not.
        self.safe_until: list[Callable[[Gang, Job], float]] = []
        self.search_started: list[Callable[[], None]] = []
        self.generators: list[tuple[str, Callable[..., Any]]] = []
        # Told when everything is installed and nothing has been decided.
        self.opened: list[Callable[[], None]] = []
        # Which of two queues goes first: below 0 the left one, above 0 the right one.
        self.queue_orders: list[Callable[[Head, Head], int]] = []


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
        self.stopwatch = stopwatch or Stopwatch()
        # Gangs that are left out, with the error that a plan met on them; and the gang that is being looked at.
        self.aside = aside
        self.considering: Job | None = None
        self.nodes = state.nodes
        self.queues = state.queues
        self.transaction = Transaction(state)
        # Rows that an earlier cycle changed and changed back are nobody's concern.
        self.nodes.touched.clear()
        self.hooks = Hooks()
        # Nodes kept for gangs that have waited long; None without any.
        self.reserved: Book | None = None
        # Nodes that gangs which are being updated go back to; None without any.
        self.reuse: Reuse | None = None
        # Tasks that count as present while a vacancy is sought; None is every task on a node.
        self.staying: Callable[[Task], bool] | None = None
        self.all_rows: Rows = state.nodes.all_rows()
        # The nodes of the latest trial: no other has a GPU that is free, or will be; None before any.
        self.open_rows: Rows | None = None
        self.decided: list[tuple[str, Move, Job | None]] = []
        # Whether anybody is to leave.
        self.evicting = False
        # Why a job could not be placed, by job; plain data that texts are rendered from.
        self.problems: dict[str, list[Problem]] = {}
        self.staleness: dict[str, float | None] = {}
        # Gangs in the order of their turn, where a plugin works it out.
        self.turns: list[Turn] = []
        self.searches: list[Searched] = []
        # Fair share of each queue and the cluster's total; empty without the plugin that works them out.
        self.fair: list[list[float]] = []
        self.total: list[float] = [0.0, 0.0, 0.0]
        # Why a job's queue refuses an amount, or None; None without queues.
        self.limits: Callable[[Job, Triple], OverLimit | OverQuota | None] | None = None
        # Chooses a task's NUMA zones before it is moved to a node; None without the plugin.
        self.assign: Callable[[Task, int], None] | None = None
        # Names of the zones that tasks' zones are numbers of, by row.
        self.zone_names: dict[int, list[str]] = {}
        # Scores the devices of a node anew for a task that shares them; None leaves the GPU scores as they are.
        self.choose: Callable[[Task, int, list[tuple[float, int]]], list[tuple[float, int]]] | None = None
        # Nodes by class, best first; and whether all scores have roles that allow that.
        self.rankings: dict[tuple[int, Apart], Ranking] = {}
        self.fillable: bool | None = None
        # Classes that found no room, with the version of the state and the node set.
        self.refused: dict[tuple[int, Apart], tuple[int, Rows]] = {}
        # Shared GPUs with room on each row, by class, with the number of changes to such GPUs that it holds for.
        self.shared_room: dict[int, tuple[int, NDArray[np.intp]]] = {}
        # The most of each resource that any node has.
        rows = self.all_rows
        self.largest_node = self.nodes.allocatable[rows].max(axis=0) if len(rows) else np.zeros(len(state.columns))
        # Sorted jobs that the evicting actions share; None when something else has changed jobs.
        self.pools: Any = None
        self.spare = Spare(state.nodes, state.gpus)
        # Why nodes of a set refuse a class, with the version of the state that holds for.
        self.refusals: dict[tuple[int, Apart], tuple[int, Rows, tuple[tuple[NodeRefusal, int], ...]]] = {}
        # Nodes that a class is to be spread over, by class and constraint.
        self.spread_over: dict[tuple[int, SpreadTerm], Rows] = {}
        self._masks: dict[int, Mask] = {}
        self._too_large: dict[int, bool] = {}
        self._domains: dict[str, Domains] = {}
        memories = [int(memory) for memory in state.nodes.gpu_memory[self.all_rows] if memory > 100]
        self.smallest_gpu = min(memories, default=100)
        self.largest_gpu = max(memories, default=100)

    def chunk(self, gang: Gang, trial: bool = True) -> list[Task]:
        """The tasks of a gang to place next; kept until a task of its job changes."""
        job = gang.job
        if job.chunk is None:
            job.chunk, job.want = next_chunk(job, trial), None
        if gang is job:
            return job.chunk
        if gang.chunk is None or gang.chunk_of is not job.chunk:
            gang.chunk, gang.chunk_of, gang.want = next_chunk(gang, trial), job.chunk, None
        return gang.chunk

    def wanted(self, gang: Gang, trial: bool = True) -> Triple:
        """What the next tasks of a gang ask for, in the units of queues."""
        job = gang.job
        if gang.want is not None and job.chunk is not None and (gang is job or gang.chunk_of is job.chunk):
            return gang.want
        tasks = self.chunk(gang, trial)
        want, by_memory = NOTHING, False
        for task in tasks:
            one = task.cls.wanted(self.smallest_gpu)
            want = (want[0] + one[0], want[1] + one[1], want[2] + one[2])
            by_memory = by_memory or task.cls.memory > 0
        # What GPU memory is worth changes with the nodes, so it is not kept for the next cycle.
        gang.want = None if by_memory else want
        return want

    def apart(self, task: Task) -> Apart:
        """What sets a task apart from others of its class: nodes that are kept from it, or that it goes back to."""
        barred = () if self.reserved is None else self.reserved.barred(task)
        return barred if self.reuse is None else (self.reuse.number(task), *barred)

    def class_mask(self, cls: TaskClass) -> Mask:
        """Nodes that a class may run on, for all that does not change during the cycle."""
        mask = self._masks.get(cls.id)
        if mask is None:
            mask = self.nodes.live.copy()
            for hook in self.hooks.class_masks:
                mask &= hook(cls)
            self._masks[cls.id] = mask
        return mask

    def too_large(self, cls: TaskClass) -> bool:
        """Whether a class asks for more of something than any node has; what is shared is not looked at."""
        known = self._too_large.get(cls.id)
        if known is None:
            known = not cls.shared and bool((cls.request > self.largest_node).any())
            self._too_large[cls.id] = known
        return known

    def domains(self, topology: str) -> Domains | None:
        """A topology in arrays; None if there is no such topology."""
        found = self._domains.get(topology)
        spec = self.state.topologies.get(topology)
        if found is None and spec is not None:
            found = self._domains[topology] = Domains(spec, self.nodes)
        return found

    def resolved(self, constraint: Constraint) -> Constraint:
        """A constraint with its required level as a node label."""
        domains = self.domains(constraint.topology)
        if domains is None:
            return constraint
        return replace(constraint, required=domains.aliases.get(constraint.required, constraint.required))

    def commit(self, action: str, since: Checkpoint, beneficiary: Job | None = None) -> None:
        """Take the moves since a point as decided."""
        for move in self.transaction.settle(since):
            self.decided.append((action, move, beneficiary))
            if move.kind == "evict" and move.task.job is not None:
                job = move.task.job
                self.evicting = True
                self.transaction.set(job, "last_eviction", self.now)

    def pending_jobs(self) -> list[Job]:
        """Jobs with pending tasks, in a queue that can hold jobs."""
        queues = self.queues
        return [
            job
            for job in self.state.jobs.values()
            if job.pending and job.queue >= 0 and queues.leaf(job.queue) and job.key not in self.aside
        ]
