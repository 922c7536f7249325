"""Volumes with late binding: bound for the selected node before the pod is."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.affinity import selects_node
from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim
from spinney.api.meta import Json
from spinney.api.quantity import milli
from spinney.api.storage import StorageClass
from spinney.api.volumes import claim_names, serves
from spinney.kube.caches.waiting import Waiting
from spinney.kube.errors import Conflict, NotFound
from spinney.kube.runtime import Runtime
from spinney.services.binder.bind import Bind, BindError

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class Volumes:
    """Binds a pod's claims to volumes that the node reaches, or has one provisioned for the node."""

    def __init__(self, runtime: Runtime, timeout_seconds: float) -> None:
        self._client = runtime.client
        self._claims = runtime.caches.of(PersistentVolumeClaim)
        self._volumes = runtime.caches.of(PersistentVolume)
        self._classes = runtime.caches.of(StorageClass)
        self._waiting = Waiting(self._claims)
        self._timeout = timeout_seconds

    def concerns(self, bind: Bind) -> bool:
        """Pods with claims."""
        return any(claim_names(bind.pod))

    async def do(self, bind: Bind) -> None:
        """Start binding every unbound claim, then wait for all of them."""
        unbound = [claim for claim in self._claims_of(bind) if claim.status.phase != "Bound"]
        for claim in unbound:
            await self._start(claim, bind)
        for claim in unbound:
            try:
                bound = await self._waiting.until(claim.key, _is_bound, self._timeout)
            except TimeoutError:
                raise BindError(f"claim {claim.name} was not bound within {self._timeout:g} s") from None
            if bound is None:
                raise BindError(f"claim {claim.name} went while its volume was made")

    async def undo(self, bind: Bind) -> None:
        """Take unbound claims back from the node; bound ones stay bound."""
        for name in claim_names(bind.pod):
            claim = self._claims.get((bind.pod.namespace, name))
            if claim is None or claim.status.phase == "Bound":
                continue
            if claim.metadata.annotations.get(labels.SELECTED_NODE) == bind.target:
                await self._annotate(claim, None)
            for volume in self._volumes:
                if _holds(volume, claim):
                    await self._release(volume)

    def _claims_of(self, bind: Bind) -> list[PersistentVolumeClaim]:
        claims = []
        for name in claim_names(bind.pod):
            claim = self._claims.get((bind.pod.namespace, name))
            if claim is None:
                raise BindError(f"claim {name} is not there")
            if claim.metadata.deletion_timestamp is not None:
                raise BindError(f"claim {name} is being deleted")
            claims.append(claim)
        return claims

    async def _start(self, claim: PersistentVolumeClaim, bind: Bind) -> None:
        for held in (volume for volume in self._volumes if _holds(volume, claim)):
            if _reaches(held, bind.node):
                return
            # Left by a bind to another node that could not be undone.
            await self._release(held)
        if volume := self._fitting(claim, bind):
            await self._hold(volume, claim)
            return
        storage_class = self._classes.get(claim.spec.storage_class_name or "")
        if storage_class is None or storage_class.provisioner == _NO_PROVISIONER:
            raise BindError(f"no volume on node {bind.target} fits claim {claim.name}, and nobody provisions one")
        if claim.metadata.annotations.get(labels.SELECTED_NODE) != bind.target:
            await self._annotate(claim, bind.target)

    def _fitting(self, claim: PersistentVolumeClaim, bind: Bind) -> PersistentVolume | None:
        """The smallest free volume that fits the claim and can be used on the node."""
        fitting = [volume for volume in self._volumes if serves(volume, claim) and _reaches(volume, bind.node)]
        return min(fitting, key=lambda volume: (milli(volume.spec.capacity["storage"]), volume.name), default=None)

    async def _hold(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        patch: Json = {
            "metadata": {"resourceVersion": volume.metadata.resource_version},
            "spec": {"claimRef": reference},
        }
        try:
            await self._client.patch(PersistentVolume, volume.name, patch)
        except Conflict:
            raise BindError(f"volume {volume.name} was taken by another claim") from None

    async def _release(self, volume: PersistentVolume) -> None:
        patch = {"metadata": {"resourceVersion": volume.metadata.resource_version}, "spec": {"claimRef": None}}
        await self._client.patch(PersistentVolume, volume.name, patch)

    async def _annotate(self, claim: PersistentVolumeClaim, node: str | None) -> None:
        patch = {"metadata": {"annotations": {labels.SELECTED_NODE: node}}}
        try:
            await self._client.patch(PersistentVolumeClaim, claim.key, patch)
        except NotFound:
            raise BindError(f"claim {claim.name} is not there any more") from None


def _reaches(volume: PersistentVolume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    return affinity is None or selects_node(affinity.required, node.name, node.metadata.labels)


def _is_bound(claim: PersistentVolumeClaim | None) -> bool:
    # A deleted claim will not be bound: the caller reports it.
    return claim is None or claim.status.phase == "Bound"


def _holds(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid == claim.uid
