"""Requested and allocated resources of a pod, as PodGroups and Queues report them."""

from __future__ import annotations

import re

from spinney.api import labels, reasons
from spinney.api.core import Node, Pod
from spinney.api.numbers import whole_number
from spinney.api.pod_state import is_finished, is_scheduled
from spinney.api.quantity import QuantityError, binary, from_milli, milli
from spinney.api.requests import pod_requests

# Thousandths of each resource's unit.
Amounts = dict[str, int]

# AMD's labeller writes the size into the key: beta.amd.com/gpu.vram.64G.
_AMD_MEMORY = re.compile(r"beta\.amd\.com/gpu\.vram\.(\d+[KMGT]i?)")


def requested(pod: Pod) -> Amounts:
    """The requests of an unfinished pod, with shared GPUs."""
    if is_finished(pod):
        return {}
    total = pod_requests(pod.spec)
    devices = devices_of(pod)
    if fraction := pod.metadata.annotations.get(labels.GPU_FRACTION):
        total[labels.GPU_RESOURCE] = total.get(labels.GPU_RESOURCE, 0) + _amount(fraction) * devices
    elif memory := pod.metadata.annotations.get(labels.GPU_MEMORY):
        total[labels.GPU_MEMORY_RESOURCE] = _amount(memory) * devices
    return total


def allocated(pod: Pod, node: Node | None) -> Amounts:
    """The resources that a pod holds: from when it has a node until it has ended."""
    if is_finished(pod) or not is_scheduled(pod):
        return {}
    total = pod_requests(pod.spec)
    if shares_gpu(pod):
        total[labels.GPU_RESOURCE] = total.get(labels.GPU_RESOURCE, 0) + _allocated_share(pod, node) * devices_of(pod)
    return total


def shares_gpu(pod: Pod) -> bool:
    """Whether a pod was given parts of GPUs."""
    return pod.metadata.annotations.get(labels.RECEIVED_RESOURCE_TYPE) == reasons.FRACTION


def add(total: Amounts, more: Amounts) -> None:
    """Add amounts to a running total, in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def quantities(total: Amounts) -> dict[str, str]:
    """Amounts as a resource list, without zeros."""
    return {
        name: binary(amount // 1000) if name == "memory" and amount % 1000 == 0 else from_milli(amount)
        for name, amount in sorted(total.items())
        if amount
    }


def _amount(text: str) -> int:
    """The amount of an annotation; 0 where it is invalid, which only our own admission refuses."""
    try:
        return milli(text)
    except QuantityError:
        return 0


def devices_of(pod: Pod) -> int:
    """How many GPUs a pod shares."""
    count = whole_number(pod.metadata.annotations.get(labels.GPU_FRACTION_DEVICES, "1"))
    return 1 if count is None else count


def _allocated_share(pod: Pod, node: Node | None) -> int:
    """The thousandths of a device that a pod holds; memory counts relative to its node's devices."""
    if fraction := pod.metadata.annotations.get(labels.GPU_FRACTION):
        return _amount(fraction)
    memory = whole_number(pod.metadata.annotations.get(labels.GPU_MEMORY, ""))
    whole = gpu_memory(node) if node is not None else 0
    return -(-memory * 1000 // whole) if memory and whole else 0


def gpu_memory(node: Node) -> int:
    """The memory of a node's GPUs in MiB, by the labels of NVIDIA or AMD; 0 without one."""
    whole = whole_number(node.metadata.labels.get(labels.NODE_GPU_MEMORY, ""))
    if whole is not None:
        return whole
    for label in node.metadata.labels:
        if match := _AMD_MEMORY.fullmatch(label):
            return milli(match[1]) // 1000 // 2**20
    return 0


def is_gpu(resource: str) -> bool:
    """Whether a resource counts GPUs: an extended resource, or the device class of claims."""
    return resource.endswith("/gpu") or ("/" not in resource and "gpu" in resource)
