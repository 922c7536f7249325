"""Resource claims: created from templates for pods, and released when the pods that use them are gone."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from spinney.api.core import Pod
from spinney.api.meta import Json, Key, OwnerReference
from spinney.api.owners import controller_of, controller_reference
from spinney.api.pod_state import is_finished
from spinney.api.resource import ClaimConsumer, ResourceClaim, ResourceClaimTemplate
from spinney.embedded.controllers.writes import delete_once, patch_status
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


class PodClaims:
    """Creates the claims of pods from templates, and writes their names into the pods' status."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._pods = runtime.caches.of(Pod)
        self._claims = runtime.caches.of(ResourceClaim)
        self._templates = runtime.caches.of(ResourceClaimTemplate)
        self._recorder = Recorder(runtime.client, runtime.clock, "resource_claim")
        self._claims.index("pod-uid", lambda claim: (o.uid,) if (o := _pod_owner(claim)) else ())
        self._pods.index("claim-template", _templates_of)
        self.controller = Controller("pod-claims", runtime, self._reconcile)
        self.controller.watch(self._pods, when=lambda change: bool(change.object.spec.resource_claims))
        self.controller.watch(self._templates, self._pods_of)

    def _pods_of(self, change: Change[ResourceClaimTemplate]) -> list[Key]:
        template = f"{change.object.namespace}/{change.object.name}"
        return [pod.key for pod in self._pods.by("claim-template", template)]

    async def _reconcile(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is None or is_finished(pod) or pod.metadata.deletion_timestamp is not None:
            return
        written = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        existing = {
            claim.metadata.annotations.get(CLAIM_NAME): claim
            for claim in self._claims.by("pod-uid", pod.uid)
            if claim.namespace == pod.namespace
        }
        names: dict[str, str] = {}
        for reference in pod.spec.resource_claims:
            template = reference.resource_claim_template_name
            if not template or reference.name in written:
                continue
            claim = existing.get(reference.name) or await self._create(pod, reference.name, template)
            if claim is not None:
                names[reference.name] = claim.name
        if names:
            await self._write_names(pod, names)

    async def _create(self, pod: Pod, name: str, template: str) -> ResourceClaim | None:
        source = await self._client.find(ResourceClaimTemplate.resource, (pod.namespace, template))
        if source is None:
            message = f"PodResourceClaim {name}: resource claim template {template!r}: not found"
            self._recorder.event(pod, "Warning", "FailedResourceClaimCreation", message)
            return None
        metadata = source["spec"].get("metadata") or {}
        body = {
            "metadata": {
                "generateName": f"{pod.name}-{name}-",
                "labels": metadata.get("labels") or {},
                "annotations": {**(metadata.get("annotations") or {}), CLAIM_NAME: name},
                "ownerReferences": [controller_reference(pod)],
            },
            "spec": source["spec"]["spec"],
        }
        return await self._client.create(ResourceClaim, body, pod.namespace)

    async def _write_names(self, pod: Pod, names: dict[str, str]) -> None:
        statuses = [{"name": name, "resourceClaimName": claim} for name, claim in names.items()]
        await patch_status(self._client, pod, {"resourceClaimStatuses": statuses}, Patch.STRATEGIC)


class ClaimRelease:
    """Removes consumers that are gone, deallocates claims without consumers, and deletes claims of ended pods."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._pods = runtime.caches.of(Pod)
        self._claims = runtime.caches.of(ResourceClaim)
        self._claims.index("user-uid", _uids)
        self.controller = Controller("used-claims", runtime, self._reconcile)
        self.controller.watch(self._claims).watch(self._pods, self._claims_of, when=_has_ended)

    def _claims_of(self, change: Change[Pod]) -> list[Key]:
        return [claim.key for claim in self._claims.by("user-uid", change.object.uid)]

    async def _reconcile(self, key: Key) -> None:
        claim = self._claims.get(key)
        if claim is None:
            return
        consumers = filter(_is_pod, claim.status.reserved_for)
        gone = [user for user in consumers if not self._is_unfinished(claim.namespace, user)]
        if gone:
            await self._release(claim, gone)
        owner = _pod_owner(claim)
        if owner is None or claim.metadata.deletion_timestamp is not None:
            return
        if not self._is_unfinished(claim.namespace, owner):
            await delete_once(self._client, claim)

    async def _release(self, claim: ResourceClaim, gone: list[ClaimConsumer]) -> None:
        lost = {user.uid for user in gone}
        kept = [
            {"resource": user.resource, "name": user.name, "uid": user.uid}
            | ({"apiGroup": user.api_group} if user.api_group else {})
            for user in claim.status.reserved_for
            if user.uid not in lost
        ]
        status: Json = {"reservedFor": kept or None}
        if not kept:
            status["allocation"] = None
        metadata = {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}
        with suppress(NotFound):
            patch = {"metadata": metadata, "status": status}
            await self._client.patch(ResourceClaim, claim.key, patch, subresource="status")

    def _is_unfinished(self, namespace: str, reference: ClaimConsumer | OwnerReference) -> bool:
        pod = self._pods.get((namespace, reference.name))
        return pod is not None and pod.uid == reference.uid and not is_finished(pod)


def _is_pod(consumer: ClaimConsumer) -> bool:
    return consumer.resource == "pods" and not consumer.api_group


def _pod_owner(claim: ResourceClaim) -> OwnerReference | None:
    owner = controller_of(claim.metadata)
    return owner if owner is not None and owner.kind == "Pod" else None


def _uids(claim: ResourceClaim) -> Iterable[str]:
    owner = _pod_owner(claim)
    return {user.uid for user in claim.status.reserved_for} | ({owner.uid} if owner else set())


def _has_ended(change: Change[Pod]) -> bool:
    return change.new is None or is_finished(change.new)


def _templates_of(pod: Pod) -> Iterable[str]:
    return {
        f"{pod.namespace}/{reference.resource_claim_template_name}"
        for reference in pod.spec.resource_claims
        if reference.resource_claim_template_name
    }
