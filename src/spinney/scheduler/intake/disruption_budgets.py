"""PodDisruptionBudgets as the eviction API applies them: which one an eviction counts against, and what it allows."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.core import Pod
from spinney.api.pod_state import is_ready
from spinney.api.policy import PodDisruptionBudget
from spinney.api.selector import matches

_ALWAYS = "AlwaysAllow"


def budget_key(budget: PodDisruptionBudget) -> str:
    """The key of a budget: namespace and name."""
    return f"{budget.namespace}/{budget.name}"


def evictions_allowed(budget: PodDisruptionBudget) -> int:
    """The number of pods that may be evicted now; 0 until the status is of the latest generation."""
    if budget.status.observed_generation < budget.metadata.generation:
        return 0
    return max(0, budget.status.disruptions_allowed)


def budgets_of_pod(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> tuple[str, ...]:
    """The budgets that the eviction of a pod counts against; none for a pod that does not run yet."""
    if pod.status.phase != "Running" or pod.metadata.deletion_timestamp is not None:
        return ()
    covering = [budget for budget in budgets if matches(budget.spec.selector, pod.metadata.labels)]
    if len(covering) == 1 and not is_ready(pod) and _lets_unready_go(covering[0]):
        return ()
    return tuple(sorted(budget_key(budget) for budget in covering))


def _lets_unready_go(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == _ALWAYS:
        return True
    return 0 < budget.status.desired_healthy <= budget.status.current_healthy
