"""Deployments: a ReplicaSet per template, and a gradual move from the old ones to the new."""

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
from spinney.embedded.controllers.sets.set_plan import BY_CONTROLLER, controller_uid
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.runtime import Runtime


class Deployments:
    """Moves every Deployment to its current template."""

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
        plan = plan_deployment(deployment, self._sets.by(BY_CONTROLLER, deployment.uid), self._clock.now())
        await self._apply(deployment, plan)
        return After(plan.wake) if plan.wake is not None else None

    async def _apply(self, deployment: Deployment, plan: DeploymentPlan) -> None:
        if plan.create is not None:
            await self._create(deployment, plan.create)
        await asyncio.gather(*(self._scale(deployment, each, size, plan) for each, size in plan.scale))
        for each in plan.delete:
            await self._client.delete(ReplicaSet, each.key, uid=each.uid, propagation="Background")
        metadata: Json = {"uid": deployment.uid}
        known = deployment.metadata.annotations.get(REVISION)
        if known != str(plan.revision) and not deployment.spec.paused:
            # Through the status, so that it does not count as a generation of its own.
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
            # Someone else has the name: another hash next time.
            collisions = {"status": {"collisionCount": (deployment.status.collision_count or 0) + 1}}
            await self._client.patch(Deployment, deployment.key, collisions, subresource="status")
            return
        if size:
            message = f"Scaled up replica set {name} from 0 to {size}"
            self._recorder.event(deployment, "Normal", "ScalingReplicaSet", message)

    async def _scale(self, deployment: Deployment, found: ReplicaSet, size: int, plan: DeploymentPlan) -> None:
        wanted = annotations_of(deployment, revision_of(found) or plan.revision)
        if newest(deployment, [found]):
            wanted[REVISION] = str(plan.revision)
            wanted |= _history(found, plan.revision) | copied_annotations(deployment)
        annotations = {k: v for k, v in wanted.items() if found.metadata.annotations.get(k) != v}
        patch: Json = {"metadata": {"annotations": annotations}} if annotations else {}
        if size != found.spec.replicas:
            patch["spec"] = {"replicas": size}
        if not patch:
            return
        try:
            await self._client.patch(ReplicaSet, found.key, patch)
        except NotFound:
            return
        if size != found.spec.replicas:
            way = "up" if size > found.spec.replicas else "down"
            message = f"Scaled {way} replica set {found.name} from {found.spec.replicas} to {size}"
            self._recorder.event(deployment, "Normal", "ScalingReplicaSet", message)


def _history(found: ReplicaSet, revision: int) -> dict[str, str]:
    """The revisions that a ReplicaSet was before, where it becomes one again."""
    before = found.metadata.annotations.get(REVISION, "")
    if before in ("", str(revision)):
        return {}
    told = found.metadata.annotations.get(HISTORY, "")
    return {HISTORY: f"{told},{before}" if told else before}


def controller(runtime: Runtime) -> Controller:
    """The Deployment controller."""
    return Deployments(runtime).controller
