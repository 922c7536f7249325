"""Deployments: a ReplicaSet per template, and rolling updates between them."""

from __future__ import annotations

import asyncio

from spinney.api.apps import Deployment, ReplicaSet
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_of
from spinney.embedded.controllers.sets.deployment_plan import (
    HISTORY,
    REVISION,
    DeploymentPlan,
    annotations_of,
    copied_annotations,
    newest,
    plain,
    plan_deployment,
    revision_of,
)
from spinney.embedded.controllers.writes import BY_CONTROLLER, after, controller_uid, delete_once, index_key
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.runtime import Runtime


class Deployments:
    """The Deployment controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._deployments = runtime.caches.of(Deployment)
        self._sets = runtime.caches.of(ReplicaSet)
        self._sets.index(BY_CONTROLLER, controller_uid)
        self._recorder = Recorder(runtime.client, runtime.clock, "deployment-controller")
        self.controller = Controller("deployment", runtime, self._reconcile)
        self.controller.watch(self._deployments).watch(self._sets, owner_key("Deployment"))

    async def _reconcile(self, key: Key) -> After | None:
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return None
        plan = plan_deployment(deployment, self._sets.by(BY_CONTROLLER, index_key(deployment)), self._clock.now())
        await self._apply(deployment, plan)
        return after(plan.wake)

    async def _apply(self, deployment: Deployment, plan: DeploymentPlan) -> None:
        if plan.create is not None:
            await self._create(deployment, plan.create)
        await asyncio.gather(*(self._scale(deployment, replicaset, size, plan) for replicaset, size in plan.scale))
        for replicaset in plan.delete:
            await delete_once(self._client, replicaset, propagation="Background")
        metadata: Json = {"uid": deployment.uid}
        if deployment.metadata.annotations.get(REVISION) != str(plan.revision) and not deployment.spec.paused:
            # Through the status subresource, which keeps the generation.
            metadata["annotations"] = {REVISION: str(plan.revision)}
        if plan.status or "annotations" in metadata:
            patch = {"metadata": metadata, "status": plan.status}
            await self._client.patch(Deployment, deployment.key, patch, kind=Patch.STRATEGIC, subresource="status")

    async def _create(self, deployment: Deployment, body: Json) -> None:
        name, size = body["metadata"]["name"], body["spec"]["replicas"]
        try:
            await self._client.create(ReplicaSet, body, deployment.namespace)
        except AlreadyExists:
            existing = await self._client.get(ReplicaSet, (deployment.namespace, name))
            owner = controller_of(existing.metadata)
            if (
                owner is not None
                and owner.uid == deployment.uid
                and plain(existing.spec.template) == plain(body["spec"]["template"])
            ):
                return
            # The name is taken: the next reconcile uses another hash.
            collisions = {"status": {"collisionCount": (deployment.status.collision_count or 0) + 1}}
            await self._client.patch(Deployment, deployment.key, collisions, subresource="status")
            return
        if size:
            message = f"Scaled up replica set {name} from 0 to {size}"
            self._recorder.event(deployment, "Normal", "ScalingReplicaSet", message)

    async def _scale(self, deployment: Deployment, replicaset: ReplicaSet, size: int, plan: DeploymentPlan) -> None:
        wanted = annotations_of(deployment, revision_of(replicaset) or plan.revision)
        if newest(deployment, [replicaset]):
            wanted[REVISION] = str(plan.revision)
            wanted |= _history(replicaset, plan.revision) | copied_annotations(deployment)
        annotations = {k: v for k, v in wanted.items() if replicaset.metadata.annotations.get(k) != v}
        patch: Json = {"metadata": {"annotations": annotations}} if annotations else {}
        if size != replicaset.spec.replicas:
            patch["spec"] = {"replicas": size}
        if not patch:
            return
        try:
            await self._client.patch(ReplicaSet, replicaset.key, patch)
        except NotFound:
            return
        if size != replicaset.spec.replicas:
            way = "up" if size > replicaset.spec.replicas else "down"
            message = f"Scaled {way} replica set {replicaset.name} from {replicaset.spec.replicas} to {size}"
            self._recorder.event(deployment, "Normal", "ScalingReplicaSet", message)


def _history(replicaset: ReplicaSet, revision: int) -> dict[str, str]:
    """The annotation with earlier revisions of a ReplicaSet that gets a new one."""
    before = replicaset.metadata.annotations.get(REVISION, "")
    if before in ("", str(revision)):
        return {}
    earlier = replicaset.metadata.annotations.get(HISTORY, "")
    return {HISTORY: f"{earlier},{before}" if earlier else before}
