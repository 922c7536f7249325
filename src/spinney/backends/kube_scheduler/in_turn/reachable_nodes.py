"""From which nodes a pod's storage and devices can be reached, as far as its claims say."""

from __future__ import annotations

from typing import Protocol

from spinney.api.missing import Lack, Missing
from spinney.api.pod import Pod
from spinney.api.resource import ResourceClaim
from spinney.api.volumes import Reach, Storage, reach_of, selected_nodes
from spinney.kube.caches.cache import Cache


class Claims(Protocol):
    """Knows which nodes a pod's claims allow."""

    def reach(self, pod: Pod) -> Reach:
        """The nodes that a pod's claims allow."""


class CachedClaims:
    """Looks claims up in watch caches. A claim that is served only once its pod has a node allows every node."""

    def __init__(self, storage: Storage, devices: Cache[ResourceClaim] | None) -> None:
        self._storage = storage
        self._devices = devices

    def reach(self, pod: Pod) -> Reach:
        """The nodes that the pod's volumes and its allocated devices allow."""
        reach = reach_of(pod, self._storage)
        if self._devices is None:
            return reach
        for reference in pod.spec.resource_claims:
            if reference.resource_claim_name:
                reach = reach.narrowed(self._device_reach(self._devices, reference.resource_claim_name, pod.namespace))
        return reach

    def _device_reach(self, devices: Cache[ResourceClaim], name: str, namespace: str) -> Reach:
        claim = devices.get((namespace, name))
        if claim is None:
            return Reach(impossible=Missing(Lack.RESOURCE_CLAIM, name))
        allocation = claim.status.allocation
        if allocation is None or allocation.node_selector is None:
            return Reach()
        return Reach(selected_nodes(allocation.node_selector, self._storage.nodes))
