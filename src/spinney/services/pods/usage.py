"""How much a pod asks for and holds, as PodGroups and Queues report it."""

from __future__ import annotations

import re

from spinney.api import labels, reasons
from spinney.api.conditions import is_true
from spinney.api.core import Node, Pod
from spinney.api.quantity import QuantityError, binary, from_milli, milli
from spinney.api.requests import pod_requests

# Thousandths of each resource's unit.
Amounts = dict[str, int]

# AMD's labeller writes the size into the key: beta.amd.com/gpu.vram.64G.
_AMD_MEMORY = re.compile(r"beta\.amd\.com/gpu\.vram\.(\d+[KMGT]i?)")


def requested(pod: Pod) -> Amounts:
    """What a pod that is not finished asks for, shared GPUs included."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return {}
    total = pod_requests(pod.spec)
    devices = devices_of(pod)
    if fraction := pod.metadata.annotations.get(labels.GPU_FRACTION):
        total[labels.GPU_RESOURCE] = total.get(labels.GPU_RESOURCE, 0) + _said(fraction) * devices
    elif memory := pod.metadata.annotations.get(labels.GPU_MEMORY):
        total[labels.GPU_MEMORY_RESOURCE] = _said(memory) * devices
    return total


def allocated(pod: Pod, node: Node | None) -> Amounts:
    """What a pod holds: from the moment it has a node until it is finished."""
    if pod.status.phase in ("Succeeded", "Failed") or not _is_placed(pod):
        return {}
    total = pod_requests(pod.spec)
    if pod.metadata.annotations.get(labels.RECEIVED_RESOURCE_TYPE) == reasons.FRACTION:
        total[labels.GPU_RESOURCE] = total.get(labels.GPU_RESOURCE, 0) + _held_share(pod, node) * devices_of(pod)
    return total


def add(total: Amounts, more: Amounts) -> None:
    """Add amounts to a running total, in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def quantities(total: Amounts) -> dict[str, str]:
    """Amounts as a resource list; what came to nothing is left out."""
    return {
        name: binary(amount // 1000) if name == "memory" and amount % 1000 == 0 else from_milli(amount)
        for name, amount in sorted(total.items())
        if amount
    }


def _is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or is_true(pod.status.conditions, reasons.POD_SCHEDULED)


def _said(text: str) -> int:
    """An amount that an annotation names; nothing where it cannot be read, since only our own admission checks it."""
    try:
        return milli(text)
    except QuantityError:
        return 0


def devices_of(pod: Pod) -> int:
    """How many GPUs a pod takes a part of."""
    text = pod.metadata.annotations.get(labels.GPU_FRACTION_DEVICES, "1")
    return int(text) if text.isdecimal() else 1


def _held_share(pod: Pod, node: Node | None) -> int:
    """The thousandths of one device that a shared pod holds; memory is a share of its node's devices."""
    if fraction := pod.metadata.annotations.get(labels.GPU_FRACTION):
        return _said(fraction)
    memory = pod.metadata.annotations.get(labels.GPU_MEMORY, "")
    whole = gpu_memory(node) if node is not None else 0
    return -(-int(memory) * 1000 // whole) if memory.isdecimal() and whole else 0


def gpu_memory(node: Node) -> int:
    """The MiB of each of a node's GPUs, as the labels of NVIDIA or AMD tell; 0 where none does."""
    whole = node.metadata.labels.get(labels.NODE_GPU_MEMORY, "")
    if whole.isdecimal():
        return int(whole)
    for label in node.metadata.labels:
        if match := _AMD_MEMORY.fullmatch(label):
            return milli(match[1]) // 1000 // 2**20
    return 0


def is_gpu(resource: str) -> bool:
    """Whether a resource counts GPUs: an extended resource, or the device class of claims."""
    return resource.endswith("/gpu") or ("/" not in resource and "gpu" in resource)
