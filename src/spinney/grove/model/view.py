"""One set replica as it is now, beside what it should be: what plans and statuses are computed from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from spinney.api import labels, pod_state
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Object
from spinney.api.nvidia import ComputeDomain
from spinney.api.owners import controller_of
from spinney.api.podgang import PodGang
from spinney.api.resource import ResourceClaim
from spinney.grove.model import revisions
from spinney.grove.model.gang_members import Member
from spinney.grove.model.layout import Clique, Gang, Group, Layout
from spinney.grove.model.pod_counts import PodCounts, count_pods
from spinney.grove.model.topology import Levels


@dataclass
class View:
    """A replica's stored objects by name; objects created or patched during a reconcile replace what was read."""

    layout: Layout
    levels: Levels
    groups: dict[str, PodCliqueScalingGroup] = field(default_factory=dict)
    cliques: dict[str, PodClique] = field(default_factory=dict)
    gangs: dict[str, PodGang] = field(default_factory=dict)
    # By the UID of the clique that owns them.
    pods: dict[str, list[Pod]] = field(default_factory=lambda: defaultdict(list))
    # Being deleted: their names are not free yet.
    terminating: list[PodClique | PodCliqueScalingGroup] = field(default_factory=list)
    # No longer part of the layout.
    excess: list[PodClique | PodCliqueScalingGroup | PodGang] = field(default_factory=list)
    service: Service | None = None
    # Whether a Service of the name exists that the set does not own.
    service_name_taken: bool = False
    autoscalers: dict[str, HorizontalPodAutoscaler] = field(default_factory=dict)
    # The replica's own, and those of the whole set that it needs.
    claims: dict[str, ResourceClaim] = field(default_factory=dict)
    # None where the operator makes no ComputeDomains.
    domains: dict[str, ComputeDomain] | None = None

    @property
    def pcs(self) -> PodCliqueSet:
        """The set."""
        return self.layout.pcs

    @property
    def key(self) -> tuple[str, str]:
        """The replica's key: namespace and `set/index`."""
        return self.pcs.namespace, f"{self.pcs.name}/{self.layout.index}"

    @property
    def on_delete(self) -> bool:
        """Whether pods of an old revision stay until someone deletes them."""
        return revisions.is_on_delete(self.pcs)

    @property
    def updating(self) -> bool:
        """Whether this replica is being updated now."""
        progress = self.pcs.status.update_progress
        if self.on_delete or progress is None or progress.update_ended_at is not None:
            return False
        return any(replica.replica_index == self.layout.index for replica in progress.currently_updating)

    @property
    def blocked_names(self) -> set[str]:
        """Names that a terminating object still holds."""
        return {item.name for item in self.terminating}

    def pods_of(self, clique: Clique) -> list[Pod]:
        """The pods of a clique as it is stored now, without those of a predecessor of the same name."""
        stored = self.cliques.get(clique.name)
        return self.pods.get(stored.uid, []) if stored is not None else []

    def active_pods(self, clique: Clique) -> list[Pod]:
        """The clique's pods that are not terminating."""
        return [pod for pod in self.pods_of(clique) if not pod_state.is_terminating(pod)]

    def wanted(self, clique: Clique) -> int:
        """How many pods a clique should have: what it is scaled to, or what it will be created with."""
        stored = self.cliques.get(clique.name)
        return stored.spec.replicas if stored is not None else clique.template.spec.replicas

    def is_current(self, clique: Clique) -> bool:
        """Whether the stored clique has the content of its template."""
        stored = self.cliques.get(clique.name)
        priority = self.pcs.spec.template.priority_class_name
        return stored is not None and revisions.is_current(stored, clique.template, priority)

    def counts(self, clique: Clique) -> PodCounts:
        """The clique's pods, counted."""
        stored = self.cliques.get(clique.name)
        revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "") if stored is not None else ""
        return count_pods(self.pods_of(clique), revision)

    def has_cliques(self, gang: Gang) -> bool:
        """Whether all cliques of a gang are stored."""
        return all(clique.name in self.cliques for clique in gang.cliques)

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

    def put(self, item: Object) -> None:
        """Take in an object that was created or patched, so that later steps build on it."""
        if isinstance(item, PodCliqueScalingGroup):
            self.groups[item.name] = item
        elif isinstance(item, PodClique):
            self.cliques[item.name] = item
        elif isinstance(item, PodGang):
            self.gangs[item.name] = item
        elif isinstance(item, Pod):
            owner = controller_of(item.metadata)
            if owner is not None:
                self.pods[owner.uid].append(item)


@dataclass(frozen=True)
class Leftovers:
    """The stored objects of a replica that its set no longer has, or whose set is deleted."""

    pods: Sequence[Pod] = ()
    cliques: Sequence[PodClique] = ()
    groups: Sequence[PodCliqueScalingGroup] = ()
    gangs: Sequence[PodGang] = ()
    services: Sequence[Service] = ()
    autoscalers: Sequence[HorizontalPodAutoscaler] = ()
    claims: Sequence[ResourceClaim] = ()
    domains: Sequence[ComputeDomain] = ()

    @property
    def besides_pods(self) -> tuple[Object, ...]:
        """Everything but pods, claims and ComputeDomains; gangs first."""
        return (*self.gangs, *self.cliques, *self.groups, *self.services, *self.autoscalers)
