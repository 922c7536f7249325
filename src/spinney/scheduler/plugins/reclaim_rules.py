"""Rules of reclaim: what a queue may take from others, and whether a set of victims is fair."""

from __future__ import annotations

from math import inf

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scenario
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.queues import added_up, plus, within
from spinney.scheduler.state.specs import UNLIMITED
from spinney.scheduler.state.status import ACTIVE
from spinney.scheduler.state.tasks import Task, Triple


class Reclaiming:
    """The rules between queues, by fair share and by what each may hold."""

    def __init__(
        self, cycle: Cycle, fair: list[list[float]], allocatable: list[list[float]], multiplier: float
    ) -> None:
        self.cycle = cycle
        self.queues = cycle.queues
        self.state = cycle.state
        self.fair = fair
        self.allocatable = allocatable
        self.multiplier = multiplier
        self._charged: list[list[float]] = []
        self._fixed: list[list[float]] = []

    def install(self) -> None:
        """Add the hooks of reclaim."""
        hooks = self.cycle.hooks
        hooks.can_reclaim.append(self.can_reclaim)
        hooks.reclaim_queue_filters.append(self.may_reclaim_from)
        hooks.reclaim_caps.append(self.most_to_take)
        hooks.search_started.append(self.remember)
        hooks.reclaim_checks.append(self.reclaim_is_fair)

    def remember(self) -> None:
        """Remember what queues hold before a search: its checks compare with that."""
        self._charged = list(self.state.charged)
        self._fixed = list(self.state.fixed)

    def can_reclaim(self, gang: Gang) -> bool:
        """Whether the queue stays within its fair share with the job; what may not be evicted also within quota."""
        queue, wanted = gang.job.queue, self.cycle.wanted(gang)
        if not within(plus(self.state.charged[queue], wanted), self.fair[queue]):
            return False
        return gang.job.preemptible or within(plus(self.state.fixed[queue], wanted), self.queues.quota[queue])

    def may_reclaim_from(self, gang: Gang, victim: int) -> bool:
        """Whether a queue holds anything that the reclaimer's queue may take."""
        wanted = self.cycle.wanted(gang)
        own, rival = self.queues.levelled(gang.job.queue, victim)
        held = self.state.charged[rival]
        if not within(plus(self.state.charged[own], wanted), self.queues.quota[own]):
            return not within(held, self.allocatable[rival])
        below = False
        for amount, quota, has in zip(wanted, self.queues.quota[rival], held, strict=True):
            if amount <= 0 or quota == UNLIMITED:
                continue
            if has > quota:
                return True
            below = below or has < quota
        return not below

    def most_to_take(self, gang: Gang, victim: int, largest: float) -> float | None:
        """Less than this many GPUs can be taken from a queue fairly; None where GPUs alone do not decide."""
        own, rival = self.queues.levelled(gang.job.queue, victim)
        shares, quota = self.allocatable[rival], self.queues.quota[rival]
        if not shares[0] == shares[1] == quota[0] == quota[1] == UNLIMITED:
            return None
        held = self.state.charged[rival][2]
        bounds = [shares[2]] if shares[2] != UNLIMITED else []
        if quota[2] != UNLIMITED and within(
            plus(self.state.charged[own], self.cycle.wanted(gang)), self.queues.quota[own]
        ):
            bounds.append(quota[2])
        # The last piece is taken while there is still something above the bound, and may go below it.
        return held - min(bounds) + largest if bounds and held > min(bounds) else 0.0

    def reclaim_is_fair(self, scenario: Scenario) -> bool:
        """Whether every victim's queue had more than its share when the victim was taken, and nobody ends worse off."""
        wanted = added_up(task.cls.wanted(self.cycle.sizes.smallest_gpu) for task in scenario.pending)
        job = scenario.preemptor.job
        taken: dict[int, list[Triple]] = {}
        for victim, tasks in scenario.victims():
            pieces = self._pieces(victim, tasks)
            if pieces:
                taken.setdefault(victim.queue, []).extend(pieces)
        left: dict[int, list[float]] = {}
        involved: dict[int, set[int]] = {}
        for queue, pieces in taken.items():
            own, rival = self.queues.levelled(job.queue, queue)
            path = self.queues.path[queue]
            above = [left.setdefault(number, list(self._charged[number])) for number in path]
            for piece in pieces:
                if not self._may_take(wanted, own, rival, left[rival]):
                    return False
                cpu, memory, gpus = piece
                for amounts in above:
                    amounts[0] -= cpu
                    amounts[1] -= memory
                    amounts[2] -= gpus
            touched = _involved(*pieces)
            for number in path:
                involved.setdefault(number, set()).update(touched)
        return self._stays_fair(job, wanted, left, involved)

    def _pieces(self, victim: Job, tasks: list[Task]) -> list[Triple]:
        """Return what a job loses, piece by piece: each surplus task alone, the core of the gang as one."""
        if len(tasks) == 1:
            piece = self._leaving(tasks)
            return [piece] if piece is not None else []
        by_leaf: dict[int, list[Task]] = {}
        for task in tasks:
            by_leaf.setdefault(task.podset, []).append(task)
        core: list[Task] = []
        spare: list[Task] = []
        for leaf, members in by_leaf.items():
            minimum = victim.minimums[leaf]
            core += members[:minimum]
            spare += members[minimum:]
        pieces = [self._leaving([task]) for task in spare]
        pieces.append(self._leaving(core))
        return [piece for piece in pieces if piece is not None]

    def _leaving(self, tasks: list[Task]) -> Triple | None:
        ignore = self.cycle.config.consolidating_reclaim
        leaving = [task for task in tasks if not (ignore and task.status & ACTIVE)]
        if not leaving:
            return None
        memory = self.cycle.nodes.gpu_memory
        charges = [task.cls.charge(int(memory[task.node])) if task.cls.memory else task.cls.triple for task in leaving]
        return charges[0] if len(charges) == 1 else added_up(charges)

    def _may_take(self, wanted: Triple, own: int, rival: int, remaining: list[float]) -> bool:
        if not within(remaining, self.allocatable[rival]):
            return True
        quota = self.queues.quota
        return within(plus(self._charged[own], wanted), quota[own]) and not within(remaining, quota[rival])

    def _stays_fair(
        self, job: Job, wanted: Triple, left: dict[int, list[float]], involved: dict[int, set[int]]
    ) -> bool:
        requested = _involved(wanted)
        for queue in self.queues.path[job.queue]:
            remaining = plus(left.get(queue, self._charged[queue]), wanted)
            for sibling, rival_left in left.items():
                if sibling == queue or self.queues.parent[sibling] != self.queues.parent[queue]:
                    continue
                for resource in involved.get(sibling, set()) | requested:
                    if self._more_saturated(queue, sibling, resource, remaining[resource], rival_left[resource]):
                        return False
            if not job.preemptible and not within(plus(self._fixed[queue], wanted), self.queues.quota[queue]):
                return False
        return True

    def _more_saturated(self, queue: int, sibling: int, resource: int, own_amount: float, rival_amount: float) -> bool:
        fair, rival = self.fair[queue][resource], self.fair[sibling][resource]
        if fair == UNLIMITED and rival == UNLIMITED:
            return False
        ratio = _saturation(own_amount, fair)
        return ratio > 1 and rival > 0 and ratio * self.multiplier >= _saturation(rival_amount, rival)


def _involved(*amounts: Triple) -> set[int]:
    """Return the resources with a positive amount."""
    return {resource for triple in amounts for resource, amount in enumerate(triple) if amount > 0}


def _saturation(amount: float, fair: float) -> float:
    if fair == 0:
        return inf if amount > 0 else 0.0
    return 0.0 if fair == UNLIMITED else amount / fair
