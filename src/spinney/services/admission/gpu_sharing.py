"""GPU sharing: which requests are valid, and how a container gets its devices and its portion."""

from __future__ import annotations

import re

from spinney.api import labels
from spinney.api.gpu_shares import share_problems, shared_container, shares_gpu
from spinney.api.meta import Json
from spinney.api.raw_pods import annotations_of
from spinney.kube.chance import Chance

_SUFFIX_LETTERS = 7
# With `-i0-evar` and `-vol` behind it the longest name still fits into a label.
_LONGEST_BASE = 63 - len("-shared-gpu-i99-evar-vol") - _SUFFIX_LETTERS - 1


def change_problems(pod: Json, old: Json) -> list[str]:
    """What is wrong with a change: a pod keeps the GPUs that it has, so it cannot ask for others."""
    before, after = annotations_of(old), annotations_of(pod)
    return [
        f"annotation {key} says what the pod asks of GPUs, and cannot change"
        for key in (labels.GPU_FRACTION, labels.GPU_MEMORY, labels.GPU_FRACTION_DEVICES)
        if before.get(key) != after.get(key)
    ]


def devices_of(pod: Json) -> Json:
    """The labels that name the shared devices of a pod."""
    pod_labels: Json = (pod.get("metadata") or {}).get("labels") or {}
    return {
        key: value
        for key, value in pod_labels.items()
        if key == labels.GPU_GROUP or key.startswith(labels.GPU_GROUP_PREFIX)
    }


def problems(pod: Json, sharing_is_on: bool) -> list[str]:
    """What is wrong with a pod's request for GPUs."""
    errors = share_problems(pod)
    if shares_gpu(pod) and not sharing_is_on:
        errors.insert(0, "GPU sharing is disabled; ask for whole GPUs, or have it switched on (admission.gpuSharing)")
    return errors


def mount_sharing_config(pod: Json, chance: Chance, runtime_class: str) -> None:
    """Make the sharing container read its devices and its portion from ConfigMaps that the binder writes."""
    shared = shared_container(pod)
    if shared is None:
        return
    container, place = shared
    notes = pod["metadata"].setdefault("annotations", {})
    prefix = notes.setdefault(
        labels.SHARED_GPU_CONFIGMAP, f"{_base_name(pod)}-{chance.suffix(_SUFFIX_LETTERS)}-shared-gpu"
    )
    capabilities = f"{prefix}-{place}"
    _put_environment(container, capabilities)
    volume = {"name": f"{capabilities}-vol", "configMap": {"name": capabilities, "defaultMode": 420}}
    _put_named(pod["spec"].setdefault("volumes", []), volume)
    source = {"configMapRef": {"name": f"{capabilities}-evar", "optional": False}}
    sources = container.setdefault("envFrom", [])
    if source not in sources:
        sources.append(source)
    if runtime_class and not pod["spec"].get("runtimeClassName"):
        pod["spec"]["runtimeClassName"] = runtime_class


def _put_environment(container: Json, config_map: str) -> None:
    variables = container.setdefault("env", [])
    for name in (labels.ENV_VISIBLE_DEVICES, labels.ENV_NUM_GPUS, labels.ENV_GPU_PORTION):
        reference = {"name": config_map, "key": name, "optional": False}
        _put_named(variables, {"name": name, "valueFrom": {"configMapKeyRef": reference}})


def _put_named(entries: list[Json], entry: Json) -> None:
    entries[:] = [other for other in entries if other.get("name") != entry["name"]] + [entry]


def _base_name(pod: Json) -> str:
    meta = pod["metadata"]
    owners = meta.get("ownerReferences") or []
    name = str(owners[0]["name"] if owners else meta.get("name") or meta.get("generateName", "pod"))
    return re.sub(r"[^a-z0-9-]", "-", name)[:_LONGEST_BASE].strip("-")


def mount_memory_limit(pod: Json) -> None:
    """Make the sharing container read its memory limit, if the binder writes one."""
    shared = shared_container(pod)
    prefix = annotations_of(pod).get(labels.SHARED_GPU_CONFIGMAP)
    if shared is None or not prefix:
        return
    container, place = shared
    name = labels.ENV_DEVICE_MEMORY_LIMIT
    reference = {"name": f"{prefix}-{place}", "key": name, "optional": True}
    _put_named(container.setdefault("env", []), {"name": name, "valueFrom": {"configMapKeyRef": reference}})
