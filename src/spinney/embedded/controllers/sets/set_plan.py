"""The plan that controllers of pod sets share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.apps import SetSpec
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.embedded.controllers.pods.replicas import available_in


@dataclass
class SetPlan:
    """Pods to create and delete, status fields to change, and after how many seconds to look again."""

    create: list[Json] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    wake: float | None = None

    def count_available(self, spec: SetSpec, pods: Iterable[Pod], now: datetime) -> int:
        """How many pods are available; wakes when the next ready one becomes so."""
        waits = [available_in(pod, spec.min_ready_seconds, now) for pod in pods]
        self.wake = min((wait for wait in waits if wait), default=None)
        return waits.count(0.0)
