"""Fair queues: who is next, what a queue may take, and what it may take back from others."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle, Head, Scenario
from spinney.scheduler.fairshare import fair_shares
from spinney.scheduler.gangs import Gang, Job
from spinney.scheduler.queues import within
from spinney.scheduler.reasons import OverLimit, OverQuota
from spinney.scheduler.specs import UNLIMITED
from spinney.scheduler.status import ACTIVE
from spinney.scheduler.tasks import Task, Triple

# How heavily use of something the queue has no share of weighs.
NO_SHARE = 1000
NOTHING: Triple = (0.0, 0.0, 0.0)


def install(cycle: Cycle, plugin: PluginConfig) -> None:
    """Work fair shares out and take part in every decision about queues."""
    proportion = Proportion(cycle, plugin)
    hooks = cycle.hooks
    hooks.queue_orders.append(proportion.compare)
    hooks.over_capacity.append(proportion.over_capacity)
    hooks.over_quota.append(proportion.over_quota)
    hooks.can_reclaim.append(proportion.can_reclaim)
    hooks.reclaim_queue_filters.append(proportion.may_reclaim_from)
    hooks.reclaim_checks.append(proportion.reclaim_is_fair)
    hooks.reclaim_caps.append(proportion.most_to_take)
    hooks.search_started.append(proportion.remember)
    hooks.entitled.append(proportion.entitled)
    hooks.outranks.append(proportion.outranks)
    cycle.fair = proportion.fair
    cycle.total = proportion.total
    cycle.limits = proportion.refuses


class Proportion:
    """Fair share and the rules that follow from it."""

    def __init__(self, cycle: Cycle, plugin: PluginConfig) -> None:
        self.cycle = cycle
        self.queues = cycle.queues
        self.state = cycle.state
        self.multiplier = max(1.0, plugin.number("relcaimerSaturationMultiplier", 1.0))
        usage_weight = max(0.0, plugin.number("kValue", 1.0))
        self.total = _cluster_total(cycle)
        requested = [
            [charged[0] + waiting[0], charged[1] + waiting[1], charged[2] + waiting[2] + memory / cycle.smallest_gpu]
            for charged, waiting, memory in zip(
                self.state.charged, self.state.waiting, self.state.waiting_memory, strict=True
            )
        ]
        self.fair = fair_shares(self.queues, self.total, requested, usage_weight)
        self.allocatable = [self._allocatable(queue) for queue in range(len(self.queues))]
        # What dominant shares are parts of.
        self.wholes = [
            [total if share == UNLIMITED else share for share, total in zip(shares, self.total, strict=True)]
            for shares in self.allocatable
        ]
        # Queues on the way up from each that have a limit at all.
        self._limited = [
            [queue for queue in path if any(limit != UNLIMITED for limit in self.queues.limit[queue])]
            for path in self.queues.path
        ]
        self._charged: list[list[float]] = []
        self._fixed: list[list[float]] = []

    def _allocatable(self, queue: int) -> list[float]:
        amounts = []
        for quota, limit, fair in zip(
            self.queues.quota[queue], self.queues.limit[queue], self.fair[queue], strict=True
        ):
            if quota == UNLIMITED:
                amounts.append(limit)
            else:
                share = max(quota, fair)
                amounts.append(share if limit == UNLIMITED else min(limit, share))
        return amounts

    def remember(self) -> None:
        """Keep what queues hold before a search begins: its checks are against that."""
        self._charged = list(self.state.charged)
        self._fixed = list(self.state.fixed)

    def compare(self, one: Head, other: Head) -> int:
        """Which of two queues goes first, by the jobs at their heads or by the victims they would give."""
        left, right = one.queue, other.queue
        charged, fair = self.state.charged, self.fair
        first, second = charged[left], charged[right]
        over = _above_everywhere(first, fair[left]) - _above_everywhere(second, fair[right])
        if over:
            return over
        add = self.cycle.wanted(one.gang) if one.gang is not None else NOTHING
        plus = self.cycle.wanted(other.gang) if other.gang is not None else NOTHING
        queues = self.queues
        with_job = [first[0] + add[0], first[1] + add[1], first[2] + add[2]]
        with_other = [second[0] + plus[0], second[1] + plus[1], second[2] + plus[2]]
        starved = within(with_other, queues.quota[right]) - within(with_job, queues.quota[left])
        if starved:
            return starved
        if queues.priority[left] != queues.priority[right]:
            return -1 if queues.priority[left] > queues.priority[right] else 1
        shares, others = self.allocatable[left], self.allocatable[right]
        violation = _violates(with_job, shares) - _violates(with_other, others)
        if violation:
            return violation
        wholes, rival_wholes = self.wholes[left], self.wholes[right]
        share = _dominant(wholes, _minus(with_job, one.given) if one.gang is None else with_job)
        rival = _dominant(rival_wholes, _minus(with_other, other.given) if other.gang is None else with_other)
        if share != rival:
            return -1 if share < rival else 1
        share, rival = _dominant(wholes, first), _dominant(rival_wholes, second)
        if share != rival:
            return -1 if share < rival else 1
        smaller, larger = within(shares, others), within(others, shares)
        if smaller != larger:
            return -1 if smaller else 1
        return -1 if queues.created[left] < queues.created[right] else 1

    def over_capacity(self, job: Job, tasks: list[Task]) -> OverLimit | OverQuota | None:
        """Why a job's next tasks would take its queue, or one above, beyond what it may hold."""
        if job.preemptible and not self._limited[job.queue]:
            return None
        wanted = _sum(task.cls.wanted(self.cycle.largest_gpu) for task in tasks)
        return self.beyond_limit(job, wanted) or self.beyond_quota(job, wanted)

    def over_quota(self, job: Job, tasks: list[Task]) -> OverQuota | None:
        """Why tasks that may not be evicted would take a queue beyond its quota."""
        return self.beyond_quota(job, _sum(task.cls.wanted(self.cycle.largest_gpu) for task in tasks))

    def refuses(self, job: Job, wanted: Triple) -> OverLimit | OverQuota | None:
        """Why a queue of the job, or one above, has no room for an amount."""
        return self.beyond_limit(job, wanted) or self.beyond_quota(job, wanted)

    def beyond_limit(self, job: Job, wanted: Triple) -> OverLimit | None:
        """The first queue on the way up whose limit would be passed."""
        for queue in self._limited[job.queue]:
            for resource, amount in enumerate(wanted):
                limit, held = self.queues.limit[queue][resource], self.state.charged[queue][resource]
                if limit != UNLIMITED and amount and limit < held + amount:
                    return OverLimit(self.queues.names[queue], resource, limit, held, wanted)
        return None

    def beyond_quota(self, job: Job, wanted: Triple) -> OverQuota | None:
        """The first queue on the way up whose quota would be passed by what may not be evicted."""
        if job.preemptible:
            return None
        for queue in self.queues.path[job.queue]:
            for resource, amount in enumerate(wanted):
                quota, held = self.queues.quota[queue][resource], self.state.fixed[queue][resource]
                if quota != UNLIMITED and amount and quota < held + amount:
                    return OverQuota(self.queues.names[queue], resource, quota, held, wanted)
        return None

    def entitled(self, job: Job, wanted: Triple) -> bool:
        """Whether an amount is within the fair share of the job's queue, and of all above, whatever they hold now."""
        queues, bounds = self.queues, [self.fair, self.queues.limit]
        if not job.preemptible:
            bounds.append(queues.quota)
        return all(within(wanted, bound[queue]) for bound in bounds for queue in queues.path[job.queue])

    def outranks(self, job: Job, holder: Job) -> bool:
        """Whether a job need not care for nodes kept for another: what is guaranteed goes before what is borrowed."""
        if job.queue == holder.queue:
            return job.priority > holder.priority
        queues, wanted = self.queues, self.cycle.wanted(job)
        mine, theirs = queues.levelled(job.queue, holder.queue)
        guaranteed = within(_plus(self.state.charged[mine], wanted), queues.quota[mine])
        if guaranteed != within(self.cycle.wanted(holder), queues.quota[theirs]):
            return guaranteed
        return queues.priority[mine] > queues.priority[theirs]

    def can_reclaim(self, gang: Gang) -> bool:
        """Whether the queue stays within its fair share with the job; what may not be evicted also within quota."""
        queue, wanted = gang.job.queue, self.cycle.wanted(gang)
        if not within(_plus(self.state.charged[queue], wanted), self.fair[queue]):
            return False
        return gang.job.preemptible or within(_plus(self.state.fixed[queue], wanted), self.queues.quota[queue])

    def may_reclaim_from(self, gang: Gang, victim: int) -> bool:
        """Whether a queue holds anything that the reclaimer's queue may take."""
        wanted = self.cycle.wanted(gang)
        mine, theirs = self.queues.levelled(gang.job.queue, victim)
        held = self.state.charged[theirs]
        if not within(_plus(self.state.charged[mine], wanted), self.queues.quota[mine]):
            return not within(held, self.allocatable[theirs])
        below = False
        for amount, quota, has in zip(wanted, self.queues.quota[theirs], held, strict=True):
            if amount <= 0 or quota == UNLIMITED:
                continue
            if has > quota:
                return True
            below = below or has < quota
        return not below

    def most_to_take(self, gang: Gang, victim: int, largest: float) -> float | None:
        """Less than this many GPUs can be taken from a queue fairly; None where GPUs alone do not decide."""
        mine, theirs = self.queues.levelled(gang.job.queue, victim)
        shares, quota = self.allocatable[theirs], self.queues.quota[theirs]
        if any(bound != UNLIMITED for bound in (*shares[:2], *quota[:2])):
            return None
        held = self.state.charged[theirs][2]
        bounds = [shares[2]] if shares[2] != UNLIMITED else []
        if quota[2] != UNLIMITED and within(
            _plus(self.state.charged[mine], self.cycle.wanted(gang)), self.queues.quota[mine]
        ):
            bounds.append(quota[2])
        # The last piece is taken while there is still something above the bound, and may go below it.
        return held - min(bounds) + largest if bounds and held > min(bounds) else 0.0

    def reclaim_is_fair(self, scenario: Scenario) -> bool:
        """Whether every victim's queue had more than its share when the victim was taken, and nobody ends worse off."""
        wanted = _sum(task.cls.wanted(self.cycle.smallest_gpu) for task in scenario.pending)
        job = scenario.preemptor.job
        taken: dict[int, list[Triple]] = {}
        for victim, tasks in scenario.victims():
            pieces = self._pieces(victim, tasks)
            if pieces:
                taken.setdefault(victim.queue, []).extend(pieces)
        left: dict[int, list[float]] = {}
        involved: dict[int, set[int]] = {}
        for queue, pieces in taken.items():
            mine, theirs = self.queues.levelled(job.queue, queue)
            path = self.queues.path[queue]
            above = [left.setdefault(number, list(self._charged[number])) for number in path]
            for piece in pieces:
                if not self._may_take(wanted, mine, theirs, left[theirs]):
                    return False
                for amounts in above:
                    for resource in range(3):
                        amounts[resource] -= piece[resource]
            touched = {resource for resource in range(3) if any(piece[resource] > 0 for piece in pieces)}
            for number in path:
                involved.setdefault(number, set()).update(touched)
        return self._stays_fair(job, wanted, left, involved)

    def _pieces(self, victim: Job, tasks: list[Task]) -> list[Triple]:
        """What leaves a job, piece by piece: each task to spare alone, the core of the gang as one."""
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
        return charges[0] if len(charges) == 1 else _sum(charges)

    def _may_take(self, wanted: Triple, mine: int, theirs: int, remaining: list[float]) -> bool:
        if not within(remaining, self.allocatable[theirs]):
            return True
        quota = self.queues.quota
        return within(_plus(self._charged[mine], wanted), quota[mine]) and not within(remaining, quota[theirs])

    def _stays_fair(
        self, job: Job, wanted: Triple, left: dict[int, list[float]], involved: dict[int, set[int]]
    ) -> bool:
        asked = {resource for resource in range(3) if wanted[resource] > 0}
        for queue in self.queues.path[job.queue]:
            remaining = _plus(left.get(queue, self._charged[queue]), wanted)
            for sibling, theirs in left.items():
                if sibling == queue or self.queues.parent[sibling] != self.queues.parent[queue]:
                    continue
                for resource in involved.get(sibling, set()) | asked:
                    if self._more_saturated(queue, sibling, resource, remaining[resource], theirs[resource]):
                        return False
            if not job.preemptible and not within(_plus(self._fixed[queue], wanted), self.queues.quota[queue]):
                return False
        return True

    def _more_saturated(self, queue: int, sibling: int, resource: int, mine: float, theirs: float) -> bool:
        fair, rival = self.fair[queue][resource], self.fair[sibling][resource]
        if fair == UNLIMITED and rival == UNLIMITED:
            return False
        ratio = _saturation(mine, fair)
        return ratio > 1 and rival > 0 and ratio * self.multiplier >= _saturation(theirs, rival)


def _cluster_total(cycle: Cycle) -> list[float]:
    nodes = cycle.nodes
    rows = gpu_rows = [row for row in cycle.all_rows if nodes.spec(row).ready]
    if cycle.config.workers is not None:
        cpu_workers, gpu_workers = (nodes.codes(label) >= 0 for label in cycle.config.workers)
        rows = [row for row in rows if cpu_workers[row] or gpu_workers[row]]
        gpu_rows = [row for row in rows if gpu_workers[row]]
    total = [
        float(nodes.allocatable[rows, 0].sum()),
        float(nodes.allocatable[rows, 1].sum()),
        float(nodes.whole_gpus(nodes.allocatable[gpu_rows]).sum()),
    ]
    for row in rows:
        for one in cycle.state.foreign.get(int(row), {}).values():
            total = [amount - less for amount, less in zip(total, one, strict=True)]
    return total


def _dominant(wholes: list[float], amounts: list[float]) -> float:
    # Unrolled, as every comparison of two queues asks this a few times.
    cpu, memory, gpus = amounts
    all_cpu, all_memory, all_gpus = wholes
    return max(
        0.0,
        cpu / all_cpu if all_cpu else cpu * NO_SHARE,
        memory / all_memory if all_memory else memory * NO_SHARE,
        gpus / all_gpus if all_gpus else gpus * NO_SHARE,
    )


def _above_everywhere(amounts: list[float], shares: list[float]) -> bool:
    return shares[0] < amounts[0] and shares[1] < amounts[1] and shares[2] < amounts[2]


def _violates(amounts: list[float], shares: list[float]) -> bool:
    return (
        (shares[0] == 0 and amounts[0] > 0)
        or (shares[1] == 0 and amounts[1] > 0)
        or (shares[2] == 0 and amounts[2] > 0)
    )


def _plus(amounts: list[float], more: Triple) -> list[float]:
    return [amounts[0] + more[0], amounts[1] + more[1], amounts[2] + more[2]]


def _minus(amounts: list[float], less: Triple) -> list[float]:
    return [amounts[0] - less[0], amounts[1] - less[1], amounts[2] - less[2]]


def _sum(triples: Iterable[Triple]) -> Triple:
    cpu = memory = gpus = 0.0
    for one in triples:
        cpu, memory, gpus = cpu + one[0], memory + one[1], gpus + one[2]
    return (cpu, memory, gpus)


def _saturation(amount: float, fair: float) -> float:
    if fair == 0:
        return inf if amount > 0 else 0.0
    return 0.0 if fair == UNLIMITED else amount / fair
