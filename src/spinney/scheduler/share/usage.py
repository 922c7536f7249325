"""Recent usage of the cluster by queue, recorded by the scheduler itself, for time-based fair share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from spinney.scheduler.state.tasks import Triple

_NOTHING: Triple = (0.0, 0.0, 0.0)


@dataclass
class UsageRecord:
    """Resource-seconds per queue and of the whole cluster, fading with a half-life (or never).

    The record is a running sum: each step fades what was before and adds what was held since. So it stays as small as
    the number of queues, however long it goes back.
    """

    # Seconds in which use counts half as much; None counts it for ever.
    half_life: float | None = None
    moment: float | None = None
    used: dict[str, Triple] = field(default_factory=dict)
    capacity: Triple = _NOTHING

    def add(self, now: float, held: Mapping[str, Triple], capacity: Triple) -> None:
        """Add what queues hold, and the cluster has, since the last call."""
        if self.moment is None or now <= self.moment:
            self.moment = now if self.moment is None else self.moment
            return
        passed = now - self.moment
        self.moment = now
        fade, weight = self._weights(passed)
        self.capacity = _blend(self.capacity, capacity, fade, weight)
        for name in {*self.used, *held}:
            self.used[name] = _blend(self.used.get(name, _NOTHING), held.get(name, _NOTHING), fade, weight)
        self.used = {name: amounts for name, amounts in self.used.items() if any(amounts)}

    def share(self, queue: str) -> Triple:
        """Return a queue's recent usage as a part of the cluster's capacity."""
        used = self.used.get(queue, _NOTHING)
        parts = [amount / whole if whole > 0 else 0.0 for amount, whole in zip(used, self.capacity, strict=True)]
        return parts[0], parts[1], parts[2]

    def _weights(self, passed: float) -> tuple[float, float]:
        """Return the factor of past usage, and the weight of the time since then."""
        if self.half_life is None:
            return 1.0, passed
        rate = math.log(2) / self.half_life
        fade = math.exp(-rate * passed)
        return fade, (1.0 - fade) / rate


def _blend(old: Triple, new: Triple, fade: float, weight: float) -> Triple:
    return (
        old[0] * fade + new[0] * weight,
        old[1] * fade + new[1] * weight,
        old[2] * fade + new[2] * weight,
    )
