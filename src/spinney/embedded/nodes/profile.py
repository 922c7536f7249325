"""Profiles of simulated nodes: their number, capacity and topology."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from spinney.api.labels import GPU_RESOURCE, KWOK_NODE, NODE_GPU_COUNT, NODE_GPU_MEMORY, SIMULATED
from spinney.api.meta import Json
from spinney.api.quantity import QuantityError, exact

# KWOK's value for a simulated node.
KWOK_FAKE = "fake"

# `nvidia.com/gpu.memory` of an 80 GB device, in MiB.
GPU_MEMORY_MIB = 81920


@dataclass(frozen=True)
class Profile:
    """Nodes of one kind, assigned in order to racks, blocks and zones."""

    count: int = 64
    gpus: int = 8
    racks: int = 8
    blocks: int = 2
    zones: int = 1
    cpu: str = "128"
    memory: str = "1Ti"
    pods: int = 250
    gpu_memory_mib: int = GPU_MEMORY_MIB
    gpu_product: str = "NVIDIA-H100-80GB-HBM3"
    # Whether a device plugin counts GPUs, or resource slices list them (DRA).
    devices: Literal["plugin", "dra"] = "plugin"
    prefix: str = "node"
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()

    def __post_init__(self) -> None:
        for name in ("count", "gpus"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be 0 or more")
        for name in ("racks", "blocks", "zones"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be 1 or more")
        for name in ("cpu", "memory"):
            text = getattr(self, name)
            try:
                amount = exact(text)
            except QuantityError as error:
                raise ValueError(f"{name}: {error}") from error
            if amount <= 0:
                raise ValueError(f"{name} is {text}: it must be more than 0")

    def nodes(self) -> list[Json]:
        """The manifests of all nodes."""
        return [self.node(index) for index in range(self.count)]

    def name(self, index: int) -> str:
        """The name of a node; names sort by index."""
        return f"{self.prefix}-{index:0{max(2, len(str(self.count - 1)))}d}"

    def node(self, index: int) -> Json:
        """The manifest of one node, with its status."""
        name = self.name(index)
        capacity = self.capacity
        spec: Json = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {**self._machine_labels(), **self._place_labels(index, name), **self.labels},
                "annotations": {SIMULATED: "true"},
            },
            "spec": spec,
            "status": {"capacity": capacity, "allocatable": dict(capacity)},
        }

    @property
    def capacity(self) -> dict[str, str]:
        """The resources of each node."""
        capacity = {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": "1Ti", "pods": str(self.pods)}
        if self.gpus and self.devices == "plugin":
            capacity[GPU_RESOURCE] = str(self.gpus)
        return capacity

    def _machine_labels(self) -> dict[str, str]:
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        if self.gpus:
            labels |= {
                NODE_GPU_COUNT: str(self.gpus),
                NODE_GPU_MEMORY: str(self.gpu_memory_mib),
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": self.gpu_product,
            }
        return labels

    def _place_labels(self, index: int, name: str) -> dict[str, str]:
        """The labels of zone, block, rack and host, under both usual prefixes."""
        rack = index * self.racks // self.count
        place = {
            "zone": f"zone-{rack * self.zones // self.racks}",
            "block": f"block-{rack * self.blocks // self.racks}",
            "rack": f"rack-{rack}",
            "hostname": name,
        }
        return {
            f"{family}/{level}": value
            for family in ("kubernetes.io", "topology.kubernetes.io")
            for level, value in place.items()
        }


def is_simulated(annotations: dict[str, str]) -> bool:
    """Whether a node's annotations mark it as simulated."""
    return annotations.get(SIMULATED) == "true" or annotations.get(KWOK_NODE) == KWOK_FAKE
