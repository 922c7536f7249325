"""Disruption budgets in evictions."""

from __future__ import annotations

from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import plain, too_many_requests
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.store.store import Item, load

_BUDGETS = "policy/poddisruptionbudgets"


def allow(core: Core, pod: Item, *, dry_run: bool) -> None:
    """Take one disruption from the budget of a pod, or refuse the eviction."""
    document = load(pod)
    status = document.get("status") or {}
    if document["metadata"].get("deletionTimestamp") or status.get("phase") in ("Pending", "Succeeded", "Failed"):
        return
    budgets = []
    for item in core.store.table(_BUDGETS).range(pod.namespace):
        budget = load(item)
        selector = (budget.get("spec") or {}).get("selector")
        if selector is not None and selectors.matches(selectors.from_object(selector), pod.labels):
            budgets.append((item, budget))
    if not budgets:
        return
    if len(budgets) > 1:
        raise plain("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    item, budget = budgets[0]
    state = budget.get("status") or {}
    if not _ready(status):
        if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return
        if state.get("currentHealthy", 0) >= state.get("desiredHealthy", 0) > 0:
            return
    name = item.name
    allowed = state.get("disruptionsAllowed", 0)
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = {
            "reason": "DisruptionBudget",
            "message": f"The disruption budget {name} is still being processed by the core.",
        }
        raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", 10, [cause])
    if allowed <= 0:
        healthy, needed = state.get("currentHealthy", 0), state.get("desiredHealthy", 0)
        message = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        if healthy > needed:
            message = f"The disruption budget {name} does not allow evicting pods currently"
        cause = {"reason": "DisruptionBudget", "message": message}
        raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", 0, [cause])
    if dry_run:
        return
    state["disruptionsAllowed"] = allowed - 1
    state.setdefault("disruptedPods", {})[pod.name] = core.timestamp()
    budget["status"] = state
    core.store.put(_BUDGETS, item.key, budget, item.fields)


def _ready(status: dict[str, object]) -> bool:
    conditions = status.get("conditions") or ()
    assert isinstance(conditions, list | tuple)
    return any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)
