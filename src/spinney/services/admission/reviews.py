"""The reviews that the API server asks for: pods changed, pods checked, topologies checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy

from spinney.api.kai import Queue
from spinney.api.meta import Json
from spinney.kube.review import allowed, changed, refused
from spinney.kube.runtime import Runtime
from spinney.services.admission import devices, fractions, gates, queues
from spinney.services.admission.settings import AdmissionSettings

Review = Callable[[Json], Awaitable[Json]]


def pod_mutation(runtime: Runtime) -> Review:
    """Wires pods that share a GPU, hides devices from those that asked for none, and gates those of limited queues."""
    settings = _settings(runtime)
    known_queues = runtime.caches.of(Queue)

    async def review(request: Json) -> Json:
        pod = deepcopy(request["object"])
        if not _is_ours(pod, settings):
            return allowed(request)
        # What cannot be granted is left to the check, which says why.
        if fractions.asks_for_part(pod) and not fractions.problems(pod, settings.gpu_sharing):
            fractions.wire_up(pod, runtime.client.chance, settings.fraction_runtime_class)
        if settings.block_visible_devices:
            devices.hide_from_others(pod)
        queue = (pod["metadata"].get("labels") or {}).get(settings.queue_label, "")
        if settings.gate_blocked_pods and gates.is_limited(queue, known_queues):
            gates.put_gate(pod)
        return changed(request, pod)

    return review


def pod_validation(runtime: Runtime) -> Review:
    """Refuses pods whose wish for GPUs makes no sense, or whose sender may not use their queue."""
    settings = _settings(runtime)
    known_queues = runtime.caches.of(Queue)

    async def review(request: Json) -> Json:
        pod = request["object"]
        if not _is_ours(pod, settings):
            return allowed(request)
        found = fractions.problems(pod, settings.gpu_sharing)
        if settings.block_visible_devices:
            found += devices.problems(pod, fractions.asks_for_part(pod))
        if found:
            return refused(request, "; ".join(found))
        queue = (pod["metadata"].get("labels") or {}).get(settings.queue_label)
        if not queue or request.get("operation") != "CREATE":
            return allowed(request)
        if settings.check_queue_access and not await queues.may_use(runtime.client, queue, request["userInfo"]):
            who = request["userInfo"].get("username", "")
            return refused(request, f"user {who!r} may not use queue {queue!r}: verb 'use' on the Queue is not granted")
        return allowed(request, queues.warnings(queue, known_queues))

    return review


def _settings(runtime: Runtime) -> AdmissionSettings:
    return runtime.settings if isinstance(runtime.settings, AdmissionSettings) else AdmissionSettings()


def topology_validation(runtime: Runtime) -> Review:
    """Aliases of a topology's levels must be unambiguous."""

    async def review(request: Json) -> Json:
        levels = (request["object"].get("spec") or {}).get("levels") or []
        found = alias_problems(levels)
        return refused(request, f"invalid topology aliases: {'; '.join(found)}") if found else allowed(request)

    return review


def alias_problems(levels: list[Json]) -> list[str]:
    """Aliases that are used twice, or that are the label of a level."""
    names = [level.get("nodeLabel") for level in levels]
    seen: set[str] = set()
    found = []
    for index, level in enumerate(levels):
        alias = level.get("alias")
        if not alias:
            continue
        if alias in seen:
            found.append(f"spec.levels[{index}].alias {alias!r} is used twice")
        if alias in names:
            found.append(f"spec.levels[{index}].alias {alias!r} is the node label of a level")
        seen.add(alias)
    return found


def _is_ours(pod: Json, settings: AdmissionSettings) -> bool:
    return (pod.get("spec") or {}).get("schedulerName") == settings.scheduler_name
