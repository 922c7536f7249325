"""Fair shares of queues: their order, their limits, and what each is entitled to."""

from __future__ import annotations

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Head
from spinney.scheduler.plugins.reclaim_rules import Reclaiming
from spinney.scheduler.share.fair_share import fair_shares
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import OverLimit, OverQuota
from spinney.scheduler.state.queues import added_up, plus, within
from spinney.scheduler.state.specs import UNLIMITED
from spinney.scheduler.state.tasks import NOTHING, Task, Triple

# What queues are compared by, one after the other: whether a queue holds more of everything than its fair share, and
# with its next job more than its quota; its priority, highest first; whether the job takes what it has no share of; the
# dominant share with the job, or without the victims that go; and the dominant share now.
Standing = tuple[bool, bool, int, bool, float, float]
# The weight of usage without any share.
NO_SHARE = 1000


def install(cycle: Cycle, plugin: PluginConfig) -> None:
    """Compute fair shares and add the rules of queues."""
    proportion = Proportion(cycle, plugin)
    hooks = cycle.hooks
    hooks.queue_orders.append(proportion.compare)
    hooks.over_capacity.append(proportion.over_capacity)
    hooks.over_quota.append(proportion.over_quota)
    hooks.entitled.append(proportion.entitled)
    hooks.outranks.append(proportion.outranks)
    hooks.queue_limits.append(proportion.refuses)
    shares = zip(cycle.queues.names, proportion.fair, strict=True)
    cycle.result.fair_share = {name: (cpu, memory, gpus) for name, (cpu, memory, gpus) in shares}
    multiplier = max(1.0, plugin.number("relcaimerSaturationMultiplier", 1.0))
    Reclaiming(cycle, proportion.fair, proportion.allocatable, multiplier).install()


class Proportion:
    """Fair share and the rules that follow from it."""

    def __init__(self, cycle: Cycle, plugin: PluginConfig) -> None:
        self.cycle = cycle
        self.queues = cycle.queues
        self.state = cycle.state
        usage_weight = max(0.0, plugin.number("kValue", 1.0))
        self.total = _cluster_total(cycle)
        smallest_gpu = cycle.sizes.smallest_gpu
        requested = [
            [
                charged[0] + waiting[0],
                charged[1] + waiting[1],
                charged[2] + waiting[2] + memory / smallest_gpu,
            ]
            for charged, waiting, memory in zip(
                self.state.charged, self.state.waiting, self.state.waiting_memory, strict=True
            )
        ]
        self.fair = fair_shares(self.queues, self.total, requested, usage_weight)
        self.allocatable = [self._allocatable(queue) for queue in range(len(self.queues))]
        # The denominators of dominant shares.
        self.wholes = [
            [total if share == UNLIMITED else share for share, total in zip(shares, self.total, strict=True)]
            for shares in self.allocatable
        ]
        # The last standing of each queue, with what it held, wanted and gave.
        self._standings: list[tuple[list[float], Triple, Triple, Standing] | None] = [None] * len(self.queues)
        # The ancestors of each queue that have a limit.
        self._limited = [
            [queue for queue in path if any(limit != UNLIMITED for limit in self.queues.limit[queue])]
            for path in self.queues.path
        ]

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

    def compare(self, left_head: Head, right_head: Head) -> int:
        """Which of two queues goes first, by the jobs at their heads or by the victims they would give."""
        first, second = self._standing(left_head), self._standing(right_head)
        if first != second:
            return -1 if first < second else 1
        left, right = left_head.queue, right_head.queue
        shares, others = self.allocatable[left], self.allocatable[right]
        smaller, larger = within(shares, others), within(others, shares)
        if smaller != larger:
            return -1 if smaller else 1
        return -1 if self.queues.created[left] < self.queues.created[right] else 1

    def _standing(self, head: Head) -> Standing:
        """Return what a queue is compared by; kept while it holds, wants and gives the same."""
        queue, gang, given = head
        held, wanted = self.state.charged[queue], self.cycle.wanted(gang) if gang is not None else NOTHING
        last = self._standings[queue]
        # Moves replace what a queue holds, and never change it.
        if last is not None and last[0] is held and last[1] == wanted and last[2] == given:
            return last[3]
        then = plus(held, wanted)
        shares, wholes = self.allocatable[queue], self.wholes[queue]
        standing = (
            _above_everywhere(held, self.fair[queue]),
            not within(then, self.queues.quota[queue]),
            -self.queues.priority[queue],
            _violates(then, shares),
            _dominant(wholes, _minus(then, given) if gang is None else then),
            _dominant(wholes, held),
        )
        self._standings[queue] = (held, wanted, given, standing)
        return standing

    def over_capacity(self, job: Job, tasks: list[Task]) -> OverLimit | OverQuota | None:
        """Why a job's next tasks would take its queue, or one above, beyond what it may hold."""
        if job.preemptible and not self._limited[job.queue]:
            return None
        wanted = added_up(task.cls.wanted(self.cycle.sizes.largest_gpu) for task in tasks)
        return self.beyond_limit(job, wanted) or self.beyond_quota(job, wanted)

    def over_quota(self, job: Job, tasks: list[Task]) -> OverQuota | None:
        """Why tasks that may not be evicted would take a queue beyond its quota."""
        return self.beyond_quota(job, added_up(task.cls.wanted(self.cycle.sizes.largest_gpu) for task in tasks))

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
        """Whether a job may use nodes reserved for another: jobs within quota go before jobs beyond it."""
        if job.queue == holder.queue:
            return job.priority > holder.priority
        queues, wanted = self.queues, self.cycle.wanted(job)
        own, rival = queues.levelled(job.queue, holder.queue)
        guaranteed = within(plus(self.state.charged[own], wanted), queues.quota[own])
        if guaranteed != within(self.cycle.wanted(holder), queues.quota[rival]):
            return guaranteed
        return queues.priority[own] > queues.priority[rival]


def _cluster_total(cycle: Cycle) -> list[float]:
    nodes = cycle.nodes
    rows = gpu_rows = cycle.all_rows[nodes.ready[cycle.all_rows]]
    if cycle.config.workers is not None:
        cpu_workers, gpu_workers = (nodes.codes(label) >= 0 for label in cycle.config.workers)
        rows = rows[cpu_workers[rows] | gpu_workers[rows]]
        gpu_rows = rows[gpu_workers[rows]]
    total = [
        float(nodes.allocatable[rows, 0].sum()),
        float(nodes.allocatable[rows, 1].sum()),
        float(nodes.whole_gpus(nodes.allocatable[gpu_rows]).sum()),
    ]
    for row in rows.tolist():
        for request in cycle.state.foreign.get(row, {}).values():
            total = [amount - less for amount, less in zip(total, request, strict=True)]
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


def _minus(amounts: list[float], less: Triple) -> list[float]:
    return [amounts[0] - less[0], amounts[1] - less[1], amounts[2] - less[2]]
