"""What a StatefulSet needs next: pods with stable names, created and updated in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.apps import StatefulSet
from spinney.api.core import Pod
from spinney.api.intstr import at_least
from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.api.owners import controller_reference
from spinney.api.pod_state import is_active, is_finished, is_ready
from spinney.embedded.controllers.pods.replicas import available_in, from_template
from spinney.embedded.controllers.sets.revisions import REVISION, RevisionedPlan, current_hash, revision
from spinney.embedded.controllers.writes import BURST, changed_fields

HASH = "controller.kubernetes.io/hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


@dataclass
class StatefulSetPlan(RevisionedPlan):
    """The plan of a StatefulSet, with its claims."""

    # Claims to create, each after the name of its pod.
    claims: list[tuple[str, Json]] = field(default_factory=list)
    # Claims to delete with their pods, by name, as the retention policy says.
    delete_claims: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _State:
    """A StatefulSet now: the wanted ordinals, its pods by ordinal, and the revisions before and after an update."""

    owner: StatefulSet
    wanted: range
    pods: dict[int, Pod]
    current: str
    update: str
    templates: dict[str, Json]
    now: datetime

    @property
    def parallel(self) -> bool:
        """Whether pods are created and deleted in parallel."""
        return self.owner.spec.pod_management_policy == "Parallel"

    def healthy(self, pod: Pod) -> bool:
        """Whether a pod counts as available."""
        return is_active(pod) and available_in(pod, self.owner.spec.min_ready_seconds, self.now) == 0

    def revision_for(self, ordinal: int) -> str:
        """The revision of an ordinal: below the partition it stays the current one."""
        strategy = self.owner.spec.update_strategy
        new = strategy.type == "OnDelete" or ordinal >= strategy.rolling_update.partition
        return self.update if new else self.current


def plan_statefulset(owner: StatefulSet, pods: list[Pod], templates: dict[str, Json], now: datetime) -> StatefulSetPlan:
    """What a StatefulSet needs, given its pods and the templates of the revisions it still has."""
    plan = StatefulSetPlan()
    update = f"{owner.name}-{current_hash(owner)}"
    current = owner.status.current_revision or update
    if current not in templates:
        current = update
    if update not in templates:
        labels = {**(owner.spec.selector.match_labels if owner.spec.selector else {}), HASH: current_hash(owner)}
        plan.revisions.append(revision(owner, labels, len(templates) + 1))
    start = int(owner.spec.ordinals.get("start") or 0)
    state = _State(
        owner=owner,
        wanted=range(start, start + owner.spec.replicas),
        pods={ordinal_of(owner, pod): pod for pod in pods},
        current=current,
        update=update,
        templates={**templates, update: owner.spec.template},
        now=now,
    )
    if owner.metadata.deletion_timestamp is None:
        _fill(state, plan)
    _status(state, plan)
    return plan


def ordinal_of(owner: StatefulSet, pod: Pod) -> int:
    """The ordinal in a pod's name; -1 where there is none."""
    ordinal = whole_number(pod.name.removeprefix(f"{owner.name}-"))
    return -1 if ordinal is None else ordinal


def _fill(state: _State, plan: StatefulSetPlan) -> None:
    """Create, replace, update and remove pods; one at a time unless the set is managed in parallel."""
    for ordinal in state.wanted:
        pod = state.pods.get(ordinal)
        if pod is None:
            revision = state.revision_for(ordinal)
            plan.create.append(_pod(state.owner, ordinal, state.templates[revision], revision))
            plan.claims += _claims(state.owner, ordinal)
        elif is_finished(pod) and pod.metadata.deletion_timestamp is None:
            plan.delete.append(pod)
        elif state.healthy(pod):
            continue
        if not state.parallel or len(plan.create) == BURST:
            return
    _shrink(state, plan)
    if not plan.create and not plan.delete:
        _update(state, plan)


def _shrink(state: _State, plan: StatefulSetPlan) -> None:
    """Delete pods beyond the wanted ordinals, the highest first."""
    owner = state.owner
    for ordinal in sorted((o for o in state.pods if o >= 0 and o not in state.wanted), reverse=True):
        pod = state.pods[ordinal]
        if pod.metadata.deletion_timestamp is None:
            plan.delete.append(pod)
            if owner.spec.persistent_volume_claim_retention_policy.when_scaled == "Delete":
                plan.delete_claims += [_claim_name(claim, pod.name) for claim in owner.spec.volume_claim_templates]
        if not state.parallel:
            return


def _update(state: _State, plan: StatefulSetPlan) -> None:
    """Delete pods of an old revision, from the highest ordinal down, as far as the others are available."""
    owner, strategy = state.owner, state.owner.spec.update_strategy
    if strategy.type != "RollingUpdate":
        return
    allowed = max(1, at_least(strategy.rolling_update.max_unavailable, owner.spec.replicas)) if _several(owner) else 1
    unavailable = sum(1 for ordinal in state.wanted if not state.healthy(state.pods[ordinal]))
    for ordinal in reversed(state.wanted):
        pod = state.pods[ordinal]
        if ordinal < strategy.rolling_update.partition:
            return
        if pod.metadata.labels.get(REVISION) == state.update:
            continue
        if state.healthy(pod):
            if unavailable >= allowed:
                return
            unavailable += 1
        if pod.metadata.deletion_timestamp is None:
            plan.delete.append(pod)
        if unavailable >= allowed:
            return


def _several(owner: StatefulSet) -> bool:
    """Whether the set gives maxUnavailable itself; 25% is the default of the shared type."""
    return owner.spec.update_strategy.rolling_update.max_unavailable != "25%"


def _pod(owner: StatefulSet, ordinal: int, template: Json, revision: str) -> Json:
    pod = from_template(owner, template)
    name = f"{owner.name}-{ordinal}"
    pod["metadata"] |= {"name": name, "generateName": f"{owner.name}-"}
    pod["metadata"]["labels"] |= {REVISION: revision, POD_NAME: name, POD_INDEX: str(ordinal)}
    pod["spec"]["hostname"] = name
    pod["spec"]["subdomain"] = owner.spec.service_name
    own = {claim_template["metadata"]["name"] for claim_template in owner.spec.volume_claim_templates}
    volumes = [volume for volume in pod["spec"].get("volumes") or [] if volume["name"] not in own]
    for claim_template in owner.spec.volume_claim_templates:
        claim = {"claimName": _claim_name(claim_template, name)}
        volumes.append({"name": claim_template["metadata"]["name"], "persistentVolumeClaim": claim})
    if volumes:
        pod["spec"]["volumes"] = volumes
    return pod


def _claims(owner: StatefulSet, ordinal: int) -> list[tuple[str, Json]]:
    pod = f"{owner.name}-{ordinal}"
    return [(pod, _claim(owner, template, pod)) for template in owner.spec.volume_claim_templates]


def _claim(owner: StatefulSet, template: Json, pod: str) -> Json:
    template_metadata = template["metadata"]
    labels = {
        **(owner.spec.selector.match_labels if owner.spec.selector else {}),
        **(template_metadata.get("labels") or {}),
    }
    metadata = {
        "name": _claim_name(template, pod),
        "labels": labels,
        "annotations": template_metadata.get("annotations") or {},
    }
    if owner.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete":
        metadata["ownerReferences"] = [controller_reference(owner)]
    return {"metadata": metadata, "spec": template["spec"]}


def _claim_name(template: Json, pod: str) -> str:
    return f"{template['metadata']['name']}-{pod}"


def _status(state: _State, plan: StatefulSetPlan) -> None:
    owner, current, update = state.owner, state.current, state.update
    pods = list(state.pods.values())
    active = [pod for pod in pods if is_active(pod)]
    available = plan.count_available(owner.spec, active, state.now)
    updated = sum(1 for pod in active if pod.metadata.labels.get(REVISION) == update)
    at_current = sum(1 for pod in active if pod.metadata.labels.get(REVISION) == current)
    ready = sum(1 for pod in active if is_ready(pod))
    # An update is complete when every pod has the new revision and is ready.
    if current != update and updated == owner.spec.replicas == ready:
        current, at_current = update, updated
    plan.status = changed_fields(
        owner.status,
        observed_generation=owner.metadata.generation,
        replicas=len(pods),
        ready_replicas=ready,
        available_replicas=available,
        current_replicas=at_current,
        updated_replicas=updated,
        current_revision=current,
        update_revision=update,
        collision_count=owner.status.collision_count or 0,
    )
