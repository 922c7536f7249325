"""Disruption budgets: how many pods may be evicted right now."""

from __future__ import annotations

from datetime import datetime, timedelta

from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.intstr import at_least
from spinney.api.meta import Json, Key, OwnerReference, Resource
from spinney.api.owners import controller_of
from spinney.api.pod_state import is_ready
from spinney.api.policy import PodDisruptionBudget
from spinney.api.selector import matches
from spinney.api.times import rfc3339
from spinney.embedded.controllers.writes import after, patch_status
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.discovery import Discovery
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

# An allowed eviction counts as a disruption until the deletion is seen, or for so long.
DISRUPTION_SECONDS = 120.0


class CannotCount(Exception):
    """The wanted number of pods is unknown."""


def plan_budget(
    budget: PodDisruptionBudget, pods: list[Pod], expected: int, now: datetime
) -> tuple[Json, float | None]:
    """The status changes, and after how many seconds to look again."""
    disrupted, wake = _still_disrupted(budget, pods, now)
    healthy = sum(1 for p in pods if is_ready(p) and p.metadata.deletion_timestamp is None and p.name not in disrupted)
    desired = _desired(budget, expected)
    allowed = max(0, healthy - desired) if expected else 0
    status = {
        "disruptionsAllowed": (budget.status.disruptions_allowed, allowed),
        "currentHealthy": (budget.status.current_healthy, healthy),
        "desiredHealthy": (budget.status.desired_healthy, desired),
        "expectedPods": (budget.status.expected_pods, expected),
        "observedGeneration": (budget.status.observed_generation, budget.metadata.generation),
    }
    # All counts or none: they are required fields.
    moved = any(old != value for old, value in status.values())
    changed: Json = {name: value for name, (_, value) in status.items()} if moved else {}
    gone = {name: None for name in budget.status.disrupted_pods if name not in disrupted}
    if gone:
        changed["disruptedPods"] = gone
    condition = _condition(
        budget, "True" if allowed else "False", "SufficientPods" if allowed else "InsufficientPods", now
    )
    if condition:
        changed["conditions"] = [condition]
    return changed, wake


def _desired(budget: PodDisruptionBudget, expected: int) -> int:
    if budget.spec.max_unavailable is not None:
        return max(0, expected - at_least(budget.spec.max_unavailable, expected))
    return at_least(budget.spec.min_available if budget.spec.min_available is not None else 0, expected)


def _still_disrupted(budget: PodDisruptionBudget, pods: list[Pod], now: datetime) -> tuple[set[str], float | None]:
    """The evicted pods that still exist, and after how many seconds to look again."""
    present = {pod.name for pod in pods if pod.metadata.deletion_timestamp is None}
    waits = {}
    for name, since in budget.status.disrupted_pods.items():
        left = (datetime.fromisoformat(since) + timedelta(seconds=DISRUPTION_SECONDS) - now).total_seconds()
        if name in present and left > 0:
            waits[name] = left
    return set(waits), min(waits.values(), default=None)


def _condition(budget: PodDisruptionBudget, status: str, reason: str, now: datetime, message: str = "") -> Json | None:
    old = find(budget.status.conditions, "DisruptionAllowed")
    generation = budget.metadata.generation
    if old and old.status == status and old.reason == reason and old.observed_generation == generation:
        return None
    condition: Json = {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }
    if not old or old.status != status:
        condition["lastTransitionTime"] = rfc3339(now)
    return condition


class DisruptionBudgets:
    """The disruption controller; the API server decides on evictions by the status it writes."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._sizes = _Sizes(runtime.client)
        self._budgets = runtime.caches.of(PodDisruptionBudget)
        self._pods = runtime.caches.of(Pod)
        self._pods.index("namespace", lambda pod: (pod.namespace,))
        self.controller = Controller("disruption", runtime, self._reconcile)
        self.controller.watch(self._budgets).watch(self._pods, self._budgets_of)

    def _budgets_of(self, change: Change[Pod]) -> list[Key]:
        pods = [pod for pod in (change.old, change.new) if pod is not None]
        return [budget.key for budget in self._budgets if any(_selects(budget, pod) for pod in pods)]

    async def _reconcile(self, key: Key) -> After | None:
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return None
        pods = [pod for pod in self._pods.by("namespace", budget.namespace) if _selects(budget, pod)]
        now = self._clock.now()
        try:
            status, wake = plan_budget(budget, pods, await self._expected(budget, pods), now)
        except CannotCount as error:
            status, wake = self._failed(budget, str(error), now), None
        await patch_status(self._client, budget, status, Patch.STRATEGIC)
        return after(wake)

    def _failed(self, budget: PodDisruptionBudget, message: str, now: datetime) -> Json:
        condition = _condition(budget, "False", "SyncFailed", now, message)
        status: Json = {"conditions": [condition]} if condition else {}
        return status | ({"disruptionsAllowed": 0} if budget.status.disruptions_allowed else {})

    async def _expected(self, budget: PodDisruptionBudget, pods: list[Pod]) -> int:
        """How many pods there should be: for a percentage, what their owners want; otherwise those that exist."""
        if budget.spec.max_unavailable is None and isinstance(budget.spec.min_available, int):
            return len(pods)
        # Pods without an owner have no wanted number and do not count.
        owners = {owner.uid: owner for pod in pods if (owner := controller_of(pod.metadata)) is not None}
        sizes = dict([await self._sizes.of(owner, budget.namespace) for owner in owners.values()])
        return sum(sizes.values())


class _Sizes:
    """The wanted size of pods' owners, by their scale subresource."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)

    async def of(self, owner: OwnerReference, namespace: str) -> tuple[str, int]:
        """UID and wanted size of an owner; of the Deployment, if the owner is one of its ReplicaSets."""
        resource = await self._resource(owner)
        try:
            if owner.kind == "ReplicaSet":
                replicaset = await self._client.get(resource, (namespace, owner.name))
                references = replicaset["metadata"].get("ownerReferences", ())
                above = next((reference for reference in references if reference.get("controller")), None)
                if above is not None:
                    reference = OwnerReference(
                        api_version=above["apiVersion"], kind=above["kind"], name=above["name"], uid=above["uid"]
                    )
                    owner, resource = reference, await self._resource(reference)
            scale = await self._client.get(resource, (namespace, owner.name), subresource="scale")
        except NotFound as error:
            raise CannotCount(f"{owner.kind} {owner.name!r} does not implement the scale subresource") from error
        return owner.uid, int(scale["spec"].get("replicas", 0))

    async def _resource(self, owner: OwnerReference) -> Resource:
        resource = await self._discovery.resource(owner.api_version, owner.kind)
        if resource is None:
            raise CannotCount(f"{owner.kind} of {owner.api_version} is not served")
        return resource


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    return budget.namespace == pod.namespace and matches(budget.spec.selector, pod.metadata.labels)
