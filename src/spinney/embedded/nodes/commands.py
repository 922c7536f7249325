"""Commands to simulated nodes: fail, fall silent, drain, disappear, return."""

from __future__ import annotations

import asyncio

from spinney.api.core import Node, Pod
from spinney.api.labels import NODE_STATE
from spinney.api.meta import Json
from spinney.embedded.nodes.node import NOT_READY, UNREACHABLE
from spinney.kube.client.client import Client
from spinney.kube.errors import NotFound, TooManyRequests

_EVICTION_RETRY_SECONDS = 5.0


class NodeCommands:
    """What an operator, a test or a fault injector can do to a node. All of it can be done with kubectl, too."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def fail(self, name: str) -> None:
        """The kubelet reports that it is not ready; its pods stand still."""
        await self._pretend(name, NOT_READY)

    async def silence(self, name: str) -> None:
        """The kubelet is not heard of any more; the node turns Unknown after the usual grace."""
        await self._pretend(name, UNREACHABLE)

    async def recover(self, name: str) -> None:
        """The kubelet works again."""
        await self._pretend(name, None)

    async def cordon(self, name: str) -> None:
        """No new pods."""
        await self._client.patch(Node, name, {"spec": {"unschedulable": True}})

    async def uncordon(self, name: str) -> None:
        """New pods again."""
        await self._client.patch(Node, name, {"spec": {"unschedulable": None}})

    async def drain(self, name: str) -> None:
        """Cordon, and evict every pod; waits for disruption budgets as long as it takes."""
        await self.cordon(name)
        pods = await self._client.list(Pod, fields=f"spec.nodeName={name}")
        await asyncio.gather(*(self._evict(pod) for pod in pods.items))

    async def remove(self, name: str) -> Json:
        """The machine is gone; what is returned brings it back through `restore`."""
        node = await self._client.get(Node.resource, name)
        await self._client.delete(Node, name)
        return node

    async def restore(self, node: Json) -> None:
        """A machine that was removed registers again."""
        kept = {key: node["metadata"].get(key) for key in ("name", "labels", "annotations")}
        annotations = {key: value for key, value in (kept["annotations"] or {}).items() if key != NODE_STATE}
        taints = [taint for taint in node["spec"].get("taints", []) if "node.kubernetes.io" not in taint["key"]]
        status = {key: node["status"][key] for key in ("capacity", "allocatable") if key in node["status"]}
        metadata = {**kept, "annotations": annotations}
        await self._client.create(Node.resource, {"metadata": metadata, "spec": {"taints": taints}, "status": status})

    async def _pretend(self, name: str, state: str | None) -> None:
        await self._client.patch(Node, name, {"metadata": {"annotations": {NODE_STATE: state}}})

    async def _evict(self, pod: Pod) -> None:
        metadata = {"name": pod.name, "namespace": pod.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        while True:
            try:
                await self._client.post(Pod, pod.key, "eviction", body)
            except TooManyRequests:
                await asyncio.sleep(_EVICTION_RETRY_SECONDS)
            except NotFound:
                return
            else:
                return
