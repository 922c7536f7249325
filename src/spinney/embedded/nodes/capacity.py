"""The capacity of a simulated node: what its pods hold, and which GPU each of them has."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from itertools import islice

from spinney.api.core import Node, Pod
from spinney.api.labels import GPU_RESOURCE
from spinney.api.requests import in_milli, pod_requests

# No machine has more; pods that ask for more get no further devices.
_MOST_GPUS = 4096
# GPU UUIDs follow from node and index, so a node that returns has the same ones.
_GPU_NAMES = uuid.UUID("5f1c4b1e-8d0a-4a57-9d52-6f0f5a6a3c11")


def gpu_uuid(node: str, index: int) -> str:
    """The UUID that NVML would report."""
    return f"GPU-{uuid.uuid5(_GPU_NAMES, f'{node}/{index}')}"


def requests(pod: Pod) -> dict[str, int]:
    """The requests of a pod, in thousandths."""
    return {**pod_requests(pod.spec), "pods": 1000}


def _sum(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in left.keys() | right.keys()}


@dataclass(slots=True)
class _Held:
    amounts: dict[str, int]
    gpus: tuple[int, ...]


@dataclass(slots=True)
class NodeCapacity:
    """The resources of a node and the pods that hold them; a pod that does not fit is rejected."""

    node: str
    capacity: dict[str, int] = field(default_factory=dict)
    _used: dict[str, int] = field(default_factory=dict)
    _held: dict[str, _Held] = field(default_factory=dict)

    def resize(self, node: Node) -> None:
        """Set the capacity to the node's allocatable."""
        self.capacity = in_milli(node.status.allocatable)

    def admit(self, pod: Pod) -> tuple[str, str] | None:
        """Admit a pod; returns reason and message where it does not fit."""
        if pod.uid in self._held:
            return None
        wanted = requests(pod)
        for name, amount in sorted(wanted.items()):
            used, capacity = self._used.get(name, 0), self.capacity.get(name, 0)
            if amount and used + amount > capacity:
                return _out_of(name, amount, used, capacity)
        self.hold(pod)
        return None

    def hold(self, pod: Pod) -> None:
        """Count a pod that already runs here."""
        if pod.uid in self._held:
            return
        wanted = requests(pod)
        self._held[pod.uid] = _Held(wanted, self._free_gpus(wanted.get(GPU_RESOURCE, 0) // 1000))
        self._used = _sum(self._used, wanted)

    def release(self, uid: str) -> None:
        """Free the resources of a pod."""
        held = self._held.pop(uid, None)
        if held is not None:
            self._used = _sum(self._used, {name: -amount for name, amount in held.amounts.items()})

    def gpus(self, uid: str) -> list[str]:
        """The UUIDs of a pod's GPUs."""
        held = self._held.get(uid)
        return [gpu_uuid(self.node, index) for index in held.gpus] if held else []

    def _free_gpus(self, count: int) -> tuple[int, ...]:
        taken = {index for held in self._held.values() for index in held.gpus}
        installed = min(self.capacity.get(GPU_RESOURCE, 0) // 1000, _MOST_GPUS)
        free = (index for index in range(installed) if index not in taken)
        return tuple(islice(free, min(count, installed)))


def _out_of(name: str, amount: int, used: int, capacity: int) -> tuple[str, str]:
    # Kubelets count CPU in thousandths and everything else in units.
    unit = 1 if name == "cpu" else 1000
    message = (
        f"Pod was rejected: Node didn't have enough resource: {name}, requested: {amount // unit}, "
        f"used: {used // unit}, capacity: {capacity // unit}"
    )
    return f"OutOf{name}", message
