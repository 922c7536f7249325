"""Fair shares of queues, exact to the unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from spinney.scheduler.state.queues import Queues
from spinney.scheduler.state.specs import UNLIMITED


def fair_shares(
    queues: Queues, total: list[float], requested: list[list[float]], usage_weight: float = 1.0
) -> list[list[float]]:
    """Divide the cluster's cpu, memory and GPUs over the tree; each level divides what its parent was given."""
    fair = [[0.0, 0.0, 0.0] for _ in queues.names]
    level = [(queues.roots, total)]
    while level:
        below: list[tuple[list[int], list[float]]] = []
        for siblings, amounts in level:
            for resource, amount in enumerate(amounts):
                _Division(queues, resource, requested, usage_weight, fair).divide(siblings, amount)
            below += [(queues.children[queue], fair[queue]) for queue in siblings if queues.children[queue]]
        level = below
    return fair


@dataclass(frozen=True, slots=True)
class _Division:
    """One resource, divided among siblings."""

    queues: Queues
    resource: int
    requested: list[list[float]]
    usage_weight: float
    fair: list[list[float]]

    def divide(self, siblings: list[int], total: float) -> None:
        """Give quotas first, as far as they are requested; divide the rest by priority and weight."""
        remaining = total
        for queue in siblings:
            quota = self.queues.quota[queue][self.resource]
            granted = min(total if quota == UNLIMITED else quota, self._requestable(queue))
            self.fair[queue][self.resource] = granted
            remaining -= granted
        if remaining <= 0:
            return
        buckets: dict[int, list[int]] = {}
        for queue in siblings:
            buckets.setdefault(self.queues.priority[queue], []).append(queue)
        leftovers: list[dict[int, float]] = []
        for priority in sorted(buckets, reverse=True):
            remaining, rests = self._by_weight(buckets[priority], remaining)
            leftovers.append(rests)
        for rests in leftovers:
            remaining = self._last_units(rests, remaining)

    def _last_units(self, rests: dict[int, float], remaining: float) -> float:
        """Give one unit each to the queues whose share was rounded down most."""
        queues = self.queues
        for queue in sorted(rests, key=lambda number: (-rests[number], queues.created[number], queues.names[number])):
            if remaining <= 0:
                break
            granted = min(1.0, remaining)
            self.fair[queue][self.resource] += granted
            remaining -= granted
        return remaining

    def _by_weight(self, bucket: list[int], remaining: float) -> tuple[float, dict[int, float]]:
        """Divide by weight in whole units until no queue's part exceeds what it still requests."""
        rests: dict[int, float] = {}
        while remaining:
            hungry = [queue for queue in bucket if not self._satisfied(queue)]
            parts = self._parts(bucket, hungry)
            whole = sum(parts.values())
            if whole == 0:
                break
            amount, again = remaining, False
            for queue in hungry:
                if remaining == 0:
                    break
                if self.queues.weight[queue][self.resource] == 0:
                    continue
                share, wanted = amount * (parts[queue] / whole), self._wanted(queue)
                granted = wanted if wanted <= share else float(max(0, floor(share)))
                if wanted <= share:
                    rests.pop(queue, None)
                elif share > granted:
                    rests[queue] = share - granted
                if granted:
                    self.fair[queue][self.resource] += granted
                    remaining -= granted
                    again = again or wanted < share
            if not again:
                break
        return remaining, rests

    def _parts(self, bucket: list[int], hungry: list[int]) -> dict[int, float]:
        """Return each unsatisfied queue's relative weight, reduced by its recent usage."""
        weights = sum(self.queues.weight[queue][self.resource] for queue in bucket if self._wanted(queue) > 0)
        if weights == 0:
            return {}
        parts = {}
        for queue in hungry:
            part = self.queues.weight[queue][self.resource] / weights
            usage = float(self.queues.usage[queue, self.resource])
            parts[queue] = max(0.0, part + self.usage_weight * (part - usage))
        return parts

    def _requestable(self, queue: int) -> float:
        limit, request = self.queues.limit[queue][self.resource], self.requested[queue][self.resource]
        return request if limit == UNLIMITED else min(limit, request)

    def _wanted(self, queue: int) -> float:
        return max(0.0, self._requestable(queue) - self.fair[queue][self.resource])

    def _satisfied(self, queue: int) -> bool:
        limit, granted = self.queues.limit[queue][self.resource], self.fair[queue][self.resource]
        return self.requested[queue][self.resource] <= granted or (limit != UNLIMITED and limit <= granted)
