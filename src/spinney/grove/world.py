"""The caches of everything that the operator manages, indexed by set and by set replica."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from spinney.api import labels
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Node, Pod, Service, ServiceAccount
from spinney.api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Key, Object
from spinney.api.nvidia import ComputeDomain
from spinney.api.podgang import PodGang
from spinney.api.rbac import Role, RoleBinding
from spinney.api.resource import ResourceClaim
from spinney.backends.registry import Choice, Registry
from spinney.backends.served import Served
from spinney.grove.model import topology
from spinney.grove.model.metadata import MANAGED
from spinney.grove.settings import Settings
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.runtime import Runtime

T = TypeVar("T", bound=Object)

BY_REPLICA = "grove-replica"
BY_SET = "grove-set"
BY_GANG = "grove-gang"
# Pods of gangs without a set, which carry their gang's name.
FOREIGN = f"{labels.PODGANG},{labels.MANAGED_BY}!={labels.GROVE_OPERATOR}"


def replica_key(item: Object) -> Key | None:
    """The set replica that an object belongs to, by its labels: namespace and `set/index`."""
    pcs = item.metadata.labels.get(labels.PART_OF)
    index = item.metadata.labels.get(labels.SET_REPLICA_INDEX)
    if not pcs or index is None or item.metadata.labels.get(labels.MANAGED_BY) != labels.GROVE_OPERATOR:
        return None
    return item.namespace, f"{pcs}/{index}"


def replica_keys(change: Change[T]) -> Iterable[Key]:
    """The set replicas that a change concerns."""
    key = replica_key(change.object)
    return (key,) if key is not None else ()


def set_keys(change: Change[T]) -> Iterable[Key]:
    """The set that owns a changed object."""
    pcs = change.object.metadata.labels.get(labels.PART_OF)
    return ((change.object.namespace, pcs),) if pcs else ()


def split(key: Key) -> tuple[str, str, int]:
    """Namespace, set and index of a replica's key."""
    name, _, index = key[1].rpartition("/")
    return key[0], name, int(index)


class World:
    """The operator's caches, settings and backends."""

    def __init__(self, runtime: Runtime, settings: Settings, registry: Registry) -> None:
        self.settings = settings
        self.registry = registry
        self.served = Served()
        caches = runtime.caches
        self.sets = caches.of(PodCliqueSet)
        self.cliques = caches.of(PodClique)
        self.groups = caches.of(PodCliqueScalingGroup)
        self.gangs = caches.of(PodGang)
        self.bindings = caches.of(ClusterTopologyBinding)
        self.nodes = caches.of(Node)
        self.pods = caches.of(Pod, labels=MANAGED)
        self.foreign_pods = caches.of(Pod, labels=FOREIGN)
        # Those of others too: no gate comes off where another Service has the name.
        self.services = caches.of(Service)
        self.accounts = caches.of(ServiceAccount, labels=MANAGED)
        self.roles = caches.of(Role, labels=MANAGED)
        self.role_bindings = caches.of(RoleBinding, labels=MANAGED)
        self.autoscalers = caches.of(HorizontalPodAutoscaler, labels=MANAGED)
        self.claims = caches.of(ResourceClaim, labels=MANAGED)
        self.domains: Cache[ComputeDomain] | None = caches.of(ComputeDomain, labels=MANAGED) if settings.mnnvl else None
        for cache in self.by_replica:
            cache.index(BY_REPLICA, _replica_index)
        self.foreign_pods.index(BY_GANG, _gang_index)
        self.cliques.index(BY_SET, _set_index)
        self.gangs.index(BY_SET, _set_index)
        self.claims.index(BY_SET, _set_index)

    @property
    def by_replica(self) -> tuple[Cache[Any], ...]:
        """The caches whose objects belong to one set replica."""
        domains = (self.domains,) if self.domains is not None else ()
        caches = (self.pods, self.cliques, self.groups, self.gangs, self.services, self.autoscalers, self.claims)
        return (*caches, *domains)

    def of(self, cache: Cache[T], key: Key) -> list[T]:
        """The objects of a kind that belong to a set replica."""
        return cache.by(BY_REPLICA, f"{key[0]}/{key[1]}")

    def choose(self, pcs: PodCliqueSet) -> Choice:
        """The backend of a set."""
        return self.registry.choose(pcs, self.settings.default_profile)

    def levels(self, pcs: PodCliqueSet) -> topology.Levels:
        """The topology of a set's gangs; none where it is disabled or its binding is missing."""
        if not self.settings.topology_aware:
            return topology.NO_LEVELS
        name = topology.topology_name(pcs)
        return topology.levels_of(self.bindings.get(name)) if name else topology.NO_LEVELS


def _replica_index(item: Object) -> Iterable[str]:
    key = replica_key(item)
    return (f"{key[0]}/{key[1]}",) if key is not None else ()


def _gang_index(pod: Pod) -> Iterable[str]:
    return (f"{pod.namespace}/{pod.metadata.labels.get(labels.PODGANG, '')}",)


def _set_index(item: Object) -> Iterable[str]:
    pcs = item.metadata.labels.get(labels.PART_OF)
    return (f"{item.namespace}/{pcs}",) if pcs else ()
