"""From which nodes a pod's storage and devices can be reached, as far as its claims say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spinney.api.affinity import NodeSelector, selects_node
from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim
from spinney.api.pod import Pod
from spinney.api.resource import ResourceClaim
from spinney.api.storage import StorageClass
from spinney.kube.caches.cache import Cache

_LATER = "WaitForFirstConsumer"


@dataclass(frozen=True)
class Reach:
    """Selectors that a node must match, and what is missing on every node; empty where nothing is."""

    selectors: tuple[NodeSelector, ...] = ()
    lacks: str = ""

    def allows(self, node: Node) -> bool:
        """Whether all that the pod needs can be had on a node."""
        return not self.lacks and all(
            selects_node(selector, node.name, node.metadata.labels) for selector in self.selectors
        )


class Claims(Protocol):
    """What tells how far a pod reaches."""

    def reach(self, pod: Pod) -> Reach:
        """What is known of a pod's claims."""


class Storage:
    """Looks claims up in watch caches. Claims that are served only once the pod has a node tell nothing."""

    def __init__(
        self,
        claims: Cache[PersistentVolumeClaim],
        volumes: Cache[PersistentVolume],
        classes: Cache[StorageClass],
        devices: Cache[ResourceClaim] | None,
    ) -> None:
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._devices = devices

    def reach(self, pod: Pod) -> Reach:
        """What the pod's volumes and allocated devices say, all together."""
        found = [*self._volumes_of(pod), *self._devices_of(pod)]
        lacks = next((each.lacks for each in found if each.lacks), "")
        return Reach(tuple(selector for each in found for selector in each.selectors), lacks)

    def _volumes_of(self, pod: Pod) -> list[Reach]:
        named = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
        return [self._claim(name, pod.namespace) for name in named]

    def _claim(self, name: str, namespace: str) -> Reach:
        claim = self._claims.get(name, namespace)
        if claim is None:
            return Reach(lacks=f"PersistentVolumeClaim {name} does not exist")
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            affinity = volume.spec.node_affinity if volume else None
            return Reach((affinity.required,) if affinity and affinity.required else ())
        storage = self._classes.get(claim.spec.storage_class_name or "")
        if storage is not None and storage.volume_binding_mode == _LATER:
            return Reach()
        return Reach(lacks=f"PersistentVolumeClaim {name} is not bound to a volume yet")

    def _devices_of(self, pod: Pod) -> list[Reach]:
        if self._devices is None:
            return []
        named = [claim.resource_claim_name for claim in pod.spec.resource_claims if claim.resource_claim_name]
        return [self._device(self._devices, name, pod.namespace) for name in named]

    def _device(self, devices: Cache[ResourceClaim], name: str, namespace: str) -> Reach:
        claim = devices.get(name, namespace)
        if claim is None:
            return Reach(lacks=f"ResourceClaim {name} does not exist")
        allocation = claim.status.allocation
        return Reach((allocation.node_selector,) if allocation and allocation.node_selector else ())
