"""Plans the objects of a set replica: what is missing is created, what differs is patched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from spinney.api import labels, pod_state
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Object
from spinney.api.nvidia import ComputeDomain
from spinney.api.podgang import PodGang
from spinney.grove.model import gang_members, pod_manifest
from spinney.grove.model.autoscalers import wanted_autoscalers
from spinney.grove.model.changes import Change, Create, CreateClaims, Delete, Patch, RemoveFinalizer, Step
from spinney.grove.model.cliques import changed_clique, new_clique
from spinney.grove.model.gangs import wanted_gang
from spinney.grove.model.layout import Gang
from spinney.grove.model.mnnvl import wanted_domains
from spinney.grove.model.resource_sharing import Owner, wanted_claims
from spinney.grove.model.scaling_groups import wanted_scaling_group
from spinney.grove.model.services import wanted_service
from spinney.grove.model.view import View
from spinney.grove.replica.facts import Facts
from spinney.kube.desired import Wanted, plan, plan_pruning


def plan_scaling_groups(view: View) -> Iterator[Change]:
    """The scaling groups whose names are free."""
    for group in view.layout.groups:
        stored = view.groups.get(group.name)
        if stored is not None or group.name not in view.blocked_names:
            yield from _towards(PodCliqueScalingGroup, wanted_scaling_group(view.layout, group, stored), stored)


def plan_compute_domains(view: View) -> Iterator[Change]:
    """One ComputeDomain per NVLink group in use; those of other groups go."""
    if view.domains is None:
        return
    wanted = list(wanted_domains(view.layout))
    for domain in wanted:
        yield from _towards(ComputeDomain, domain, view.domains.get(domain.name))
    # A domain in use that someone deletes is released, and created again.
    going = (domain for domain in view.domains.values() if domain.metadata.deletion_timestamp is not None)
    yield from (RemoveFinalizer(domain, labels.COMPUTE_DOMAIN_FINALIZER) for domain in going)
    yield from _pruned(wanted, view.domains, labels.COMPUTE_DOMAIN_FINALIZER)


def plan_cliques(view: View) -> Iterator[Change]:
    """The cliques whose names are free; those of scaling groups wait for their group."""
    not_yet = view.blocked_names.union(_half_replaced(view))
    for clique in view.layout.cliques:
        stored = view.cliques.get(clique.name)
        owner = view.groups.get(clique.group) if clique.group else view.pcs
        if stored is None:
            if owner is not None and clique.name not in not_yet:
                yield from _towards(PodClique, new_clique(view.layout, clique, owner), None)
        # Under RollingRecreate members of scaling groups are replaced, never changed.
        elif not clique.group or view.on_delete or view.is_current(clique):
            yield from _towards(PodClique, changed_clique(view.layout, clique, stored), stored)


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
    seen = {pod.name for pods in view.pods.values() for pod in pods}
    for gang in view.layout.gangs:
        if not view.has_cliques(gang):
            continue
        wanted = wanted_gang(view, gang, facts.choice, facts.pod_names, seen)
        yield from _towards(PodGang, wanted, view.gangs.get(gang.name))


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
    yield from _towards(Service, wanted_service(view.layout, view.service), view.service)


def plan_autoscalers(view: View) -> Iterator[Change]:
    """The autoscalers that the template asks for, and no others."""
    wanted = list(wanted_autoscalers(view))
    for each in wanted:
        yield from _towards(HorizontalPodAutoscaler, each, view.autoscalers.get(each.name))
    yield from _pruned(wanted, view.autoscalers)


def _towards(kind: type[Object], wanted: Wanted, stored: Object | None) -> Iterator[Change]:
    """What makes an object as wanted; one that is being deleted is waited for."""
    step = plan(wanted, stored)
    if step is None or step.act == "wait":
        return
    if stored is None:
        yield Create(kind, step.body)
    else:
        yield Patch(stored, step.body, guarded=bool(step.resource_version))


def _pruned(wanted: Iterable[Wanted], stored: Mapping[str, Object], finalizer: str = "") -> Iterator[Change]:
    """The deletion of what is not wanted any more."""
    for step in plan_pruning(wanted, ((item.resource, item) for item in stored.values())):
        yield Delete(stored[step.key[1]], finalizer)
