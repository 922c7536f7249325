"""The three actions that evict: consolidation, reclaim and preempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from spinney.scheduler.actions.failed_jobs import FailedJobs
from spinney.scheduler.config import CONSOLIDATION, PREEMPT, RECLAIM
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scenario
from spinney.scheduler.place.free_gpus import FreeGpus
from spinney.scheduler.place.placer import Placers
from spinney.scheduler.result import Searched
from spinney.scheduler.share.job_order import JobOrder, anyone
from spinney.scheduler.share.sorted_jobs import Pool
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.problems import NotFound
from spinney.scheduler.state.tasks import Task
from spinney.scheduler.state.transaction import Checkpoint
from spinney.scheduler.victims.bounds import Freeable, cannot_fit, freeable_by_node
from spinney.scheduler.victims.job_pools import JobPools
from spinney.scheduler.victims.kept_victims import keep_unneeded_victims
from spinney.scheduler.victims.search import SOLVED, Check, PlaceAgain, Solver

# From this many changed jobs on, sorting again is cheaper than moving each.
MANY = 64


def consolidation(cycle: Cycle) -> None:
    """Move running tasks together so that a gang fits; nobody loses its place."""
    limit = cycle.config.consolidation_victims
    if limit == 0:
        return

    def victims(job: Job, pool: Pool) -> JobOrder:
        if limit < 0:
            return JobOrder.of_pool(pool, list(pool.sorted), lambda other: other is not job)
        # The lowest-ranked, so that equal clusters give equal plans: upstream takes any.
        least = (other for jobs in pool.sorted.values() for other in jobs[: limit + 2] if other is not job)
        some = sorted(least, key=lambda other: pool.keys[other.key], reverse=True)[: limit + 1]
        return JobOrder(cycle, some, victims=True)

    def caps(_: Job, freeable: Freeable) -> dict[int, float | None]:
        return dict.fromkeys(freeable.on)

    jobs = [job for job in _claimants(cycle) if job.preemptible]
    ready = cycle.all_rows[cycle.nodes.ready[cycle.all_rows]]
    # GPUs that nobody uses, for a version of the state.
    spare = (-1, 0.0)

    def may(job: Job) -> bool:
        nonlocal spare
        if spare[0] != cycle.transaction.version:
            spare = (cycle.transaction.version, float(np.maximum(cycle.get(FreeGpus).gpus()[ready], 0.0).sum()))
        wanted = sum(task.cls.quota for task in next_tasks(job))
        return spare[1] >= wanted and _memory_left(cycle, job, ready)

    rules = _Rules(CONSOLIDATION, may, victims, _all_placed, caps, (Solver.gang_first,))
    _run(cycle, jobs, rules)


def reclaim(cycle: Cycle) -> None:
    """Reclaim what other queues hold beyond their fair share."""
    hooks = cycle.hooks
    # Whether each queue gives anything to the job that is considered now.
    gives_to_job: dict[int, bool] = {}

    def gives(job: Job, queue: int) -> bool:
        if queue not in gives_to_job:
            gives_to_job[queue] = queue != job.queue and all(
                accepts(job, queue) for accepts in hooks.reclaim_queue_filters
            )
        return gives_to_job[queue]

    def victims(job: Job, pool: Pool) -> JobOrder:
        def accept(victim: Job) -> bool:
            return all(accepts(job, victim) for accepts in hooks.reclaim_filters)

        queues = [queue for queue in pool.sorted if gives(job, queue)]
        return JobOrder.of_pool(pool, queues, accept if hooks.reclaim_filters else anyone)

    def may(job: Job) -> bool:
        if not hooks.can_reclaim or not hooks.can_reclaim[0](job):
            return False
        gives_to_job.clear()
        for started in hooks.search_started:
            started()
        return True

    def caps(job: Job, freeable: Freeable) -> dict[int, float | None]:
        levels: dict[int, float | None] = {}
        for queue, largest in freeable.largest.items():
            if not gives(job, queue):
                continue
            amounts = [cap(job, queue, largest) for cap in hooks.reclaim_caps]
            bounds = [amount for amount in amounts if amount is not None]
            levels[queue] = min(bounds) if bounds else None
        return levels

    ways = (Solver.in_order, Solver.some_moved_before)
    rules = _Rules(RECLAIM, may, victims, partial(_passes, hooks.reclaim_checks), caps, ways)
    _run(cycle, _claimants(cycle), rules)


def preempt(cycle: Cycle) -> None:
    """Preempt gangs of lower priority in the same queue."""
    hooks = cycle.hooks

    def victims(job: Job, pool: Pool) -> JobOrder:
        def accept(victim: Job) -> bool:
            lower = victim is not job and victim.priority < job.priority
            return lower and all(accepts(job, victim) for accepts in hooks.preempt_filters)

        return JobOrder.of_pool(pool, [job.queue], accept)

    def may(job: Job) -> bool:
        return job.spec.preempts and all(check(job, next_tasks(job)) is None for check in hooks.over_quota)

    def caps(job: Job, _: Freeable) -> dict[int, float | None]:
        return {job.queue: None}

    rules = _Rules(PREEMPT, may, victims, partial(_passes, hooks.preempt_checks), caps, (Solver.in_order,))
    _run(cycle, _claimants(cycle), rules)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What differs between the actions: which jobs, which victims, and what a solution must satisfy."""

    action: str
    may: Callable[[Job], bool]
    victims: Callable[[Job, Pool], JobOrder]
    check: Check
    # Queues that victims may come from, each with a bound on how much.
    caps: Callable[[Job, Freeable], dict[int, float | None]]
    # Who is placed first when every choice of victims is tried.
    place_again: tuple[PlaceAgain, ...]


def _run(cycle: Cycle, jobs: list[Job], rules: _Rules) -> None:
    order = JobOrder.of_jobs(cycle, jobs, cycle.config.queue_depth.get(rules.action))
    failed, placer = FailedJobs(cycle), cycle.get(Placers).trial
    while order:
        job = order.pop()
        assert isinstance(job, Job)
        cycle.considering = job
        tasks = next_tasks(job)
        if not tasks or failed.covers(job) or _too_large(cycle, tasks) or not rules.may(job):
            continue
        pools = cycle.get(JobPools).current()
        caps = rules.caps(job, pools.freeable)
        if cannot_fit(cycle, tasks, pools.freeable, caps):
            failed.add(job)
            continue
        victims = partial(rules.victims, job, pools.running)
        solver = Solver(cycle, placer, job, rules.check, victims, pools.waiting, rules.place_again)
        solver.freeable = partial(freeable_by_node, pools.freeable, caps)
        enough = _room_was_left(cycle, job, tasks)
        point = solver.solve()
        if point is not None and enough and _somebody_is_lost(cycle, point):
            cycle.transaction.rollback(point)
            placer.place_gang(job, cycle.all_rows)
        result = SOLVED if point is not None else solver.failure()
        cycle.result.searches.append(Searched(rules.action, solver.steps, result, tuple(solver.attempts)))
        if point is None:
            failed.add(job)
            if not solver.complete:
                cycle.result.add_problem(job, NotFound(rules.action, solver.steps))
            continue
        touched = {move.task.job for move in cycle.transaction.done[point[1] :] if move.task.job is not None}
        before = len(cycle.result.decided)
        cycle.commit(rules.action, point, job)
        changes = cycle.result.changes
        keep_unneeded_victims(cycle, before)
        if cycle.result.changes == changes and len(touched) <= MANY:
            pools.update(touched)


def _room_was_left(cycle: Cycle, job: Job, tasks: list[Task]) -> bool:
    """Whether earlier victims leave room for this gang too: then no more victims are needed."""
    sizes = {task.cls.unit for task in tasks}
    size = sizes.pop() if len(sizes) == 1 else 0.0
    if not cycle.result.evicts or (size and cycle.get(FreeGpus).count(size) < len(tasks)):
        return False
    point = cycle.transaction.checkpoint()
    fits = cycle.get(Placers).trial.place_gang(job, cycle.all_rows)
    cycle.transaction.rollback(point)
    return fits


def _somebody_is_lost(cycle: Cycle, point: Checkpoint) -> bool:
    return any(move.kind == "evict" and move.task.status == st.RELEASING for move in cycle.transaction.done[point[1] :])


def _too_large(cycle: Cycle, tasks: list[Task]) -> bool:
    """Whether a task asks for more than any node has: then no eviction helps."""
    if len(tasks) == 1:
        return cycle.sizes.too_large(tasks[0].cls)
    return any(cycle.sizes.too_large(cls) for cls in {task.cls for task in tasks})


def _claimants(cycle: Cycle) -> list[Job]:
    """Return the pending gangs that others may be evicted for."""
    return [
        job
        for job in cycle.pending_jobs()
        if job.spec.evicts and job.ready() and (job.spec.preemption_delay <= 0 or cycle.now >= job.delayed_until())
    ]


def _memory_left(cycle: Cycle, job: Job, rows: Rows) -> bool:
    """Whether the free GPU memory of all nodes together is enough."""
    nodes, memory = cycle.nodes, sum(task.cls.memory for task in next_tasks(job))
    if not memory:
        return True
    whole = (nodes.whole_gpus(nodes.idle).astype(int) + nodes.whole_gpus(nodes.releasing).astype(int))[rows]
    left = int((whole * nodes.gpu_memory[rows]).sum())
    return left + sum(cycle.state.gpus.leftover_memory(int(row)) for row in rows) >= memory


def _all_placed(scenario: Scenario) -> bool:
    return not any(task.status == st.RELEASING for _, tasks in scenario.victims() for task in tasks)


def _passes(checks: list[Callable[[Scenario], bool]], scenario: Scenario) -> bool:
    for check in checks:  # noqa: SIM110  # asked of every scenario: a generator would cost as much as a check
        if not check(scenario):
            return False
    return True
