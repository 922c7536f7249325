"""Resource slices: the devices of simulated nodes, as DRA drivers would publish them."""

from __future__ import annotations

from spinney.api.core import Node
from spinney.api.labels import GPU_RESOURCE, NODE_GPU_COUNT, NODE_GPU_MEMORY
from spinney.api.meta import Json, Key
from spinney.api.numbers import whole_number
from spinney.api.owners import controller_reference
from spinney.api.resource import ResourceSlice
from spinney.embedded.controllers.writes import create_once
from spinney.embedded.nodes.capacity import gpu_uuid
from spinney.embedded.nodes.profile import is_simulated
from spinney.kube.controllers.controller import Controller
from spinney.kube.runtime import Runtime

GPU_DRIVER = "gpu.nvidia.com"
DOMAIN_DRIVER = "compute-domain.nvidia.com"
CHANNELS = 4
# The API's limit per slice.
_MOST_DEVICES = 128


def plan_slices(node: Node) -> list[Json]:
    """The slices of a node: its GPUs where no device plugin offers them, and the channels of compute domains."""
    labels = node.metadata.labels
    count = min(whole_number(labels.get(NODE_GPU_COUNT, "")) or 0, _MOST_DEVICES)
    if not count or not is_simulated(node.metadata.annotations):
        return []
    slices = [_slice(node, DOMAIN_DRIVER, [_channel(index) for index in range(CHANNELS)])]
    if GPU_RESOURCE not in node.status.allocatable:
        slices.append(_slice(node, GPU_DRIVER, [_gpu(node, index) for index in range(count)]))
    return slices


def _slice(node: Node, driver: str, devices: list[Json]) -> Json:
    return {
        "metadata": {"name": f"{node.name}-{driver}", "ownerReferences": [controller_reference(node)]},
        "spec": {
            "driver": driver,
            "nodeName": node.name,
            "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _gpu(node: Node, index: int) -> Json:
    labels = node.metadata.labels
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "index": {"int": index},
            "uuid": {"string": gpu_uuid(node.name, index)},
            "productName": {"string": labels.get("nvidia.com/gpu.product", "GPU")},
        },
        "capacity": {"memory": {"value": f"{labels.get(NODE_GPU_MEMORY, '0')}Mi"}},
    }


def _channel(index: int) -> Json:
    return {"name": f"channel-{index}", "attributes": {"type": {"string": "channel"}, "id": {"int": index}}}


class ResourceSlices:
    """Publishes the slices of every simulated node, which owns them."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._nodes = runtime.caches.of(Node)
        self._slices = runtime.caches.of(ResourceSlice)
        self.controller = Controller("resource-slices", runtime, self._reconcile)
        self.controller.watch(self._nodes, when=lambda change: change.old is None)
        self.controller.watch(
            self._slices, lambda change: [("", change.object.spec.node_name)], when=lambda change: change.new is None
        )

    async def _reconcile(self, key: Key) -> None:
        node = self._nodes.get(key[1])
        for wanted in plan_slices(node) if node else ():
            if self._slices.get(wanted["metadata"]["name"]) is None:
                await create_once(self._client, ResourceSlice, wanted)
