"""Disruption budgets in evictions."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, bad_request, too_many_requests
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.store.store import Item, load

_BUDGETS = "policy/poddisruptionbudgets"


def allow(core: Core, pod: Item, *, dry_run: bool) -> None:
    """Take one disruption from the budget of a pod, or refuse the eviction."""
    document = load(pod)
    pod_status: Json = document.get("status") or {}
    if document["metadata"].get("deletionTimestamp") or pod_status.get("phase") in ("Pending", "Succeeded", "Failed"):
        return
    budgets = _budgets_of(core, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        raise bad_request(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    item, budget = budgets[0]
    status = budget.get("status") or {}
    if not _is_ready(pod_status) and _allows_unready(budget.get("spec") or {}, status):
        return
    _check_budget(item.name, budget["metadata"].get("generation", 0), status)
    if dry_run:
        return
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[pod.name] = core.timestamp()
    budget["status"] = status
    core.store.put(_BUDGETS, item.key, budget, item.fields)


def _budgets_of(core: Core, pod: Item) -> list[tuple[Item, Json]]:
    budgets = []
    for item in core.store.table(_BUDGETS).range(pod.namespace):
        budget = load(item)
        selector = (budget.get("spec") or {}).get("selector")
        if selector is not None and selectors.matches(selectors.from_object(selector), pod.labels):
            budgets.append((item, budget))
    return budgets


def _allows_unready(spec: Json, status: Json) -> bool:
    """Whether a pod that is not ready can be evicted without a disruption."""
    healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= needed > 0


def _check_budget(name: str, generation: int, status: Json) -> None:
    """Refuse an eviction that the budget does not allow, or not yet."""
    if status.get("observedGeneration", 0) < generation:
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    if status.get("disruptionsAllowed", 0) > 0:
        return
    healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy > needed:
        raise _refusal(f"The disruption budget {name} does not allow evicting pods currently")
    raise _refusal(f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")


def _refusal(message: str, retry_after: int = 0) -> Refusal:
    cause = {"reason": "DisruptionBudget", "message": message}
    why = "Cannot evict pod as it would violate the pod's disruption budget."
    return too_many_requests(why, retry_after, [cause])


def _is_ready(status: Json) -> bool:
    conditions = status.get("conditions") or ()
    return any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)
