"""Read a cluster once, concurrently, for all answers; what may not be read is named, never taken for empty."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.model import Unread
from spinney.api.core import Event, Node, PersistentVolume, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import BindRequest, PodGroup, Queue, Topology
from spinney.api.meta import Object, Resource, convert, without_nulls
from spinney.api.podgang import PodGang
from spinney.api.resource import ResourceClaimTemplate
from spinney.api.scheduling import PriorityClass
from spinney.api.storage import StorageClass
from spinney.api.untyped import Untyped, untyped
from spinney.api.workloads import GROUPED
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import Clock
from spinney.kube.errors import Forbidden, NotFound
from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.intake.snapshot import KINDS
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.snapshot_view import Picture

T = TypeVar("T", bound=Object)

# Kinds that a plan depends on: without all objects of each, it would be wrong.
_PLANNED_ON: tuple[type[Object], ...] = (Pod, Node, Queue, PodGroup)
# Kinds that answers read and a snapshot does not hold.
_NOT_IN_SNAPSHOTS: tuple[type[Object], ...] = (PodGang, PodCliqueSet, PodClique, Event, ResourceClaimTemplate)
# Records the order in which a plan takes jobs: answers tell places in line by it.
_QUEUE_ORDER = PluginConfig("reflectjoborder")


@dataclass
class Objects:
    """Objects by kind, and why some are missing."""

    lists: dict[Resource, list[Any]] = field(default_factory=dict)
    partial: list[Unread] = field(default_factory=list)
    # Kinds of which one namespace was read, because others may not be.
    narrowed: set[Resource] = field(default_factory=set)

    def of(self, kind: type[T]) -> list[T]:
        """The objects of a kind."""
        return self.lists.get(kind.resource, [])

    def is_whole(self, kind: type[Object]) -> bool:
        """Whether all objects of a kind were read."""
        return kind.resource not in self.narrowed and not any(
            unread.kind == kind.resource.kind for unread in self.partial
        )


async def read_cluster(client: Client, clock: Clock, namespace: str = "", shard: Shard | None = None) -> Cluster:
    """Everything that answers need; where only one namespace may be read, that of `namespace`."""
    objects = Objects()
    kinds = dict.fromkeys((*KINDS.values(), *_NOT_IN_SNAPSHOTS))
    await asyncio.gather(
        *(_read(client, kind, namespace, objects) for kind in kinds),
        _read_owners(client, namespace, objects),
    )
    await _read_unknown_owners(client, namespace, objects)
    return cluster_of(objects, clock, namespace, shard)


def cluster_of(
    objects: Objects, clock: Clock, namespace: str = "", shard: Shard | None = None, config: Config | None = None
) -> Cluster:
    """The cluster that some objects make up, with the scheduler's plan if they are enough for one."""
    owners = [item for items in objects.lists.values() for item in items if isinstance(item, Untyped)]
    return Cluster(
        now=clock.now(),
        pods=objects.of(Pod),
        nodes=objects.of(Node),
        queues=objects.of(Queue),
        groups=objects.of(PodGroup),
        gangs=objects.of(PodGang),
        sets=objects.of(PodCliqueSet),
        cliques=objects.of(PodClique),
        owners=owners,
        classes=objects.of(PriorityClass),
        topologies=objects.of(Topology),
        bind_requests=objects.of(BindRequest),
        claim_sources=[
            *objects.of(StorageClass),
            *(volume for volume in objects.of(PersistentVolume) if volume.status.phase == "Available"),
            *objects.of(ResourceClaimTemplate),
        ],
        events=objects.of(Event),
        schedule=_schedule(objects, clock, shard or Shard(), config or Config()),
        partial=sorted(objects.partial, key=lambda unread: unread.kind),
        namespace=namespace if Pod.resource in objects.narrowed else "",
    )


def _schedule(objects: Objects, clock: Clock, shard: Shard, config: Config) -> Schedule | None:
    if not all(map(objects.is_whole, _PLANNED_ON)):
        return None
    if _QUEUE_ORDER not in config.plugins:
        config = replace(config, plugins=(*config.plugins, _QUEUE_ORDER))
    picture = Picture(objects.lists, clock, shard, config)
    return Schedule(picture.state, picture.plan, config, shard.scheduler_name, picture)


def cluster_at(lists: Mapping[Resource, Sequence[Any]], clock: Clock, shard: Shard, config: Config) -> Cluster:
    """The cluster of a snapshot."""
    objects = Objects()
    for kind in KINDS.values():
        raw = lists.get(kind.resource, [])
        objects.lists[kind.resource] = [convert(kind, without_nulls(item)) for item in raw]
    return cluster_of(objects, clock, "", shard, config)


async def _read(client: Client, kind: type[Object], namespace: str, objects: Objects) -> None:
    """List a kind everywhere, else in one namespace; a kind that is not served has no objects."""
    resource = kind.resource
    try:
        objects.lists[resource] = (await client.list(kind)).items
    except NotFound:
        objects.lists[resource] = []
    except Forbidden as error:
        objects.lists[resource] = []
        if not (resource.namespaced and namespace):
            objects.partial.append(_unread(resource, error))
            return
        try:
            objects.lists[resource] = (await client.list(kind, namespace)).items
            objects.narrowed.add(resource)
        except Forbidden as narrow:
            objects.partial.append(_unread(resource, narrow))


def _unread(resource: Resource, error: Forbidden) -> Unread:
    return Unread(kind=resource.kind, text=str(error))


async def _read_owners(client: Client, namespace: str, objects: Objects) -> None:
    """Every workload kind that the cluster serves, apart from those with a type of their own."""
    discovery = Discovery(client)
    kinds = [(version, kind) for version, kind in GROUPED if kind != PodCliqueSet.resource.kind]
    await asyncio.gather(*(_read_kind(client, discovery, each, namespace, objects) for each in kinds))


async def _read_kind(
    client: Client, discovery: Discovery, kind: tuple[str, str], namespace: str, objects: Objects
) -> None:
    resource = await discovery.resource(*kind)
    if resource is not None and resource not in objects.lists:
        await _read(client, untyped(resource), namespace, objects)


async def _read_unknown_owners(client: Client, namespace: str, objects: Objects) -> None:
    """Read owners of kinds that we do not know, a few levels up, until there are no more."""
    discovery = Discovery(client)
    kinds_read = {(resource.api_version, resource.kind) for resource in objects.lists}
    holders: Iterable[Object] = objects.of(Pod)
    for _ in range(3):
        kinds = {(owner.api_version, owner.kind) for item in holders for owner in item.metadata.owner_references}
        if not (kinds := kinds - kinds_read):
            return
        kinds_read |= kinds
        await asyncio.gather(*(_read_kind(client, discovery, each, namespace, objects) for each in kinds))
        holders = [
            item
            for resource, items in objects.lists.items()
            if (resource.api_version, resource.kind) in kinds
            for item in items
        ]
