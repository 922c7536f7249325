"""GPU sharing: which requests are valid, and how a container gets its devices and its portion."""

from __future__ import annotations

import re
from fractions import Fraction

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.quantity import QuantityError, exact
from spinney.kube.chance import Chance
from spinney.services.admission.raw_pods import annotations_of, containers, requests_of

_SUFFIX_LETTERS = 7
# With `-i0-evar` and `-vol` behind it the longest name still fits into a label.
_LONGEST_BASE = 63 - len("-shared-gpu-i99-evar-vol") - _SUFFIX_LETTERS - 1
_POSITIVE = re.compile(r"[1-9]\d*")


def shares_gpu(pod: Json) -> bool:
    """Whether a pod requests a fraction or memory of a GPU."""
    annotations = annotations_of(pod)
    return labels.GPU_FRACTION in annotations or labels.GPU_MEMORY in annotations


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
    annotations = annotations_of(pod)
    fraction, memory = annotations.get(labels.GPU_FRACTION), annotations.get(labels.GPU_MEMORY)
    devices = annotations.get(labels.GPU_FRACTION_DEVICES)
    errors: list[str] = []
    if fraction is None and memory is None:
        if devices is not None:
            errors.append(
                f"annotation {labels.GPU_FRACTION_DEVICES} needs {labels.GPU_FRACTION} or {labels.GPU_MEMORY} beside it"
            )
        if annotations.get(labels.MPS) == "true":
            errors.append(f"annotation {labels.MPS} is for pods that ask for a part of a GPU")
        return errors
    if not sharing_is_on:
        errors.append("GPU sharing is disabled; ask for whole GPUs, or have it switched on (admission.gpuSharing)")
    if fraction is not None and memory is not None:
        errors.append(f"annotations {labels.GPU_FRACTION} and {labels.GPU_MEMORY} exclude each other")
    if any(requests_of(container).get(labels.GPU_RESOURCE) not in (None, 0, "0") for container in containers(pod)):
        errors.append(f"a part of a GPU and a whole {labels.GPU_RESOURCE} cannot be asked for by one pod")
    if fraction is not None and not _is_fraction(fraction):
        errors.append(f"annotation {labels.GPU_FRACTION} is {fraction!r}; it must be a number above 0 and below 1")
    if memory is not None and not _POSITIVE.fullmatch(memory):
        errors.append(f"annotation {labels.GPU_MEMORY} is {memory!r}; it must be a whole number of MiB above 0")
    if devices is not None and not _POSITIVE.fullmatch(devices):
        errors.append(f"annotation {labels.GPU_FRACTION_DEVICES} is {devices!r}; it must be a whole number above 0")
    if shared_container(pod) is None:
        wanted = annotations[labels.GPU_FRACTION_CONTAINER]
        errors.append(
            f"annotation {labels.GPU_FRACTION_CONTAINER} names {wanted!r}, which is not a container of the pod"
        )
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


def shared_container(pod: Json) -> tuple[Json, str] | None:
    """The container that uses the shared GPU, and its index: `0`, or `i0` for an init container."""
    wanted = annotations_of(pod).get(labels.GPU_FRACTION_CONTAINER)
    spec = pod.get("spec") or {}
    if wanted is None:
        first = (spec.get("containers") or [None])[0]
        return (first, "0") if first else None
    for prefix, field in (("i", "initContainers"), ("", "containers")):
        for index, container in enumerate(spec.get(field) or []):
            if container.get("name") == wanted:
                return container, f"{prefix}{index}"
    return None


def _is_fraction(text: str) -> bool:
    try:
        # What is too small for any quantity is rounded up to a billionth, and stands for nothing.
        return Fraction(1, 10**9) < exact(text) < 1
    except QuantityError:
        return False
