"""Faults outside the network: users who act at the worst moment, nodes that flap, webhooks that are down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from spinney.api.batch import Job
from spinney.api.core import Node
from spinney.api.grove import PodCliqueSet
from spinney.api.labels import NODE_STATE
from spinney.api.pod import Pod
from spinney.kube.errors import ApiError
from spinney.sim.faults.world import World

_FLAP_SECONDS = 30.0
_WEBHOOKS_DOWN_SECONDS = 10.0
_PATIENCE = 60


class Disturbances:
    """Starts such faults while everything else goes on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether what a user did may have changed how everything ends.
        self.changed_outcome = False

    def __call__(self, what: str, process: str) -> None:
        """Start a fault of a storm."""
        if what == "second_leader":
            self._world.processes.second_leader(process)
        elif what == "webhooks":
            self._world.network.tell("FAULT", f"webhooks are down for {_WEBHOOKS_DOWN_SECONDS:g} s")
            self._world.network.webhooks_down_until = asyncio.get_running_loop().time() + _WEBHOOKS_DOWN_SECONDS
        else:
            self.changed_outcome = True
            acts = (self._flap,) if what == "flap" else (self._delete_pod, self._delete_workload, self._scale)
            self._start(acts[int(self._world.network.chance.random() * len(acts))])

    def user(self, number: int) -> None:
        """Let a user act; in which way follows from the number of the write."""
        self.changed_outcome = True
        self._start((self._delete_pod, self._scale, self._delete_workload, self._flap)[number // 12 % 4])

    def _start(self, act: Callable[[], Awaitable[None]]) -> None:
        async def patiently() -> None:
            for _ in range(_PATIENCE):
                try:
                    await act()
                except ApiError as error:
                    # While a webhook is down users try again.
                    if "failed calling webhook" in str(error):
                        await asyncio.sleep(1.0)
                        continue
                return

        task = asyncio.create_task(patiently(), name="user")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete_pod(self) -> None:
        pods = (await self._world.client.list(Pod, "default")).items
        if pods:
            newest = max(pods, key=lambda pod: int(pod.metadata.resource_version))
            self._world.network.tell("FAULT", f"a user deletes pod {newest.name}")
            await self._world.client.delete(Pod, newest.key)

    async def _delete_workload(self) -> None:
        for kind in (PodCliqueSet, Job):
            for workload in (await self._world.client.list(kind, "default")).items[:1]:
                self._world.network.tell("FAULT", f"a user deletes {kind.__name__} {workload.name}")
                await self._world.client.delete(kind, workload.key, propagation="Background")
                return

    async def _scale(self) -> None:
        for pcs in (await self._world.client.list(PodCliqueSet, "default")).items[:1]:
            replicas = pcs.spec.replicas % 3 + 1
            self._world.network.tell("FAULT", f"a user scales {pcs.name} to {replicas}")
            await self._world.client.patch(PodCliqueSet, pcs.key, {"spec": {"replicas": replicas}})

    async def _flap(self) -> None:
        nodes = (await self._world.client.list(Node)).items
        node = nodes[int(self._world.network.chance.random() * len(nodes))]
        self._world.network.tell("FAULT", f"node {node.name} is not ready for {_FLAP_SECONDS:g} s")
        await self._annotate(node, "NotReady")
        await asyncio.sleep(_FLAP_SECONDS)
        with suppress(ApiError):
            await self._annotate(node, None)

    async def _annotate(self, node: Node, state: str | None) -> None:
        await self._world.client.patch(Node, node.name, {"metadata": {"annotations": {NODE_STATE: state}}})
