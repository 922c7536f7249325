"""Plans one set replica: what to create, patch and delete, which gates come off, and in which order. Pure.

The plan comes in steps. A later step reads what earlier ones have stored: a pod needs the UIDs of its clique and gang.
Whoever applies a step puts the resulting objects into the view before asking for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from spinney.api import pod_state, reasons
from spinney.api.core import Pod, Service
from spinney.api.labels import PODGANG
from spinney.grove.model import domains, gang_members, names
from spinney.grove.model.changes import PatchStatus, Postponable, RecordEvent, RemoveGates, Step
from spinney.grove.model.layout import check_names
from spinney.grove.model.view import View
from spinney.grove.replica import gates, termination
from spinney.grove.replica.confirmation import before_creation, before_scale_in, cached_versions, confirmed
from spinney.grove.replica.creation import (
    plan_autoscalers,
    plan_claims,
    plan_cliques,
    plan_compute_domains,
    plan_gangs,
    plan_pods,
    plan_scaling_groups,
    plan_service,
)
from spinney.grove.replica.facts import Facts
from spinney.grove.replica.removal import delete_cliques, plan_excess, plan_outdated, plan_surplus_pods
from spinney.kube.writer import NameTaken


def plan_replica(view: View, facts: Facts) -> Iterator[Step]:
    """The steps that bring a replica to its wanted state, in order."""
    check_names(view.layout)
    yield from confirmed(plan_excess(view), view.pcs, *view.groups.values())
    yield Step((*plan_scaling_groups(view), *plan_compute_domains(view)))
    cached = cached_versions(view)
    yield Step(tuple(plan_cliques(view)))
    yield from plan_claims(view)
    yield Step(tuple(plan_gangs(view, facts)))
    pods = Step(tuple(plan_pods(view, facts)))
    yield before_creation(view, cached, pods.changes)
    yield pods
    if pods.changes:
        # They wake this replica again; where many replicas are created, the pods of all come before the rest of each.
        return
    surplus = Step(tuple(plan_surplus_pods(view, facts)))
    yield before_scale_in(view, surplus.changes)
    yield surplus
    if view.service is None and view.service_name_taken:
        # No pod may start that could not be found by its name.
        key = (view.pcs.namespace, names.replica(view.pcs.name, view.layout.index))
        raise NameTaken(Service.resource.kind, key)
    released = _releasable(view, facts)
    yield from _gate_removal(released, facts, _selectors(view, facts) if released else {})
    yield Step((*plan_service(view), *plan_autoscalers(view)), _postponable(view, facts, released))
    if view.updating:
        yield from confirmed(plan_outdated(view), view.pcs)
    yield from confirmed(_termination(view, facts.now), view.pcs)


def _releasable(view: View, facts: Facts) -> list[Pod]:
    """The pods whose gate comes off now."""
    backend = facts.choice.backend
    surplus_held = backend.capabilities(facts.served).surplus_held
    base_scheduled = gang_members.is_scheduled(view.members(view.layout.base_gang))
    return [
        pod
        for gang in view.layout.gangs
        if (stored := view.gangs.get(gang.name)) is not None and view.has_cliques(gang)
        for pod in gates.releasable(
            stored,
            view.members(gang),
            backend.gate,
            base_scheduled=not gang.base or base_scheduled,
            surplus_held=surplus_held,
        )
    ]


def _selectors(view: View, facts: Facts) -> dict[str, dict[str, str]]:
    """By gang, the node labels of the domain it is in, where its scheduler would not keep later pods to it."""
    if not facts.choice.backend.capabilities(facts.served).surplus_outside:
        return {}
    confined = [gang for gang in view.layout.gangs if gang.name in view.gangs and view.has_cliques(gang)]
    if not any(domains.requires_topology(view.gangs[gang.name]) for gang in confined):
        return {}
    nodes = {node.name: node for node in facts.nodes}
    return {gang.name: domains.shared_domain(view.gangs[gang.name], view.members(gang), nodes) for gang in confined}


def _gate_removal(pods: list[Pod], facts: Facts, selectors: Mapping[str, Mapping[str, str]]) -> Iterator[Step]:
    gate = facts.choice.backend.gate
    for wave in gates.waves(pods):
        yield Step(tuple(RemoveGates(pod, gates.own_gates(pod, gate), _selector(pod, selectors)) for pod in wave))


def _selector(pod: Pod, selectors: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The node labels that a pod gets; those that it names itself cannot change."""
    wanted = selectors.get(pod.metadata.labels.get(PODGANG, ""), {})
    return {key: value for key, value in wanted.items() if key not in pod.spec.node_selector}


def _postponable(view: View, facts: Facts, released: list[Pod]) -> Postponable | None:
    """Whether the Service may wait for the gates of other replicas: where there is none yet."""
    if view.service is not None:
        return None
    pods = [pod for owned in view.pods.values() for pod in owned]
    gate = facts.choice.backend.gate
    return Postponable(
        ungated=bool(released) or any(not gates.own_gates(pod, gate) for pod in pods),
        scheduled=any(map(pod_state.is_scheduled, pods)),
    )


def _termination(view: View, now: datetime) -> Iterator[Step]:
    """Replace what stayed below its minimum for too long; scaling groups are marked first, so that it happens once."""
    due = termination.plan_termination(view, now)
    if due.whole:
        marks = ((group, termination.marked(group, now)) for group in view.groups.values())
        yield Step(tuple(PatchStatus(group, {"conditions": mark}, guarded=True) for group, mark in marks if mark))
        message = f"replica {view.layout.index} stayed below its minimum for terminationDelay and is replaced"
        yield Step((RecordEvent(view.pcs, "Warning", reasons.SET_REPLICA_DELETE_SUCCESSFUL, message),))
    yield from delete_cliques(view, due.cliques)
    yield Step(look_again=due.look_again)
