"""Commands to simulated nodes: fail, stop reporting, drain, remove, restore."""

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
    """What an administrator or a test can do to a node; kubectl can do all of it as well."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def fail(self, name: str) -> None:
        """Make the node NotReady; its pods do not change."""
        await self._set_state(name, NOT_READY)

    async def stop_reporting(self, name: str) -> None:
        """Stop the kubelet's reports; the node becomes Unknown after the grace period."""
        await self._set_state(name, UNREACHABLE)

    async def recover(self, name: str) -> None:
        """Let the kubelet report again."""
        await self._set_state(name, None)

    async def cordon(self, name: str) -> None:
        """Make the node unschedulable."""
        await self._client.patch(Node, name, {"spec": {"unschedulable": True}})

    async def uncordon(self, name: str) -> None:
        """Make the node schedulable."""
        await self._client.patch(Node, name, {"spec": {"unschedulable": None}})

    async def drain(self, name: str) -> None:
        """Cordon the node and evict every pod, waiting for disruption budgets."""
        await self.cordon(name)
        pods = await self._client.list(Pod, fields=f"spec.nodeName={name}")
        await asyncio.gather(*(self._evict(pod) for pod in pods.items))

    async def remove(self, name: str) -> Json:
        """Delete the node; the result is what `restore` needs."""
        node = await self._client.get(Node.resource, name)
        await self._client.delete(Node, name)
        return node

    async def restore(self, node: Json) -> None:
        """Register a removed node again."""
        kept = {key: node["metadata"].get(key) for key in ("name", "labels", "annotations")}
        annotations = {key: value for key, value in (kept["annotations"] or {}).items() if key != NODE_STATE}
        taints = [taint for taint in node["spec"].get("taints", []) if "node.kubernetes.io" not in taint["key"]]
        status = {key: node["status"][key] for key in ("capacity", "allocatable") if key in node["status"]}
        metadata = {**kept, "annotations": annotations}
        await self._client.create(Node.resource, {"metadata": metadata, "spec": {"taints": taints}, "status": status})

    async def _set_state(self, name: str, state: str | None) -> None:
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
