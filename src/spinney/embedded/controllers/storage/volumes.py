"""Volumes: bind claims to volumes, provision volumes for claims, and reclaim them."""

from __future__ import annotations

from contextlib import suppress

from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim
from spinney.api.labels import HOSTNAME, SELECTED_NODE
from spinney.api.meta import Json, Key
from spinney.api.quantity import exact
from spinney.api.selector import matches
from spinney.api.storage import StorageClass
from spinney.embedded.controllers.writes import Event, create_once, patch_status
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

# The simulated provisioner.
PROVISIONER = "spinney.dev/simulated"
_WAIT = "WaitForFirstConsumer"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is reserved for a claim, or is free and meets its requirements."""
    reserved = volume.spec.claim_ref
    if reserved is not None:
        return (reserved.namespace, reserved.name) == claim.key and reserved.uid in ("", claim.uid)
    if volume.status.phase not in ("", "Available", "Pending"):
        return False
    wanted = claim.spec.resources.requests.get("storage", "0")
    selector = claim.spec.selector
    return (
        volume.spec.storage_class_name == (claim.spec.storage_class_name or "")
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (claim.spec.volume_mode or "Filesystem") == (volume.spec.volume_mode or "Filesystem")
        and exact(volume.spec.capacity.get("storage", "0")) >= exact(wanted)
        and (selector is None or matches(selector, volume.metadata.labels))
    )


def smallest(volumes: list[PersistentVolume]) -> PersistentVolume:
    """The smallest of some volumes."""
    return min(volumes, key=lambda volume: (exact(volume.spec.capacity.get("storage", "0")), volume.name))


def new_volume(claim: PersistentVolumeClaim, kind: StorageClass, node: Node | None) -> Json:
    """The volume that the simulated provisioner creates for a claim."""
    spec: Json = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "1Gi")},
        "accessModes": list(claim.spec.access_modes),
        "persistentVolumeReclaimPolicy": kind.reclaim_policy or "Delete",
        "storageClassName": kind.name,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "claimRef": _reference(claim),
        "csi": {"driver": PROVISIONER, "volumeHandle": f"pvc-{claim.uid}"},
    }
    if node is not None:
        host = {"key": HOSTNAME, "operator": "In", "values": [node.metadata.labels.get(HOSTNAME, node.name)]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}
    return {"metadata": {"name": f"pvc-{claim.uid}", "annotations": {_PROVISIONED_BY: PROVISIONER}}, "spec": spec}


def _reference(claim: PersistentVolumeClaim) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
    }


def _without_class(claim: PersistentVolumeClaim) -> Event:
    """The event of a claim that no volume fits and that has no existing class."""
    name = claim.spec.storage_class_name
    if name:
        return "Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found'
    why = "no persistent volumes available for this claim and no storage class is set"
    return "Normal", "FailedBinding", why


class ClaimBinding:
    """Binds claims to volumes that fit, or provisions one."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._claims = runtime.caches.of(PersistentVolumeClaim)
        self._volumes = runtime.caches.of(PersistentVolume)
        self._classes = runtime.caches.of(StorageClass)
        self._nodes = runtime.caches.of(Node)
        self._recorder = Recorder(runtime.client, runtime.clock, "persistentvolume-controller")
        self.controller = Controller("volume-claims", runtime, self._reconcile)
        self.controller.watch(self._claims)
        self.controller.watch(self._volumes, self._waiting).watch(self._classes, self._waiting)

    def _waiting(self, change: Change[PersistentVolume] | Change[StorageClass]) -> list[Key]:
        return [claim.key for claim in self._claims if claim.status.phase != "Bound"]

    async def _reconcile(self, key: Key) -> None:
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None or claim.status.phase == "Bound":
            return
        volume = self._volume_for(claim)
        if volume is not None:
            await self._bind(claim, volume)
            return
        kind = self._classes.get(claim.spec.storage_class_name or "")
        if claim.spec.volume_name:
            return
        if kind is None:
            self._recorder.event(claim, *_without_class(claim))
            return
        node_name = claim.metadata.annotations.get(SELECTED_NODE, "")
        if kind.volume_binding_mode == _WAIT and not node_name:
            message = "waiting for first consumer to be created before binding"
            self._recorder.event(claim, "Normal", _WAIT, message)
            return
        if kind.provisioner != PROVISIONER:
            message = (
                f"Waiting for a volume to be created either by the external provisioner '{kind.provisioner}' or "
                "manually by the system administrator. If volume creation is delayed, please verify that the "
                "provisioner is running and correctly registered."
            )
            self._recorder.event(claim, "Normal", "ExternalProvisioning", message)
            return
        await create_once(self._client, PersistentVolume, new_volume(claim, kind, self._nodes.get(node_name)))

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        if claim.spec.volume_name:
            named = self._volumes.get(claim.spec.volume_name)
            return named if named is not None and fits(named, claim) else None
        fitting = [volume for volume in self._volumes if fits(volume, claim)]
        reserved = [volume for volume in fitting if volume.spec.claim_ref is not None]
        if reserved:
            return reserved[0]
        kind = self._classes.get(claim.spec.storage_class_name or "")
        late = kind is not None and kind.volume_binding_mode == _WAIT
        # With late binding the scheduler chooses: it reserves a volume, or selects a node.
        return None if late or not fitting else smallest(fitting)

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        version = {"resourceVersion": volume.metadata.resource_version}
        with suppress(NotFound):
            if volume.spec.claim_ref is None or volume.spec.claim_ref.uid != claim.uid:
                patch = {"metadata": version, "spec": {"claimRef": _reference(claim)}}
                await self._client.patch(PersistentVolume, volume.name, patch)
            if volume.status.phase != "Bound":
                await self._client.patch(
                    PersistentVolume, volume.name, {"status": {"phase": "Bound"}}, subresource="status"
                )
            bound: Json = {"metadata": {"annotations": _BOUND}}
            if not claim.spec.volume_name:
                bound["spec"] = {"volumeName": volume.name}
            await self._client.patch(PersistentVolumeClaim, claim.key, bound)
            status = {
                "phase": "Bound",
                "accessModes": list(volume.spec.access_modes),
                "capacity": dict(volume.spec.capacity),
            }
            await patch_status(self._client, claim, status)


class VolumeReclaim:
    """Marks free volumes Available, and reclaims those whose claim is gone."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._volumes = runtime.caches.of(PersistentVolume)
        self._claims = runtime.caches.of(PersistentVolumeClaim)
        self.controller = Controller("volumes", runtime, self._reconcile)
        self.controller.watch(self._volumes)
        self.controller.watch(self._claims, self._volume_of, when=lambda change: change.new is None)

    def _volume_of(self, change: Change[PersistentVolumeClaim]) -> list[Key]:
        return [("", change.object.spec.volume_name)] if change.object.spec.volume_name else []

    async def _reconcile(self, key: Key) -> None:
        volume = self._volumes.get(key[1])
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return
        owner = volume.spec.claim_ref
        if owner is None or not owner.uid:
            await self._phase(volume, "Available")
            return
        claim = self._claims.get((owner.namespace, owner.name))
        if claim is not None and claim.uid == owner.uid:
            return
        if volume.status.phase not in ("Bound", "Released"):
            # The claim may not be in the cache yet.
            return
        if volume.spec.persistent_volume_reclaim_policy == "Delete":
            await self._client.delete(PersistentVolume, volume.name, uid=volume.uid)
        else:
            await self._phase(volume, "Released")

    async def _phase(self, volume: PersistentVolume, phase: str) -> None:
        if volume.status.phase == phase:
            return
        await patch_status(self._client, volume, {"phase": phase})
