"""Plans the objects of a set replica: what is missing is created, what differs is patched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import msgspec

from spinney.api import labels
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Json, Object
from spinney.api.nvidia import ComputeDomain
from spinney.api.podgang import PodGang
from spinney.grove.model import gang_members, mnnvl, pod_manifest, pod_state
from spinney.grove.model.autoscalers import autoscalers
from spinney.grove.model.changes import Change, Create, CreateClaims, Delete, Patch, RemoveFinalizer, Step
from spinney.grove.model.cliques import clique_body, clique_patch
from spinney.grove.model.gangs import gang_body, gang_patch
from spinney.grove.model.layout import Gang
from spinney.grove.model.resource_sharing import Owner, wanted_claims
from spinney.grove.model.revisions import canonical
from spinney.grove.model.scaling_groups import scaling_group_body, scaling_group_patch
from spinney.grove.model.services import service_body, service_patch
from spinney.grove.model.view import View
from spinney.grove.replica.facts import Facts


def plan_scaling_groups(view: View) -> Iterator[Change]:
    """The scaling groups whose names are free."""
    for group in view.layout.groups:
        stored = view.groups.get(group.name)
        if stored is not None:
            yield from _patch(stored, scaling_group_patch(view.layout, group, stored))
        elif group.name not in view.blocked_names:
            yield Create(PodCliqueScalingGroup, scaling_group_body(view.layout, group))


def plan_compute_domains(view: View) -> Iterator[Change]:
    """One ComputeDomain per NVLink group in use; those of other groups go."""
    if view.domains is None:
        return
    wanted = {body["metadata"]["name"]: body for body in mnnvl.compute_domains(view.layout)}
    yield from (Create(ComputeDomain, body) for name, body in wanted.items() if name not in view.domains)
    for name, domain in view.domains.items():
        # A domain in use that someone deletes is released, and created again.
        if domain.metadata.deletion_timestamp is not None:
            yield RemoveFinalizer(domain, labels.COMPUTE_DOMAIN_FINALIZER)
        elif name not in wanted:
            yield Delete(domain, labels.COMPUTE_DOMAIN_FINALIZER)


def plan_cliques(view: View) -> Iterator[Change]:
    """The cliques whose names are free; those of scaling groups wait for their group."""
    half_replaced = set(_half_replaced(view))
    for clique in view.layout.cliques:
        stored = view.cliques.get(clique.name)
        owner = view.groups.get(clique.group) if clique.group else view.pcs
        if stored is None:
            if owner is not None and clique.name not in view.blocked_names and clique.name not in half_replaced:
                yield Create(PodClique, clique_body(view.layout, clique, owner))
        # Under RollingRecreate members of scaling groups are replaced, never changed.
        elif not clique.group or view.on_delete or view.is_current(clique):
            yield from _patch(stored, clique_patch(view.layout, clique, stored))


def _half_replaced(view: View) -> Iterator[str]:
    """The cliques of scaling-group replicas that an update deleted in part, since the operator crashed in between.

    They come back when the others are gone, too: a replica is replaced as a whole, so they would go once more.
    """
    for group in view.layout.groups if view.updating else ():
        for cliques in view.replicas_of(group):
            if any(clique.name in view.cliques and not view.is_current(clique) for clique in cliques):
                yield from (clique.name for clique in cliques)


def plan_claims(view: View) -> Iterator[Step]:
    """The claims of this replica's set, scaling groups and cliques; those of removed replicas go."""
    wanted = {claim.name: claim for claim in wanted_claims(view)}
    yield Step(tuple(Delete(claim) for name, claim in view.claims.items() if name not in wanted))
    owners: dict[str, Owner] = {view.pcs.name: view.pcs, **view.groups, **view.cliques}
    missing = [claim for name, claim in wanted.items() if name not in view.claims and claim.owner in owners]
    if missing:
        claims = tuple((claim, owners[claim.owner]) for claim in missing)
        yield Step((CreateClaims(view.pcs, view.layout.index, claims),))


def plan_gangs(view: View, facts: Facts) -> Iterator[Change]:
    """The gangs, with the names of pods to come; none whose cliques are not all stored."""
    for gang in view.layout.gangs:
        if not view.has_cliques(gang):
            continue
        stored = view.gangs.get(gang.name)
        body = gang_body(view, gang, facts.choice, facts.pod_names)
        if stored is None:
            yield Create(PodGang, body)
        elif patch := gang_patch(stored, body):
            # Of two operators that choose names for the same pods, one has to look again.
            yield Patch(stored, patch, guarded="spec" in patch)


def plan_pods(view: View, facts: Facts) -> Iterator[Change]:
    """The pods that the stored gangs reference and that do not exist yet."""
    for gang in view.layout.gangs:
        for place in _missing_pods(view, gang):
            body = pod_manifest.build(view.layout, place, facts.choice, facts.served, facts.init_image)
            yield Create(Pod, body, clique=place.stored)


def _missing_pods(view: View, gang: Gang) -> Iterator[pod_manifest.Place]:
    stored = view.gangs.get(gang.name)
    if stored is None or not view.has_cliques(gang):
        return
    referenced = gang_members.references(stored)
    for clique in gang.cliques:
        existing = {pod.name: pod for pod in view.active_pods(clique)}
        for name, index in _ordinals(referenced.get(clique.name, ()), existing).items():
            yield pod_manifest.Place(clique, view.cliques[clique.name], stored, name, index)


def _ordinals(names: Sequence[str], existing: Mapping[str, Pod]) -> dict[str, int]:
    """The ordinals of pods that are missing: their place in the gang, or the lowest that no pod of the gang has."""
    taken = {pod_state.index(existing[name]) for name in names if name in existing}
    ordinals: dict[str, int] = {}
    for place, name in enumerate(names):
        if name not in existing:
            ordinals[name] = place if place not in taken else next(index for index in count() if index not in taken)
            taken.add(ordinals[name])
    return ordinals


def plan_service(view: View) -> Iterator[Change]:
    """The replica's headless Service."""
    if view.service is None:
        yield Create(Service, service_body(view.layout))
    else:
        yield from _patch(view.service, service_patch(view.layout, view.service))


def plan_autoscalers(view: View) -> Iterator[Change]:
    """The autoscalers that the template asks for, and no others."""
    excess = dict(view.autoscalers)
    for body in autoscalers(view):
        stored = excess.pop(body["metadata"]["name"], None)
        if stored is None:
            yield Create(HorizontalPodAutoscaler, body)
        elif canonical(msgspec.to_builtins(stored.spec)) != canonical(body["spec"]):
            yield Patch(stored, {"spec": body["spec"]})
    yield from (Delete(item) for item in excess.values())


def _patch(stored: Object, patch: Json) -> Iterator[Change]:
    if patch:
        yield Patch(stored, patch)
