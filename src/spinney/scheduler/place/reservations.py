"""Reservations: nodes kept for large gangs from cycle to cycle, so that a stream of small gangs does not starve them.

A gang that has waited long gets a reservation: nodes that only it may fill. Others use them as guests: they are evicted
when the gang can start, or end before that. A claim is weaker: a gang that others were evicted for is served first.
Reservations and claims enter and leave `plan` as data; without history there are none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.problems import QueueKept
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import UNLIMITED
from spinney.scheduler.state.tasks import Task, Triple

KEPT = Refusal(Code.RESERVED)
# Where a shard saves its reservations: the suffix of its ConfigMap's name, and the key.
RECORD_SUFFIX, RECORD_KEY = "-record", "reservations"
# How long reserved nodes may take to empty before others are chosen; doubled each time.
PATIENCE = 3600.0
# Guests are saved by name, and the record of a shard must stay small.
MOST_GUESTS = 2000


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes kept for a gang since a moment, and the tasks that use its room until it can start."""

    job: str
    since: float
    nodes: tuple[str, ...] = ()
    guests: tuple[str, ...] = ()
    # The last deadline of running tasks that the gang has to wait for; 0 for none.
    starts: float = 0.0
    # When these nodes were chosen, how long they are waited for, and nodes that were waited for in vain.
    chosen: float = 0.0
    patience: float = PATIENCE
    in_vain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reservations:
    """What one cycle passes to the next; `since` is the time of the first cycle."""

    since: float
    held: tuple[Reservation, ...] = ()
    # Gangs that wait for resources of evicted tasks, and since when.
    claims: tuple[tuple[str, float], ...] = ()

    def without(self, job: str) -> Reservations:
        """Return the reservations without those of one gang."""
        held = tuple(reservation for reservation in self.held if reservation.job != job)
        return Reservations(self.since, held, tuple(claim for claim in self.claims if claim[0] != job))


@dataclass(slots=True)
class ActiveReservation:
    """A reservation inside a cycle."""

    job: Job
    since: float
    rows: set[int]
    guests: set[str]
    starts: float
    chosen: float
    patience: float = PATIENCE
    in_vain: set[int] = field(default_factory=set)


@dataclass(slots=True)
class CycleReservations:
    """The reservations of a cycle, and who may use what they keep."""

    cycle: Cycle
    since: float
    active: list[ActiveReservation] = field(default_factory=list)
    claims: dict[str, float] = field(default_factory=dict)
    # Jobs that use a part of a queue that is reserved for another.
    queue_guests: set[str] = field(default_factory=set)

    @staticmethod
    def of(cycle: Cycle, earlier: Reservations) -> CycleReservations:
        """Return the reservations of the last cycle that still hold."""
        book = CycleReservations(cycle, earlier.since)
        rows = cycle.nodes.rows
        for reservation in earlier.held:
            job = cycle.state.jobs.get(reservation.job)
            if job is not None and waits(cycle, job, reservation.since):
                here, in_vain = (
                    {rows[name] for name in names if name in rows} for names in (reservation.nodes, reservation.in_vain)
                )
                times = (reservation.starts, reservation.chosen, reservation.patience)
                book.active.append(
                    ActiveReservation(job, reservation.since, here, set(reservation.guests), *times, in_vain)
                )
        for key, since in earlier.claims:
            job = cycle.state.jobs.get(key)
            if job is not None and waits(cycle, job, since):
                book.claims[key] = since
        return book

    def holders(self) -> list[Job]:
        """Return the gangs with a reservation or a claim."""
        return [reservation.job for reservation in self.active] + [self.cycle.state.jobs[key] for key in self.claims]

    def barred(self, task: Task) -> tuple[int, ...]:
        """The reservations whose nodes a task may not use."""
        return tuple(
            number
            for number, reservation in enumerate(self.active)
            if reservation.rows and not self._may_use(task, reservation)
        )

    def _may_use(self, task: Task, reservation: ActiveReservation) -> bool:
        job = task.job
        if (
            job is None
            or job is reservation.job
            or self.outranks(job, reservation.job)
            or self.may_visit(task, reservation)
        ):
            return True
        return task.spec.lifetime is not None and self.cycle.now + task.spec.lifetime <= reservation.starts

    def outranks(self, job: Job, holder: Job) -> bool:
        """Whether a job is served before one that has a reservation."""
        return any(rule(job, holder) for rule in self.cycle.hooks.outranks)

    def may_visit(self, task: Task, reservation: ActiveReservation) -> bool:
        """Whether a task may be a guest: nothing protects it from eviction."""
        job = task.job
        if job is None or not job.preemptible or task.spec.budgets or len(reservation.guests) >= MOST_GUESTS:
            return False
        return not any(rule(reservation.job, job) > 0 for rule in self.cycle.hooks.min_runtimes)

    def mask(self, task: Task, rows: Rows) -> tuple[Mask, Refusal] | None:
        """Return the nodes that no reservation keeps from a task."""
        barred = self.barred(task)
        if not barred:
            return None
        reservation = np.zeros(len(self.cycle.nodes.live), dtype=np.bool_)
        for number in barred:
            reservation[list(self.active[number].rows)] = True
        return ~reservation[rows], KEPT

    def in_queue(self, job: Job, tasks: list[Task]) -> QueueKept | None:
        """Return why a job may not use the limit or quota that its queue, or one above, reserves for another."""
        wanted = self.cycle.wanted(job)
        for reservation in self.active:
            if job is reservation.job or self.outranks(job, reservation.job):
                continue
            problem = self._taken(job, wanted, reservation)
            if problem is None:
                continue
            if not all(self.may_visit(task, reservation) for task in tasks):
                return problem
            self.queue_guests.add(job.key)
        return None

    def _taken(self, job: Job, wanted: Triple, reservation: ActiveReservation) -> QueueKept | None:
        queues, state = self.cycle.queues, self.cycle.state
        needed = self.cycle.wanted(reservation.job)
        tables = [(queues.limit, state.charged)]
        if not job.preemptible and not reservation.job.preemptible:
            tables.append((queues.quota, state.fixed))
        shared = set(queues.path[reservation.job.queue])
        for queue in (number for number in queues.path[job.queue] if number in shared):
            for bounds, held in tables:
                for resource, amount in enumerate(wanted):
                    bound, has = bounds[queue][resource], held[queue][resource]
                    if bound != UNLIMITED and amount and needed[resource] and has + amount + needed[resource] > bound:
                        return QueueKept(queues.names[queue], resource, bound, has, wanted)
        return None

    def guests_of(self, reservation: ActiveReservation) -> list[Task]:
        """Return the guests of a reservation that still run."""
        tasks = (self.cycle.state.tasks.get(key) for key in sorted(reservation.guests))
        return [
            task for task in tasks if task is not None and task.status & st.ACTIVE and task.job is not reservation.job
        ]


def waits(cycle: Cycle, job: Job, since: float) -> bool:
    """Whether a gang waits for its first tasks since before a moment; a later gang of the same name does not count."""
    in_queue = job.queue >= 0 and cycle.queues.leaf(job.queue)
    return in_queue and job.created <= since and bool(job.pending) and job.ready() and not job.set_satisfied(0)


def guests_among(book: CycleReservations, reservation: ActiveReservation, placed: Iterable[Task]) -> set[str]:
    """Return the tasks placed in this cycle that are guests, on reserved nodes or on a reserved part of a queue."""
    return {
        task.key
        for task in placed
        if task.job is not None
        and task.job is not reservation.job
        and (task.node in reservation.rows or task.job.key in book.queue_guests)
        and book.may_visit(task, reservation)
        and not book.outranks(task.job, reservation.job)
    }
