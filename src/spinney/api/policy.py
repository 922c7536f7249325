"""policy: disruption budgets."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Condition, Object, Resource, Struct
from spinney.api.selector import LabelSelector


class PodDisruptionBudgetSpec(Struct, frozen=True):
    """The pods of a budget, and how many must stay."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Struct, frozen=True):
    """The number of pods that may be evicted now."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object, frozen=True):
    """Limits how many pods of a kind may be evicted at once."""

    resource: ClassVar[Resource] = Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
