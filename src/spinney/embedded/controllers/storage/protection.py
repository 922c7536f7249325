"""Storage protection: a claim stays while a pod uses it, a volume while it is bound to a claim."""

from __future__ import annotations

from spinney.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.meta import Key
from spinney.api.pod_state import is_finished
from spinney.embedded.controllers.writes import remove_finalizer
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.runtime import Runtime

CLAIM = "kubernetes.io/pvc-protection"
VOLUME = "kubernetes.io/pv-protection"


class ClaimProtection:
    """Removes the finalizer of deleted claims that no pod uses."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._claims = runtime.caches.of(PersistentVolumeClaim)
        self._pods = runtime.caches.of(Pod)
        self._pods.index("claim", _claims_of)
        self.controller = Controller("claim-protection", runtime, self._reconcile).watch(self._claims)
        self.controller.watch(self._pods, _keys, when=lambda c: c.new is None or is_finished(c.new))

    async def _reconcile(self, key: Key) -> None:
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is None or CLAIM not in claim.metadata.finalizers:
            return
        users = self._pods.by("claim", f"{claim.namespace}/{claim.name}")
        if any(not is_finished(pod) for pod in users):
            return
        await remove_finalizer(self._client, claim, CLAIM)


class VolumeProtection:
    """Removes the finalizer of deleted volumes that are bound to no claim."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._claims = runtime.caches.of(PersistentVolumeClaim)
        self._volumes = runtime.caches.of(PersistentVolume)
        self.controller = Controller("volume-protection", runtime, self._reconcile).watch(self._volumes)
        self.controller.watch(
            self._claims, lambda c: [("", c.object.spec.volume_name)], when=lambda c: bool(c.object.spec.volume_name)
        )

    async def _reconcile(self, key: Key) -> None:
        volume = self._volumes.get(key[1])
        if volume is None or volume.metadata.deletion_timestamp is None or VOLUME not in volume.metadata.finalizers:
            return
        owner = volume.spec.claim_ref
        claim = self._claims.get((owner.namespace, owner.name)) if owner is not None else None
        if claim is not None and owner is not None and claim.uid == owner.uid:
            return
        await remove_finalizer(self._client, volume, VOLUME)


def _claims_of(pod: Pod) -> set[str]:
    named = {v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim}
    own = {f"{pod.name}-{v.name}" for v in pod.spec.volumes if v.ephemeral}
    return {f"{pod.namespace}/{name}" for name in named | own}


def _keys(change: Change[Pod]) -> list[Key]:
    return [(change.object.namespace, claim.partition("/")[2]) for claim in _claims_of(change.object)]
