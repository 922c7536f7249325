"""What a Deployment needs next, decided from it and its ReplicaSets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.apps import Deployment, ReplicaSet
from spinney.api.conditions import find
from spinney.api.intstr import at_least, at_most
from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.api.owners import controller_reference
from spinney.api.times import rfc3339
from spinney.embedded.controllers.sets.replicaset import FAILURE
from spinney.embedded.controllers.sets.revisions import template_hash
from spinney.embedded.controllers.writes import ConditionRow, changed_fields, condition

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
HISTORY = "deployment.kubernetes.io/revision-history"
_OWN = frozenset(
    (
        *(REVISION, HISTORY, DESIRED, MAX, "deprecated.deployment.rollback.to"),
        "kubectl.kubernetes.io/last-applied-configuration",
    )
)

_AVAILABLE = ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
_UNAVAILABLE = (
    "Available",
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)


@dataclass
class DeploymentPlan:
    """The wanted changes."""

    create: Json | None = None
    # ReplicaSets and the size each should have.
    scale: list[tuple[ReplicaSet, int]] = field(default_factory=list)
    delete: list[ReplicaSet] = field(default_factory=list)
    revision: int = 0
    status: Json = field(default_factory=dict)
    wake: float | None = None


def plan_deployment(deployment: Deployment, sets: list[ReplicaSet], now: datetime) -> DeploymentPlan:
    """What a Deployment needs, given its ReplicaSets."""
    plan = DeploymentPlan()
    new = newest(deployment, sets)
    old = [replicaset for replicaset in sets if replicaset is not new]
    plan.revision = _revision(new, old)
    if deployment.spec.paused:
        _resize_only(deployment, sets, plan)
    elif deployment.spec.strategy.type == "Recreate":
        _recreate(deployment, new, old, plan)
    else:
        _roll(deployment, new, old, plan)
    _clean_up(deployment, new, old, plan)
    _status(deployment, new, sets, now, plan)
    return plan


def newest(deployment: Deployment, sets: list[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet of the current template; the oldest of several."""
    same = [replicaset for replicaset in sets if plain(replicaset.spec.template) == plain(deployment.spec.template)]
    return min(same, key=lambda replicaset: (replicaset.metadata.creation_timestamp, replicaset.name), default=None)


def plain(template: Json) -> Json:
    """A template without the hash label that ReplicaSets add."""
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH}
    return {"metadata": {k: v for k, v in metadata.items() if v}, "spec": template.get("spec")}


def _revision(new: ReplicaSet | None, old: list[ReplicaSet]) -> int:
    highest_old = max((revision_of(replicaset) for replicaset in old), default=0)
    own = revision_of(new) if new else 0
    return own if own > highest_old else highest_old + 1


def revision_of(replicaset: ReplicaSet) -> int:
    """The revision of a ReplicaSet, 0 where it has none."""
    return whole_number(replicaset.metadata.annotations.get(REVISION, "")) or 0


def _resize_only(deployment: Deployment, sets: list[ReplicaSet], plan: DeploymentPlan) -> None:
    """Scale a paused Deployment: its one active ReplicaSet, or all of them in proportion."""
    active = [replicaset for replicaset in sets if replicaset.spec.replicas]
    if len(active) == 1:
        plan.scale = [(active[0], deployment.spec.replicas)]
    elif deployment.spec.strategy.type == "RollingUpdate" and _resized(deployment, active):
        plan.scale = _shares(deployment, active)


def _resized(deployment: Deployment, sets: list[ReplicaSet]) -> bool:
    wanted = str(deployment.spec.replicas)
    return any(replicaset.metadata.annotations.get(DESIRED, wanted) != wanted for replicaset in sets)


def _shares(deployment: Deployment, sets: list[ReplicaSet]) -> list[tuple[ReplicaSet, int]]:
    """Divide a change of size among ReplicaSets by their sizes; the largest takes the rounding rest."""
    allowed = deployment.spec.replicas + _bounds(deployment)[0] if deployment.spec.replicas else 0
    change = left = allowed - sum(replicaset.spec.replicas for replicaset in sets)
    newer_first = sorted(sets, key=lambda replicaset: str(replicaset.metadata.creation_timestamp), reverse=change > 0)
    ordered = sorted(newer_first, key=lambda replicaset: -replicaset.spec.replicas)
    sizes: dict[str, int] = {}
    for replicaset in ordered:
        largest = whole_number(replicaset.metadata.annotations.get(MAX, ""))
        before = deployment.status.replicas if largest is None else largest
        share = round(replicaset.spec.replicas * allowed / before) - replicaset.spec.replicas if before and left else 0
        share = min(share, left) if change > 0 else max(share, left)
        sizes[replicaset.name] = replicaset.spec.replicas + share
        left -= share
    sizes[ordered[0].name] = max(sizes[ordered[0].name] + left, 0)
    return [(replicaset, sizes[replicaset.name]) for replicaset in ordered]


def _recreate(deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet], plan: DeploymentPlan) -> None:
    plan.scale = [(replicaset, 0) for replicaset in old if replicaset.spec.replicas]
    if plan.scale or any(replicaset.status.replicas for replicaset in old):
        return
    _grow(deployment, new, deployment.spec.replicas, plan)


def _roll(deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet], plan: DeploymentPlan) -> None:
    wanted = deployment.spec.replicas
    surge, unavailable = _bounds(deployment)
    current = sum(replicaset.spec.replicas for replicaset in old) + (new.spec.replicas if new else 0)
    own = new.spec.replicas if new else 0
    target = wanted if own > wanted else own + max(0, min(wanted + surge - current, wanted - own))
    _grow(deployment, new, target, plan)
    if new is None or target != own:
        return
    _shrink_old(deployment, new, old, plan, wanted - unavailable)


def _bounds(deployment: Deployment) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of pods."""
    wanted = deployment.spec.replicas
    rolling = deployment.spec.strategy.rolling_update
    surge = at_least(rolling.max_surge, wanted)
    unavailable = at_most(rolling.max_unavailable, wanted)
    # Both zero would allow no step.
    return surge, min(unavailable or (0 if surge else 1), wanted)


def _grow(deployment: Deployment, new: ReplicaSet | None, replicas: int, plan: DeploymentPlan) -> None:
    if new is None:
        plan.create = _replicaset(deployment, replicas, plan.revision)
    else:
        plan.scale.append((new, replicas))


def _shrink_old(
    deployment: Deployment, new: ReplicaSet, old: list[ReplicaSet], plan: DeploymentPlan, min_available: int
) -> None:
    """Scale old ReplicaSets down: unhealthy pods first, then as many as stay above the minimum."""
    everything = [*old, new]
    total = sum(replicaset.spec.replicas for replicaset in everything)
    new_unavailable = new.spec.replicas - new.status.available_replicas
    budget = total - min_available - new_unavailable
    available = sum(replicaset.status.available_replicas for replicaset in everything)
    spare = available - min_available
    for replicaset in sorted(old, key=lambda old_set: (old_set.metadata.creation_timestamp, old_set.name)):
        unhealthy = min(replicaset.spec.replicas - replicaset.status.available_replicas, budget)
        healthy = min(replicaset.spec.replicas - max(unhealthy, 0), spare)
        fewer = max(unhealthy, 0) + max(healthy, 0)
        fewer = min(fewer, max(budget, 0))
        if fewer <= 0:
            continue
        plan.scale.append((replicaset, replicaset.spec.replicas - fewer))
        budget -= fewer
        spare -= max(fewer - max(unhealthy, 0), 0)


def _replicaset(deployment: Deployment, replicas: int, revision: int) -> Json:
    template = deployment.spec.template
    name = template_hash(template, deployment.status.collision_count or 0)
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH: name}
    selector = deployment.spec.selector
    expressions = [
        {"key": term.key, "operator": term.operator, **({"values": list(term.values)} if term.values else {})}
        for term in (selector.match_expressions if selector else ())
    ]
    return {
        "metadata": {
            "name": f"{deployment.name}-{name}",
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": copied_annotations(deployment) | annotations_of(deployment, revision),
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": {
                "matchLabels": {**(selector.match_labels if selector else {}), HASH: name},
                **({"matchExpressions": expressions} if expressions else {}),
            },
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }


def copied_annotations(deployment: Deployment) -> dict[str, str]:
    """The annotations that the newest ReplicaSet takes over from its Deployment."""
    return {key: value for key, value in deployment.metadata.annotations.items() if key not in _OWN}


def annotations_of(deployment: Deployment, revision: int) -> dict[str, str]:
    """The annotations of a ReplicaSet about its Deployment: revision and sizes."""
    surge = _bounds(deployment)[0] if deployment.spec.strategy.type == "RollingUpdate" else 0
    wanted = deployment.spec.replicas
    return {REVISION: str(revision), DESIRED: str(wanted), MAX: str(wanted + surge)}


def _clean_up(deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet], plan: DeploymentPlan) -> None:
    """Delete empty old ReplicaSets beyond the history limit, once the update is complete."""
    if new is None or new.status.available_replicas < deployment.spec.replicas:
        return
    empty = [replicaset for replicaset in old if not replicaset.spec.replicas and not replicaset.status.replicas]
    empty.sort(key=revision_of)
    plan.delete = empty[: max(0, len(empty) - deployment.spec.revision_history_limit)]


def _status(
    deployment: Deployment, new: ReplicaSet | None, sets: list[ReplicaSet], now: datetime, plan: DeploymentPlan
) -> None:
    replicas = sum(replicaset.status.replicas for replicaset in sets)
    available = sum(replicaset.status.available_replicas for replicaset in sets)
    plan.status = changed_fields(
        deployment.status,
        observed_generation=deployment.metadata.generation,
        replicas=replicas,
        updated_replicas=new.status.replicas if new else 0,
        ready_replicas=sum(replicaset.status.ready_replicas for replicaset in sets),
        available_replicas=available,
        terminating_replicas=sum(replicaset.status.terminating_replicas or 0 for replicaset in sets),
        unavailable_replicas=max(0, sum(replicaset.spec.replicas for replicaset in sets) - available),
    )
    conditions = _conditions(deployment, new, sets, now, plan)
    if conditions:
        plan.status["conditions"] = conditions


def _conditions(
    deployment: Deployment, new: ReplicaSet | None, sets: list[ReplicaSet], now: datetime, plan: DeploymentPlan
) -> list[Json]:
    available = sum(replicaset.status.available_replicas for replicaset in sets)
    enough = available >= deployment.spec.replicas - _bounds(deployment)[1]
    wanted = [_AVAILABLE if enough else _UNAVAILABLE]
    if deployment.spec.paused:
        wanted.insert(0, ("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"))
    else:
        wanted += _progress(deployment, new, sets, now, plan)
    refused = find(new.status.conditions, FAILURE) if new else None
    if refused is not None:
        wanted.append((FAILURE, "True", refused.reason, refused.message))
    changed = []
    for type_, status, reason, message in wanted:
        old = find(deployment.status.conditions, type_)
        if old and old.status == status and old.reason == reason:
            continue
        row = condition(type_, status, reason, message, now)
        if old and old.status == status:
            del row["lastTransitionTime"]
        changed.append({**row, "lastUpdateTime": rfc3339(now)})
    if refused is None and find(deployment.status.conditions, FAILURE) is not None:
        changed.append({"type": FAILURE, "$patch": "delete"})
    return changed


def _progress(
    deployment: Deployment, new: ReplicaSet | None, sets: list[ReplicaSet], now: datetime, plan: DeploymentPlan
) -> list[ConditionRow]:
    if new is None:
        name = plan.create["metadata"]["name"] if plan.create else ""
        if not name:
            return []
        return [("Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')]
    size = deployment.spec.replicas
    replicas = sum(replicaset.status.replicas for replicaset in sets)
    available = sum(replicaset.status.available_replicas for replicaset in sets)
    if new.status.replicas == size and replicas == size and available >= size:
        message = f'ReplicaSet "{new.name}" has successfully progressed.'
        return [("Progressing", "True", "NewReplicaSetAvailable", message)]
    old = find(deployment.status.conditions, "Progressing")
    if old and old.reason == "ProgressDeadlineExceeded" and not plan.status:
        return []
    since = old.last_transition_time if old and old.last_transition_time else now
    moved = bool(plan.status) or any(replicaset.spec.replicas != size for replicaset, size in plan.scale)
    left = deployment.spec.progress_deadline_seconds - (now - since).total_seconds()
    if old and not moved and left <= 0 and old.reason != "NewReplicaSetAvailable":
        message = f'ReplicaSet "{new.name}" has timed out progressing.'
        return [("Progressing", "False", "ProgressDeadlineExceeded", message)]
    plan.wake = max(left, 1.0)
    return [("Progressing", "True", "ReplicaSetUpdated", f'ReplicaSet "{new.name}" is progressing.')]
