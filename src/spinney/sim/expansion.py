"""What controllers create for workloads: run them in a separate embedded cluster in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from spinney.answers.cluster import Cluster
from spinney.answers.whatif.applying import Created
from spinney.answers.whatif.changes import ChangeError
from spinney.answers.workloads import parts_of
from spinney.api import labels
from spinney.api.core import ConfigMap, Namespace, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, Object, Resource, convert, encode
from spinney.api.podgang import PodGang
from spinney.api.resource import DeviceClass, ResourceClaim
from spinney.api.scheduling import PriorityClass
from spinney.api.storage import StorageClass
from spinney.api.untyped import Untyped, untyped
from spinney.app.components import load
from spinney.app.in_process import register_webhooks
from spinney.app.installation import SYSTEM_NAMESPACE, install, install_crds, platform_objects
from spinney.app.operators import start_operators
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.apiserver.store.store import Store
from spinney.embedded.cluster import Cluster as Embedded
from spinney.embedded.controllers.operators.registry import OPERATORS
from spinney.embedded.controllers.storage.volumes import PROVISIONER, new_volume
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.controllers.host import Host
from spinney.kube.errors import AlreadyExists, ApiError
from spinney.kube.runtime import Component
from spinney.scheduler.intake.devices import requested_classes
from spinney.services.admission.settings import AdmissionSettings
from spinney.sim.loop import clock, run_virtual

# The components that create pods and PodGroups; none that places them.
_COMPONENTS = ("grove", "backends", "podgrouper", "admission")
# Far longer than any controller takes; waiting costs nothing in virtual time.
_SETTLED_SECONDS = 60.0
# What may stand between a workload and its pods.
_BETWEEN = (Resource("apps/v1", "ReplicaSet", "replicasets"), Resource("batch/v1", "Job", "jobs"))
# Kinds that decide where pods may run, and what is kept of the metadata of the cluster's own.
_COPIED: tuple[type[Object], ...] = (StorageClass, ConfigMap, ResourceClaim, DeviceClass)
_KEPT = ("name", "namespace", "labels", "annotations")
# Its names and UIDs must differ from those of the cluster that the what-if is about.
_SEED = 0x5EED_0F_11F5
# Space for some ten thousand pods: a manifest with a million replicas must not fill the memory of this process.
_SPACE = 200 * 1024**2


def expand(cluster: Cluster, documents: Sequence[Json]) -> Created:
    """The pods, PodGroups and owners that the controllers of a cluster would make of some workloads."""
    return run_virtual(_expanded(cluster, documents), start=cluster.now)


async def _expanded(cluster: Cluster, documents: Sequence[Json]) -> Created:
    kinds = {(document.get("apiVersion"), document.get("kind")) for document in documents}
    operated = [each.resource for each in OPERATORS]
    needed = operated if any((each.api_version, each.kind) in kinds for each in operated) else []
    async with _controllers(needed) as client:
        for item in cluster.classes:
            value = {"metadata": {"name": item.name}, "value": item.value, "globalDefault": item.global_default}
            await _create_if_missing(client, PriorityClass.resource, value)
        for source in cluster.claim_sources:
            await _copy(client, source)
        discovery = Discovery(client)
        roots: list[tuple[Resource, Json]] = []
        for document in documents:
            resource = await discovery.resource(str(document.get("apiVersion")), str(document.get("kind")))
            if resource is None:
                raise ChangeError(f"{_called(document)}: kind {document.get('kind')} is not known here")
            roots.append((resource, await _create(client, cluster, resource, document)))
        await asyncio.sleep(_SETTLED_SECONDS)
        created = await _read(client, [*(resource for resource, _ in roots), *needed])
        await _read_claims(client, created)
        for _, stored in roots:
            await _check(client, stored, created)
        return created


@asynccontextmanager
async def _controllers(operated: Sequence[Resource]) -> AsyncIterator[Client]:
    """Run an API server and all that makes pods, without nodes; operators of other projects only for their kinds."""
    chance = Chance(_SEED)
    server = ApiServer(clock(), chance, store=Store(space=_SPACE))
    async with Embedded(nodes=Profile(count=0), clock=clock(), chance=chance, server=server) as embedded:
        client = embedded.client()
        await install_crds(client)
        await install(client, platform_objects())
        if operated:
            await start_operators(embedded)
        components = [load(name) for name in _COMPONENTS]
        configured = [(each, _settings(each)) for each in components]
        host = Host(client, embedded.clock, configured, namespace=SYSTEM_NAMESPACE, caches=embedded.caches)
        reviewers = host.reviewers()
        embedded.server.admission.resolve = lambda hook: reviewers[hook["service"]["path"]]
        life = asyncio.create_task(host.run(), name="components")
        try:
            await host.ready.wait()
            await register_webhooks(embedded, components)
            yield client
            if server.store.used > 0.9 * _SPACE:
                raise ChangeError("this comes to more than 10,000 pods: ask about fewer")
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)


def _settings(component: Component) -> Any:
    if component.settings is AdmissionSettings:
        return AdmissionSettings(gpu_sharing=True)
    return component.settings() if component.settings is not None else None


async def _create_if_missing(client: Client, resource: Resource, body: Json, namespace: str = "") -> None:
    try:
        await client.create(resource, body, namespace)
    except AlreadyExists:
        return


async def _create(client: Client, cluster: Cluster, resource: Resource, document: Json) -> Json:
    """Create a workload as its user would; what the API server refuses is an error."""
    metadata = dict(document.get("metadata") or {})
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    if namespace:
        await _create_if_missing(client, Namespace.resource, {"metadata": {"name": namespace}})
        metadata["namespace"] = namespace
    if _exists(cluster, resource.kind, namespace, str(metadata.get("name", ""))):
        raise ChangeError(f"{_called(document)} exists already in namespace {namespace}: give it another name")
    try:
        return await client.create(resource, _at_once({**document, "metadata": metadata}), namespace, strict=True)
    except ApiError as error:
        raise ChangeError(f"{_called(document)}: {error}") from error


def _exists(cluster: Cluster, kind: str, namespace: str, name: str) -> bool:
    return any((ref.kind, ref.namespace, ref.name) == (kind, namespace, name) for ref in parts_of(cluster))


def _at_once(document: Json) -> Json:
    """A workload that creates all of its pods without waiting for the first to be ready."""
    if document.get("kind") == "StatefulSet" and isinstance(document.get("spec"), dict):
        return {**document, "spec": {**document["spec"], "podManagementPolicy": "Parallel"}}
    return document


async def _read(client: Client, roots: Iterable[Resource]) -> Created:
    typed: set[Resource] = {Pod.resource, PodCliqueSet.resource}
    owners: list[Untyped] = []
    for resource in dict.fromkeys((*roots, *_BETWEEN)):
        if resource not in typed and resource.namespaced:
            owners += (await client.list(untyped(resource))).items
    return Created(
        pods=[_released(pod) for pod in (await client.list(Pod)).items],
        groups=(await client.list(PodGroup)).items,
        gangs=(await client.list(PodGang)).items,
        sets=(await client.list(PodCliqueSet)).items,
        cliques=(await client.list(PodClique)).items,
        owners=owners,
    )


async def _copy(client: Client, source: Object) -> None:
    """Create an object of the cluster, without what its API server added."""
    body = msgspec.json.decode(encode(source))
    metadata = {key: value for key, value in body["metadata"].items() if key in _KEPT}
    if isinstance(source, PersistentVolume):
        # A volume without a source is refused; where its data are does not matter here.
        body["spec"].setdefault("csi", {"driver": PROVISIONER, "volumeHandle": source.name})
    if source.namespace:
        await _create_if_missing(client, Namespace.resource, {"metadata": {"name": source.namespace}})
    await _create_if_missing(client, source.resource, {**body, "metadata": metadata, "status": {}}, source.namespace)


async def _read_claims(client: Client, created: Created) -> None:
    """The claims of the pods, with the volumes that they are bound to or will be."""
    classes = {each.name: each for each in (await client.list(StorageClass)).items}
    claims = (await client.list(PersistentVolumeClaim)).items
    made: list[Object] = []
    bound: list[Object] = []
    for claim in claims:
        kind = classes.get(claim.spec.storage_class_name or "")
        if claim.spec.volume_name or kind is None or not _is_provisioned_at_once(kind):
            bound.append(claim)
            continue
        volume = convert(PersistentVolume, new_volume(claim, kind, None))
        made.append(volume)
        bound.append(replace(claim, spec=replace(claim.spec, volume_name=volume.name)))
        created.assumed.append(f"the volume that is provisioned for claim {claim.name} can be reached from every node")
    created.beside[PersistentVolumeClaim.resource] = bound
    created.beside[PersistentVolume.resource] = [*(await client.list(PersistentVolume)).items, *made]
    for each in _COPIED:
        created.beside[each.resource] = list((await client.list(each)).items)
    for claimed in (await client.list(ResourceClaim)).items:
        if any("gpu" not in name for name, _ in requested_classes(claimed)):
            created.assumed.append(
                f"nodes have enough devices for claim {claimed.name}: they are counted when its pod is bound"
            )


def _is_provisioned_at_once(kind: StorageClass) -> bool:
    return kind.volume_binding_mode != "WaitForFirstConsumer" and kind.provisioner != "kubernetes.io/no-provisioner"


def _released(pod: Pod) -> Pod:
    """A pod without the operator's gate: it goes once the gang before its own is placed."""
    gates = tuple(gate for gate in pod.spec.scheduling_gates if gate.name != labels.KAI_GATE)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=gates))


async def _check(client: Client, root: Json, created: Created) -> None:
    """End with the reason where a workload got no pods because the API server refuses them."""
    template = _template(root.get("spec"))
    if created.pods or template is None:
        return
    pod = {**template, "metadata": {**(template.get("metadata") or {}), "name": "trial"}}
    try:
        await client.create(Pod.resource, pod, root["metadata"]["namespace"], dry_run=True)
    except ApiError as error:
        raise ChangeError(f"{_called(root)}: {error}") from error


def _template(spec: Any) -> Json | None:
    """The first pod template in the spec of a workload."""
    if not isinstance(spec, dict):
        return None
    template = spec.get("template")
    if isinstance(template, dict) and "containers" in (template.get("spec") or {}):
        return template
    return next((inner for value in spec.values() if (inner := _template(value)) is not None), None)


def _called(document: Json) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{str(document.get('kind', 'object')).lower()}/{name}"
