"""What a StatefulSet needs next: pods with names that stay, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.apps import StatefulSet
from spinney.api.core import Pod
from spinney.api.intstr import at_least
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.embedded.controllers.pods.state import available_in, from_template, is_active, is_ready, is_terminal
from spinney.embedded.controllers.sets.revisions import REVISION, revision, template_hash
from spinney.embedded.controllers.sets.set_plan import SetPlan, soonest, told_anew

HASH = "controller.kubernetes.io/hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


@dataclass
class StatefulPlan(SetPlan):
    """The wanted changes, to claims too, and templates to keep."""

    revisions: list[Json] = field(default_factory=list)
    # With the names of the pods that they are for.
    claims: list[tuple[str, Json]] = field(default_factory=list)
    # Claims that the retention policy lets go with their pods.
    drop_claims: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Look:
    """A set as it is now: the pods it should have by ordinal, those there are, and the two revisions in play."""

    owner: StatefulSet
    wanted: range
    found: dict[int, Pod]
    current: str
    update: str
    templates: dict[str, Json]
    now: datetime

    @property
    def parallel(self) -> bool:
        """Whether pods need not wait for each other."""
        return self.owner.spec.pod_management_policy == "Parallel"

    def healthy(self, pod: Pod) -> bool:
        """Whether a pod counts as available."""
        return is_active(pod) and available_in(pod, self.owner.spec.min_ready_seconds, self.now) == 0

    def revision_for(self, ordinal: int) -> str:
        """Below the partition pods stay at the old revision."""
        strategy = self.owner.spec.update_strategy
        new = strategy.type == "OnDelete" or ordinal >= strategy.rolling_update.partition
        return self.update if new else self.current


def plan_statefulset(owner: StatefulSet, pods: list[Pod], templates: dict[str, Json], now: datetime) -> StatefulPlan:
    """What a StatefulSet needs, given its pods and the templates of the revisions it still has."""
    plan = StatefulPlan()
    update = revision_name(owner)
    current = owner.status.current_revision or update
    if current not in templates:
        current = update
    if update not in templates:
        labels = {**(owner.spec.selector.match_labels if owner.spec.selector else {}), HASH: update.rpartition("-")[2]}
        plan.revisions.append(revision(owner, update, owner.spec.template, labels, len(templates) + 1))
    start = int(owner.spec.ordinals.get("start") or 0)
    look = _Look(
        owner=owner,
        wanted=range(start, start + owner.spec.replicas),
        found={ordinal_of(owner, pod): pod for pod in pods},
        current=current,
        update=update,
        templates={**templates, update: owner.spec.template},
        now=now,
    )
    if owner.metadata.deletion_timestamp is None:
        _fill(look, plan)
    _status(look, plan)
    return plan


def revision_name(owner: StatefulSet) -> str:
    """The name of the current template's revision."""
    return f"{owner.name}-{template_hash(owner.spec.template, owner.status.collision_count or 0)}"


def ordinal_of(owner: StatefulSet, pod: Pod) -> int:
    """A pod's place in the set, from its name; -1 for a stranger."""
    text = pod.name.removeprefix(f"{owner.name}-")
    return int(text) if text.isdecimal() else -1


def _fill(look: _Look, plan: StatefulPlan) -> None:
    """Create, replace, update and remove pods; one at a time unless the set is managed in parallel."""
    for ordinal in look.wanted:
        pod = look.found.get(ordinal)
        if pod is None:
            revision = look.revision_for(ordinal)
            plan.create.append(_pod(look.owner, ordinal, look.templates[revision], revision))
            plan.claims += _claims(look.owner, ordinal)
        elif is_terminal(pod) and pod.metadata.deletion_timestamp is None:
            plan.delete.append(pod)
        elif look.healthy(pod):
            continue
        if not look.parallel:
            return
    _shrink(look, plan)
    if not plan.create and not plan.delete:
        _update(look, plan)


def _shrink(look: _Look, plan: StatefulPlan) -> None:
    """Give up pods beyond the wanted ones, the last first."""
    owner = look.owner
    for ordinal in sorted((o for o in look.found if o >= 0 and o not in look.wanted), reverse=True):
        pod = look.found[ordinal]
        if pod.metadata.deletion_timestamp is None:
            plan.delete.append(pod)
            if owner.spec.persistent_volume_claim_retention_policy.when_scaled == "Delete":
                plan.drop_claims += [_claim_name(each, pod.name) for each in owner.spec.volume_claim_templates]
        if not look.parallel:
            return


def _update(look: _Look, plan: StatefulPlan) -> None:
    """From the highest ordinal down, the next pod that is of an old revision, if the others are well."""
    owner, strategy = look.owner, look.owner.spec.update_strategy
    if strategy.type != "RollingUpdate":
        return
    allowed = max(1, at_least(strategy.rolling_update.max_unavailable, owner.spec.replicas)) if _several(owner) else 1
    unavailable = sum(1 for ordinal in look.wanted if not look.healthy(look.found[ordinal]))
    for ordinal in reversed(look.wanted):
        pod = look.found[ordinal]
        if ordinal < strategy.rolling_update.partition:
            return
        if pod.metadata.labels.get(REVISION) == look.update:
            continue
        if look.healthy(pod):
            if unavailable >= allowed:
                return
            unavailable += 1
        if pod.metadata.deletion_timestamp is None:
            plan.delete.append(pod)
        if unavailable >= allowed:
            return


def _several(owner: StatefulSet) -> bool:
    """Whether the set says itself how many may be away; the default of a Deployment is not meant."""
    return owner.spec.update_strategy.rolling_update.max_unavailable != "25%"


def _pod(owner: StatefulSet, ordinal: int, template: Json, revision: str) -> Json:
    pod = from_template(owner, template)
    name = f"{owner.name}-{ordinal}"
    # Part of the metadata, though the name is given.
    pod["metadata"] |= {"name": name, "generateName": f"{owner.name}-"}
    pod["metadata"]["labels"] |= {REVISION: revision, POD_NAME: name, POD_INDEX: str(ordinal)}
    pod["spec"]["hostname"] = name
    pod["spec"]["subdomain"] = owner.spec.service_name
    own = {each["metadata"]["name"] for each in owner.spec.volume_claim_templates}
    volumes = [volume for volume in pod["spec"].get("volumes") or [] if volume["name"] not in own]
    for each in owner.spec.volume_claim_templates:
        claim = {"claimName": _claim_name(each, name)}
        volumes.append({"name": each["metadata"]["name"], "persistentVolumeClaim": claim})
    if volumes:
        pod["spec"]["volumes"] = volumes
    return pod


def _claims(owner: StatefulSet, ordinal: int) -> list[tuple[str, Json]]:
    pod = f"{owner.name}-{ordinal}"
    return [(pod, _claim(owner, each, pod)) for each in owner.spec.volume_claim_templates]


def _claim(owner: StatefulSet, template: Json, pod: str) -> Json:
    given = template["metadata"]
    labels = {**(owner.spec.selector.match_labels if owner.spec.selector else {}), **(given.get("labels") or {})}
    metadata = {"name": _claim_name(template, pod), "labels": labels, "annotations": given.get("annotations") or {}}
    if owner.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete":
        metadata["ownerReferences"] = [controller_reference(owner)]
    return {"metadata": metadata, "spec": template["spec"]}


def _claim_name(template: Json, pod: str) -> str:
    return f"{template['metadata']['name']}-{pod}"


def _status(look: _Look, plan: StatefulPlan) -> None:
    owner, current, update = look.owner, look.current, look.update
    pods = list(look.found.values())
    active = [pod for pod in pods if is_active(pod)]
    waits = [available_in(pod, owner.spec.min_ready_seconds, look.now) for pod in active]
    plan.wake = soonest(waits)
    updated = sum(1 for pod in active if pod.metadata.labels.get(REVISION) == update)
    at_current = sum(1 for pod in active if pod.metadata.labels.get(REVISION) == current)
    ready = sum(1 for pod in active if is_ready(pod))
    # An update is over when every pod is of the new revision and ready.
    if current != update and updated == owner.spec.replicas == ready:
        current, at_current = update, updated
    plan.status = told_anew(
        owner.status,
        observed_generation=owner.metadata.generation,
        replicas=len(pods),
        ready_replicas=ready,
        available_replicas=waits.count(0.0),
        current_replicas=at_current,
        updated_replicas=updated,
        current_revision=current,
        update_revision=update,
        collision_count=owner.status.collision_count or 0,
    )
