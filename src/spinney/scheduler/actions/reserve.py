"""Reservations in a cycle: serve their gangs first, evict guests if that is enough, renew the rest."""

from __future__ import annotations

from collections import Counter

import numpy as np

from spinney.scheduler.actions import allocate
from spinney.scheduler.config import ALLOCATE
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.placer import Placers
from spinney.scheduler.place.reservations import (
    ActiveReservation,
    CycleReservations,
    Reservation,
    Reservations,
    guests_among,
    waits,
)
from spinney.scheduler.place.reserved_nodes import choose_nodes
from spinney.scheduler.place.task_placement import allowed, choose_gpus
from spinney.scheduler.share.job_order import JobOrder
from spinney.scheduler.share.sorted_jobs import job_key
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.problems import Reserved
from spinney.scheduler.state.tasks import Task
from spinney.scheduler.victims.search import overspent
from spinney.scheduler.victims.trials import Trial

NAME = "reservation"
# How many gangs of one queue are looked at for one that could ever fit.
MOST_TRIED = 8


def begin(cycle: Cycle, earlier: Reservations) -> CycleReservations:
    """Apply the reservations of the last cycle, and place their gangs and those that go before them."""
    book = CycleReservations.of(cycle, earlier)
    cycle.hooks.placement_keys.append(book.barred)
    cycle.hooks.task_masks.append(book.mask)
    cycle.hooks.over_capacity.append(book.in_queue)
    holders = book.holders()
    if not holders or ALLOCATE not in cycle.config.actions:
        return book
    keys = {job.key for job in holders}
    ahead = [
        job
        for job in cycle.pending_jobs()
        if job.key not in keys and job.ready() and any(book.outranks(job, holder) for holder in _weakest(holders))
    ]
    order = JobOrder.of_jobs(cycle, [*holders, *ahead], None)
    while order:
        allocate.place_next(cycle, order.pop().job)
    for reservation in book.active:
        if waits(cycle, reservation.job, reservation.since):
            _start_without_guests(cycle, book, reservation)
    return book


def _weakest(holders: list[Job]) -> list[Job]:
    """Return the lowest-ranked holder of each queue: a job that outranks any of them outranks it."""
    weakest: dict[int, Job] = {}
    for job in holders:
        holder = weakest.get(job.queue)
        if holder is None or job.priority < holder.priority:
            weakest[job.queue] = job
    return list(weakest.values())


def _start_without_guests(cycle: Cycle, book: CycleReservations, reservation: ActiveReservation) -> None:
    """Evict as many guests as needed, if the gang can start then."""
    victims = _leaving(book.guests_of(reservation))
    if not victims:
        return
    transaction, problems = cycle.transaction, list(cycle.result.problems.get(reservation.job.key, ()))
    point = transaction.checkpoint()
    for tasks in victims.values():
        for task in tasks:
            transaction.evict(task)
    trial = Trial(reservation.job, next_tasks(reservation.job), [], list(victims.values()))
    if cycle.get(Placers).trial.place_gang(reservation.job, cycle.all_rows):
        for job in sorted(victims, key=lambda guest: job_key(cycle, guest)):
            _stay(cycle, job, victims[job])
        if not overspent(trial.tasks()) and all(check(trial) for check in cycle.hooks.preempt_checks):
            cycle.commit(NAME, point, reservation.job)
            return
    transaction.rollback(point)
    cycle.result.problems[reservation.job.key] = problems


def _leaving(guests: list[Task]) -> dict[Job, list[Task]]:
    """Return guests by job; a gang that would fall below its minimum leaves as a whole."""
    leaving: dict[Job, list[Task]] = {}
    for task in guests:
        if task.job is not None:
            leaving.setdefault(task.job, []).append(task)
    for job, tasks in leaving.items():
        lost = Counter(task.podset for task in tasks)
        if any(job.active[leaf] - count < job.minimums[leaf] for leaf, count in lost.items()):
            leaving[job] = [task for task in job.all_tasks() if task.status & st.ACTIVE]
    return leaving


def _stay(cycle: Cycle, job: Job, tasks: list[Task]) -> None:
    """Keep guests whose place is not needed; of a gang only if its minimum stays."""
    point = cycle.transaction.checkpoint()
    for task in tasks:
        if all(check(job, [task]) is None for check in cycle.hooks.over_capacity) and _fits_again(cycle, task):
            cycle.transaction.wait(task, task.node, task.groups)
    if any(active < minimum for active, minimum in zip(job.active, job.minimums, strict=True)):
        cycle.transaction.rollback(point)


def _fits_again(cycle: Cycle, task: Task) -> bool:
    if not allowed(cycle, task, np.array([task.node]))[0]:
        return False
    if not task.cls.shared:
        return True
    chosen = choose_gpus(cycle, task, task.node, now=False)
    return chosen is not None and chosen[0] == task.groups


def renewed(cycle: Cycle, book: CycleReservations) -> Reservations:
    """Return the reservations and claims for the next cycle."""
    placed = [move.task for _, move, _ in cycle.result.decided if move.kind in ("bind", "wait")]
    waiting = {task.job.key for task in placed if task.job is not None and task.status == st.PIPELINED}
    for reservation in book.active:
        reservation.guests |= guests_among(book, reservation, placed)
    held: list[ActiveReservation] = []
    taken: set[int] = set()
    for reservation in book.active:
        if reservation.job.key in waiting or (
            waits(cycle, reservation.job, reservation.since) and _renew(cycle, book, reservation, taken)
        ):
            held.append(reservation)
            taken |= reservation.rows
    held += _earned(cycle, book, held, taken)
    for reservation in held:
        if reservation.job.key not in waiting:
            cycle.result.add_problem(reservation.job, Reserved(len(reservation.rows), reservation.since))
    keys = {reservation.job.key for reservation in held}
    claims = tuple((key, book.claims.get(key, cycle.now)) for key in sorted(waiting - keys))
    return Reservations(book.since, tuple(_plain(cycle, book, reservation) for reservation in held), claims)


def _renew(cycle: Cycle, book: CycleReservations, reservation: ActiveReservation, taken: set[int]) -> bool:
    """Choose a gang's nodes again; False if it may not have any."""
    if not all(rule(reservation.job, cycle.wanted(reservation.job)) for rule in cycle.hooks.entitled):
        return False
    if cycle.now - reservation.chosen > reservation.patience:
        reservation.in_vain |= reservation.rows
        reservation.rows, reservation.chosen, reservation.patience = set(), cycle.now, 2 * reservation.patience
    vacancy = choose_nodes(cycle, reservation, book.guests_of(reservation), taken)
    if vacancy is None:
        return False
    reservation.rows, reservation.starts = set(vacancy.rows), vacancy.starts
    return True


def _earned(
    cycle: Cycle, book: CycleReservations, held: list[ActiveReservation], taken: set[int]
) -> list[ActiveReservation]:
    """Return new reservations for the first gang of each queue that has waited long enough, in the order of queues."""
    room = cycle.config.reservations - len(held)
    if room <= 0:
        return []
    served = {reservation.job.queue for reservation in held}
    by_queue: dict[int, list[Job]] = {}
    for job in cycle.pending_jobs():
        if job.queue not in served and _waited(cycle, book, job):
            by_queue.setdefault(job.queue, []).append(job)
    for queue, jobs in by_queue.items():
        by_queue[queue] = sorted(jobs, key=lambda job: job_key(cycle, job))[:MOST_TRIED]
    order = JobOrder.of_jobs(cycle, [job for jobs in by_queue.values() for job in jobs], None)
    earned: list[ActiveReservation] = []
    while order and len(earned) < room:
        reservation = ActiveReservation(order.pop().job, cycle.now, set(), set(), 0.0, cycle.now)
        if reservation.job.queue not in served and _renew(cycle, book, reservation, taken):
            served.add(reservation.job.queue)
            earned.append(reservation)
            taken |= reservation.rows
    return earned


def _waited(cycle: Cycle, book: CycleReservations, job: Job) -> bool:
    since = max(book.since, job.created, job.last_eviction or 0.0)
    return cycle.now - since >= cycle.config.reserve_after and waits(cycle, job, cycle.now)


def _plain(cycle: Cycle, book: CycleReservations, reservation: ActiveReservation) -> Reservation:
    shared = set(cycle.queues.path[reservation.job.queue])
    guests = sorted(
        task.key
        for task in book.guests_of(reservation)
        if task.node in reservation.rows or (task.job is not None and shared & set(cycle.queues.path[task.job.queue]))
    )
    nodes, in_vain = (
        tuple(sorted(cycle.nodes.name(row) for row in rows)) for rows in (reservation.rows, reservation.in_vain)
    )
    times = (reservation.starts, reservation.chosen, reservation.patience)
    return Reservation(reservation.job.key, reservation.since, nodes, tuple(guests), *times, in_vain)
