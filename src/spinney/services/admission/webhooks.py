"""The admission reviews: pods are mutated and validated, topologies validated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy

from spinney.api import gpu_shares, labels
from spinney.api.core import Namespace
from spinney.api.kai import Queue
from spinney.api.meta import Json
from spinney.api.raw_pods import annotations_of
from spinney.kube.admission.review import allowed, changed, refused
from spinney.kube.runtime import Runtime
from spinney.services.admission import device_isolation, gpu_sharing, queue_access, queue_gates
from spinney.services.admission.rights import may_bind
from spinney.services.admission.settings import AdmissionSettings

Review = Callable[[Json], Awaitable[Json]]


def pod_mutation(runtime: Runtime) -> Review:
    """Mutate pods: scheduler, queue, GPU sharing, device isolation and queue gates."""
    settings = _settings(runtime)
    known_queues = runtime.caches.of(Queue)
    namespaces = runtime.caches.of(Namespace)

    async def review(request: Json) -> Json:
        pod = deepcopy(request["object"])
        if settings.adopt_queued_pods:
            queue_access.adopt(pod, settings)
        if not _is_ours(pod, settings):
            return allowed(request)
        queue_access.set_default_queue(pod, namespaces.get(request.get("namespace", "")), settings.queue_label)
        # An invalid request is left as it is: the validation refuses it with a reason.
        if gpu_shares.shares_gpu(pod) and not gpu_sharing.problems(pod, settings.gpu_sharing):
            gpu_sharing.mount_sharing_config(pod, runtime.client.chance, settings.fraction_runtime_class)
            if settings.memory_limit:
                gpu_sharing.mount_memory_limit(pod)
        if settings.block_visible_devices:
            device_isolation.hide_devices(pod)
        if settings.gate_blocked_pods and queue_gates.is_limited(
            queue_access.queue_of(pod, settings.queue_label), known_queues
        ):
            queue_gates.put_gate(pod)
        return changed(request, pod)

    return review


def pod_validation(runtime: Runtime) -> Review:
    """Refuse pods with an invalid request for GPUs, or whose sender may not use their queue."""
    settings = _settings(runtime)
    known_queues = runtime.caches.of(Queue)

    async def review(request: Json) -> Json:
        pod = request["object"]
        if not _is_ours(pod, settings):
            return allowed(request)
        old = request.get("oldObject") if request.get("operation") == "UPDATE" else None
        # A pod admitted under other settings must stay editable, for the binder and for finalizers.
        tolerated = pod_problems(old, settings) if old else []
        errors = [problem for problem in pod_problems(pod, settings) if problem not in tolerated]
        errors += gpu_sharing.change_problems(pod, old) if old else []
        if gpu_sharing.devices_of(pod) != gpu_sharing.devices_of(old or {}) and not await may_bind(
            runtime.client, request["userInfo"]
        ):
            errors.append(f"labels {labels.GPU_GROUP} name the shared GPUs of a pod, and only who binds pods sets them")
        if errors:
            return refused(request, "; ".join(errors))
        queue = queue_access.queue_of(pod, settings.queue_label)
        if old and queue_access.queue_of(old, settings.queue_label) == queue:
            return allowed(request)
        if settings.check_queue_access and (
            why := await queue_access.refusal(runtime.client, queue, request, settings)
        ):
            return refused(request, why)
        return allowed(request, queue_access.warnings(queue, known_queues) if queue else ())

    return review


def queue_review(runtime: Runtime) -> Review:
    """Refuse PodGroups and PodCliqueSets that name a queue anew which their sender may not use."""

    async def review(request: Json) -> Json:
        before = queue_access.queues_named(request.get("oldObject") or {})
        for queue in sorted(queue_access.queues_named(request["object"]) - before):
            if why := await queue_access.refusal_of_group(runtime.client, queue, request["userInfo"]):
                return refused(request, why)
        return allowed(request)

    return review


def pod_problems(pod: Json, settings: AdmissionSettings) -> list[str]:
    """All errors of a pod's request for GPUs."""
    errors = gpu_sharing.problems(pod, settings.gpu_sharing)
    if settings.block_visible_devices:
        shared = gpu_shares.shared_container(pod) if gpu_shares.shares_gpu(pod) else None
        wired = shared[0] if shared is not None and labels.SHARED_GPU_CONFIGMAP in annotations_of(pod) else None
        errors += device_isolation.problems(pod, wired)
    return errors


def _settings(runtime: Runtime) -> AdmissionSettings:
    return runtime.settings if isinstance(runtime.settings, AdmissionSettings) else AdmissionSettings()


def topology_validation(runtime: Runtime) -> Review:
    """Refuse topologies with ambiguous aliases."""

    async def review(request: Json) -> Json:
        levels = (request["object"].get("spec") or {}).get("levels") or []
        errors = alias_problems(levels)
        return refused(request, f"invalid topology aliases: {'; '.join(errors)}") if errors else allowed(request)

    return review


def alias_problems(levels: list[Json]) -> list[str]:
    """Aliases that are used twice, or that are the label of a level."""
    names = [level.get("nodeLabel") for level in levels]
    seen: set[str] = set()
    errors = []
    for index, level in enumerate(levels):
        alias = level.get("alias")
        if not alias:
            continue
        if alias in seen:
            errors.append(f"spec.levels[{index}].alias {alias!r} is used twice")
        if alias in names:
            errors.append(f"spec.levels[{index}].alias {alias!r} is the node label of a level")
        seen.add(alias)
    return errors


def _is_ours(pod: Json, settings: AdmissionSettings) -> bool:
    return (pod.get("spec") or {}).get("schedulerName") == settings.scheduler_name
