"""Builds the view of a set replica from the caches."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Key
from spinney.api.owners import controlled_by, controller_of
from spinney.grove.model import names
from spinney.grove.model.layout import lay_out
from spinney.grove.model.resource_sharing import wanted_claims
from spinney.grove.model.view import Leftovers, View
from spinney.grove.world import World


def observe(world: World, pcs: PodCliqueSet, index: int) -> View:
    """The replica as the caches show it."""
    key: Key = (pcs.namespace, f"{pcs.name}/{index}")
    groups = world.of(world.groups, key)
    cliques = world.of(world.cliques, key)
    scaled_to = {group.name: group.spec.replicas for group in groups if not _is_terminating(group)}
    scaled_to |= {clique.name: clique.spec.replicas for clique in cliques if not _is_terminating(clique)}
    layout = lay_out(pcs, index, scaled_to)
    view = View(layout, world.levels(pcs))
    _sort(groups, {group.name for group in layout.groups}, view.groups, view)
    _sort(cliques, {clique.name for clique in layout.cliques}, view.cliques, view)
    _add_gangs(world, view)
    for pod in world.of(world.pods, key):
        owner = controller_of(pod.metadata)
        if owner is not None:
            view.pods[owner.uid].append(pod)
    _add_others(world, view)
    return view


def _sort(
    stored: Iterable[PodClique] | Iterable[PodCliqueScalingGroup],
    wanted: set[str],
    into: dict[str, PodClique] | dict[str, PodCliqueScalingGroup],
    view: View,
) -> None:
    for item in stored:
        if _is_terminating(item):
            view.terminating.append(item)
        elif item.name in wanted:
            into[item.name] = item  # type: ignore[assignment]  # both arguments are of one kind
        else:
            view.excess.append(item)


def _add_gangs(world: World, view: View) -> None:
    wanted = {gang.name for gang in view.layout.gangs}
    stored = {gang.name: gang for gang in world.of(world.gangs, view.key)}
    # Upstream's gangs carry no replica index: they are looked up by name.
    for name in wanted - stored.keys():
        gang = world.gangs.get((view.pcs.namespace, name))
        if gang is not None and controlled_by(gang.metadata, view.pcs):
            stored[name] = gang
    for name, gang in stored.items():
        if name in wanted:
            view.gangs[name] = gang
        elif gang.metadata.deletion_timestamp is None:
            view.excess.append(gang)


def _add_others(world: World, view: View) -> None:
    """Add the other objects of a replica: Service, autoscalers, claims, ComputeDomains."""
    namespace, key = view.pcs.namespace, view.key
    view.service = next(iter(world.of(world.services, key)), None)
    if view.service is None:
        same_name = world.services.get((namespace, names.replica(view.pcs.name, view.layout.index)))
        view.service_name_taken = same_name is not None and not controlled_by(same_name.metadata, view.pcs)
    view.autoscalers = {item.name: item for item in world.of(world.autoscalers, key)}
    view.claims = {claim.name: claim for claim in world.of(world.claims, key)}
    for wanted in wanted_claims(view):
        claim = world.claims.get((namespace, wanted.name))
        if claim is not None:
            view.claims[wanted.name] = claim
    if world.domains is not None:
        view.domains = {domain.name: domain for domain in world.of(world.domains, key)}


def _is_terminating(item: PodClique | PodCliqueScalingGroup) -> bool:
    return item.metadata.deletion_timestamp is not None


def observe_leftovers(world: World, key: Key) -> Leftovers:
    """What the caches show of a replica, whether or not its set has it."""
    return Leftovers(
        world.of(world.pods, key),
        world.of(world.cliques, key),
        world.of(world.groups, key),
        world.of(world.gangs, key),
        world.of(world.services, key),
        world.of(world.autoscalers, key),
        world.of(world.claims, key),
        world.of(world.domains, key) if world.domains is not None else (),
    )
