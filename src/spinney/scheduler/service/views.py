"""The caches that the scheduler reads."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney.api.core import ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.kai import BindRequest, PodGroup, Queue, Topology
from spinney.api.meta import Object, Resource
from spinney.api.policy import PodDisruptionBudget
from spinney.api.scheduling import PriorityClass
from spinney.api.storage import CsiNode, StorageClass, VolumeAttachment
from spinney.api.volumes import Storage
from spinney.kube.caches.cache import Cache, Caches


class ConfigMapName(Object, frozen=True):
    """A ConfigMap without its data: only its existence matters."""

    resource: ClassVar[Resource] = ConfigMap.resource


class Views:
    """One cache per kind, shared with other components of the process."""

    def __init__(self, caches: Caches) -> None:
        self.topologies = caches.of(Topology)
        self.classes = caches.of(PriorityClass)
        self.queues = caches.of(Queue)
        self.nodes = caches.of(Node)
        self.groups = caches.of(PodGroup)
        self.requests = caches.of(BindRequest)
        self.pods = caches.of(Pod)
        self.budgets = caches.of(PodDisruptionBudget)
        self.namespaces = caches.of(Namespace)
        self.config_maps = caches.of(ConfigMapName)
        self.claims = caches.of(PersistentVolumeClaim)
        self.volumes = caches.of(PersistentVolume)
        self.storage_classes = caches.of(StorageClass)
        self.storage_nodes = caches.of(CsiNode)
        self.attachments = caches.of(VolumeAttachment)
        self.storage = Storage(
            self.claims,
            self.volumes,
            self.storage_classes,
            self.nodes,
            lambda namespace, name: self.config_maps.get((namespace, name)) is not None,
        )

    async def synced(self) -> None:
        """Wait until everything has been listed once."""
        for cache in vars(self).values():
            if isinstance(cache, Cache):
                await cache.synced()

    @property
    def about_storage(self) -> tuple[Cache[Any], ...]:
        """The caches that decide where pods with volumes and ConfigMaps may run."""
        return self.config_maps, self.claims, self.volumes, self.storage_classes, self.nodes
