"""How much a pod asks for and holds, as PodGroups and Queues report it."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.conditions import is_true
from spinney.api.core import Node, Pod
from spinney.api.quantity import binary, from_milli, milli
from spinney.api.requests import pod_requests

# Thousandths of each resource's unit.
Amounts = dict[str, int]

GPU = "nvidia.com/gpu"
GPU_MEMORY = "run.ai/gpu.memory"


def requested(pod: Pod) -> Amounts:
    """What a pod that is not finished asks for, shared GPUs included."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return {}
    total = pod_requests(pod.spec)
    devices = _devices(pod)
    if fraction := pod.metadata.annotations.get(labels.GPU_FRACTION):
        total[GPU] = total.get(GPU, 0) + milli(fraction) * devices
    elif memory := pod.metadata.annotations.get(labels.GPU_MEMORY):
        total[GPU_MEMORY] = milli(memory) * devices
    return total


def allocated(pod: Pod, node: Node | None) -> Amounts:
    """What a pod holds: from the moment it has a node until it is finished."""
    if pod.status.phase in ("Succeeded", "Failed") or not _is_placed(pod):
        return {}
    total = pod_requests(pod.spec)
    if pod.metadata.annotations.get(labels.RECEIVED_RESOURCE_TYPE) == "Fraction":
        total[GPU] = total.get(GPU, 0) + _held_share(pod, node) * _devices(pod)
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
    return bool(pod.spec.node_name) or is_true(pod.status.conditions, "PodScheduled")


def _devices(pod: Pod) -> int:
    text = pod.metadata.annotations.get(labels.GPU_FRACTION_DEVICES, "1")
    return int(text) if text.isdecimal() else 1


def _held_share(pod: Pod, node: Node | None) -> int:
    """The thousandths of one device that a shared pod holds; memory is a share of its node's devices."""
    if fraction := pod.metadata.annotations.get(labels.GPU_FRACTION):
        return milli(fraction)
    memory = pod.metadata.annotations.get(labels.GPU_MEMORY, "")
    whole = (node.metadata.labels if node else {}).get(labels.NODE_GPU_MEMORY, "")
    if not memory.isdecimal() or not whole.isdecimal() or int(whole) == 0:
        return 0
    return -(-int(memory) * 1000 // int(whole))
