"""Ephemeral volumes: a claim for each ephemeral volume of a pod."""

from __future__ import annotations

from spinney.api.core import PersistentVolumeClaim, Pod
from spinney.api.meta import Json, Key
from spinney.api.owners import controlled_by, controller_reference
from spinney.api.pod_state import is_active
from spinney.embedded.controllers.writes import create_once
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime


def plan_claims(pod: Pod) -> list[Json]:
    """The claims of a pod's ephemeral volumes, named `<pod>-<volume>` and owned by the pod."""
    return [
        {
            "metadata": {
                "name": f"{pod.name}-{volume.name}",
                "labels": volume.ephemeral.volume_claim_template.metadata.labels,
                "annotations": volume.ephemeral.volume_claim_template.metadata.annotations,
                "ownerReferences": [controller_reference(pod)],
            },
            "spec": volume.ephemeral.volume_claim_template.spec,
        }
        for volume in pod.spec.volumes
        if volume.ephemeral is not None
    ]


class EphemeralVolumes:
    """The controller of ephemeral volumes."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._pods = runtime.caches.of(Pod)
        self._claims = runtime.caches.of(PersistentVolumeClaim)
        self._recorder = Recorder(runtime.client, runtime.clock, "ephemeral_volume")
        self.controller = Controller("ephemeral-volumes", runtime, self._reconcile)
        self.controller.watch(self._pods, when=lambda change: any(v.ephemeral for v in change.object.spec.volumes))

    async def _reconcile(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is None or not is_active(pod):
            return
        await self._claims.synced()
        for wanted in plan_claims(pod):
            name = wanted["metadata"]["name"]
            claim = self._claims.get((pod.namespace, name))
            if claim is None:
                await create_once(self._client, PersistentVolumeClaim, wanted, pod.namespace)
            elif not controlled_by(claim.metadata, pod):
                message = f'PVC "{pod.namespace}/{name}" was not created for pod "{pod.namespace}/{pod.name}"'
                self._recorder.event(pod, "Warning", "FailedBinding", f"{message} (pod is not owner)")
