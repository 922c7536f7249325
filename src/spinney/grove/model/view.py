"""One set replica as it is now, beside what it should be: what every plan of the operator reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.owners import controlled_by, controller_of
from spinney.api.podgang import PodGang
from spinney.grove.model import pod_state, revisions
from spinney.grove.model.layout import Clique, Gang, Group, Layout, lay_out
from spinney.grove.model.topology import Levels
from spinney.grove.status import cliques as clique_status
from spinney.grove.status.gangs import Member
from spinney.grove.world import World
from spinney.kube.caches.cache import Key

ON_DELETE = "OnDelete"


@dataclass
class View:
    """A replica's stored objects by name; what is made during a reconcile is put in as well."""

    layout: Layout
    levels: Levels
    groups: dict[str, PodCliqueScalingGroup] = field(default_factory=dict)
    cliques: dict[str, PodClique] = field(default_factory=dict)
    gangs: dict[str, PodGang] = field(default_factory=dict)
    # By the UID of the clique that owns them.
    pods: dict[str, list[Pod]] = field(default_factory=lambda: defaultdict(list))
    # On their way out: their names are not free yet.
    leaving: list[PodClique | PodCliqueScalingGroup] = field(default_factory=list)
    # Not part of the layout any more.
    excess: list[PodClique | PodCliqueScalingGroup | PodGang] = field(default_factory=list)

    @property
    def pcs(self) -> PodCliqueSet:
        """The set."""
        return self.layout.pcs

    @property
    def key(self) -> Key:
        """The replica's key: namespace and `set/index`."""
        return self.pcs.namespace, f"{self.pcs.name}/{self.layout.index}"

    @property
    def on_delete(self) -> bool:
        """Whether pods of an old revision stay until someone deletes them."""
        strategy = self.pcs.spec.update_strategy
        return strategy is not None and strategy.type == ON_DELETE

    @property
    def updating(self) -> bool:
        """Whether it is this replica's turn in a rolling update."""
        progress = self.pcs.status.update_progress
        if self.on_delete or progress is None or progress.update_ended_at is not None:
            return False
        return any(replica.replica_index == self.layout.index for replica in progress.currently_updating)

    @property
    def blocked(self) -> set[str]:
        """Names that are still taken by something on its way out."""
        return {found.name for found in self.leaving}

    def pods_of(self, clique: Clique) -> list[Pod]:
        """The pods of a clique as it is stored now; pods of a predecessor of the same name are not among them."""
        found = self.cliques.get(clique.name)
        return self.pods.get(found.uid, []) if found is not None else []

    def staying(self, clique: Clique) -> list[Pod]:
        """The clique's pods that are not on their way out."""
        return [pod for pod in self.pods_of(clique) if not pod_state.is_leaving(pod)]

    def wanted(self, clique: Clique) -> int:
        """How many pods a clique should have: what it is scaled to, or what it will be created with."""
        found = self.cliques.get(clique.name)
        return found.spec.replicas if found is not None else clique.template.spec.replicas

    def is_current(self, clique: Clique) -> bool:
        """Whether the stored clique was made from the template of now."""
        found = self.cliques.get(clique.name)
        priority = self.pcs.spec.template.priority_class_name
        return found is not None and revisions.is_current(found, clique.template, priority)

    def counts(self, clique: Clique) -> clique_status.Counts:
        """The clique's pods, counted."""
        found = self.cliques.get(clique.name)
        revision = found.metadata.labels.get(labels.POD_TEMPLATE_HASH, "") if found is not None else ""
        return clique_status.count(self.pods_of(clique), revision)

    def members(self, gang: Gang) -> list[Member]:
        """The pod groups of a gang with the pods they have."""
        return [
            Member(clique.name, clique.min_available, self.wanted(clique), self.pods_of(clique))
            for clique in gang.cliques
        ]

    def replicas_of(self, group: Group) -> list[list[Clique]]:
        """A scaling group's cliques, replica by replica."""
        by_replica: dict[int, list[Clique]] = defaultdict(list)
        for clique in self.layout.members(group):
            by_replica[clique.group_index].append(clique)
        return [by_replica[index] for index in range(group.replicas)]


def look(world: World, pcs: PodCliqueSet, index: int) -> View:
    """The replica as the caches show it."""
    key: Key = (pcs.namespace, f"{pcs.name}/{index}")
    groups = world.of(world.groups, key)
    cliques = world.of(world.cliques, key)
    scaled_to = {found.name: found.spec.replicas for found in groups if not _leaves(found)}
    scaled_to |= {found.name: found.spec.replicas for found in cliques if not _leaves(found)}
    layout = lay_out(pcs, index, scaled_to)
    view = View(layout, world.levels(pcs))
    _sort(groups, {group.name for group in layout.groups}, view.groups, view)
    _sort(cliques, {clique.name for clique in layout.cliques}, view.cliques, view)
    gang_names = {gang.name for gang in layout.gangs}
    # Upstream's gangs do not say their replica: they are found by name.
    found_gangs = {found.name: found for found in world.of(world.gangs, key)}
    for name in gang_names - found_gangs.keys():
        found = world.gangs.get(name, pcs.namespace)
        if found is not None and controlled_by(found.metadata, pcs):
            found_gangs[name] = found
    for name, gang in found_gangs.items():
        if name in gang_names:
            view.gangs[name] = gang
        elif gang.metadata.deletion_timestamp is None:
            view.excess.append(gang)
    for pod in world.of(world.pods, key):
        owner = controller_of(pod.metadata)
        if owner is not None:
            view.pods[owner.uid].append(pod)
    return view


def _sort(
    found: Iterable[PodClique] | Iterable[PodCliqueScalingGroup],
    wanted: set[str],
    into: dict[str, PodClique] | dict[str, PodCliqueScalingGroup],
    view: View,
) -> None:
    for item in found:
        if _leaves(item):
            view.leaving.append(item)
        elif item.name in wanted:
            into[item.name] = item  # type: ignore[assignment]  # both arguments are of one kind
        else:
            view.excess.append(item)


def _leaves(found: PodClique | PodCliqueScalingGroup) -> bool:
    return found.metadata.deletion_timestamp is not None
