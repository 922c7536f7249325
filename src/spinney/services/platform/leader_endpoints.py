"""Endpoints of schedulers with several replicas: their Service leads to the pod that holds the lease."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.coordination import Lease
from spinney.api.core import Pod
from spinney.api.discovery import EndpointSlice
from spinney.api.kaiconfig import Config, ConfigSpec
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_reference
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.desired import Drift, Wanted
from spinney.kube.runtime import Component, Runtime
from spinney.kube.writer import Writer
from spinney.services.platform.ports import ports_of
from spinney.services.platform.processes import Process, namespace_of, plan_scheduler
from spinney.services.platform.shard_config import ShardError, check_pool

# Shorter than a change of leader takes; a watch on all leases of a cluster would cost more.
_LOOK_AGAIN_SECONDS = 5.0


def slice_name(process: Process) -> str:
    """The name of the EndpointSlice of a scheduler's Service."""
    return f"{process.name}-leader"


def plan_slice(process: Process, shard: SchedulingShard, config: ConfigSpec, leader: Json | None) -> Json:
    """The EndpointSlice with the leader; empty while there is none."""
    endpoints = []
    address = str((leader or {}).get("status", {}).get("podIP", ""))
    if leader is not None and address and "deletionTimestamp" not in leader["metadata"]:
        target = {"kind": "Pod", **{key: leader["metadata"][key] for key in ("namespace", "name", "uid")}}
        endpoints.append({"addresses": [address], "conditions": {"ready": True}, "targetRef": target})
    metrics = ports_of(process.component, config).metrics
    return {
        "apiVersion": EndpointSlice.resource.api_version,
        "kind": EndpointSlice.resource.kind,
        "metadata": {
            "name": slice_name(process),
            "namespace": namespace_of(config),
            "labels": {
                "kubernetes.io/service-name": process.name,
                "endpointslice.kubernetes.io/managed-by": labels.KAI_OPERATOR,
            },
            "ownerReferences": [controller_reference(shard)],
        },
        "addressType": "IPv6" if ":" in address else "IPv4",
        "ports": [{"name": metrics.name, "port": metrics.target, "protocol": "TCP"}],
        "endpoints": endpoints,
    }


class Leaders:
    """Writes the endpoints of schedulers by the holders of their leases."""

    def __init__(self, runtime: Runtime, scheduler: Component) -> None:
        self._client = runtime.client
        self._writer = Writer(runtime.client)
        self._scheduler = scheduler
        self._configs = runtime.caches.of(Config)
        self._shards = runtime.caches.of(SchedulingShard)
        self.controller = Controller("scheduler-leaders", runtime, self.reconcile, concurrency=1)
        self.controller.watch(self._shards).watch(self._configs, self._all_shards)

    def _all_shards(self, change: Change[Config]) -> list[Key]:
        return [("", shard.name) for shard in self._shards]

    async def reconcile(self, key: Key) -> After | None:
        """Write the endpoints of one scheduler."""
        shard, config = self._shards.get(key[1]), self._configs.get(labels.KAI_CONFIG)
        if shard is None or config is None:
            return None
        try:
            check_pool(shard, self._shards)
            process = plan_scheduler(shard, config.spec)
        except ShardError:
            # The running scheduler stays; the shard's condition says what is wrong.
            return After(_LOOK_AGAIN_SECONDS)
        if process is None:
            return None
        if process.replicas < 2:
            await self._remove(slice_name(process), namespace_of(config.spec))
            return None
        leader = await self._leader(process, namespace_of(config.spec))
        body = plan_slice(process, shard, config.spec, leader)
        await self._writer.ensure(Wanted(EndpointSlice.resource, body, Drift.APPLY))
        return After(_LOOK_AGAIN_SECONDS)

    async def _leader(self, process: Process, namespace: str) -> Json | None:
        """The pod that holds the lease; its name is the part before the holder's first underscore."""
        assert isinstance(process.settings, SchedulerFile)
        assert self._scheduler.lease is not None
        lease = await self._client.find(Lease.resource, (namespace, self._scheduler.lease(process.settings)))
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
        name = str(holder).partition("_")[0]
        return await self._client.find(Pod.resource, (namespace, name)) if name else None

    async def _remove(self, name: str, namespace: str) -> None:
        if (endpoint_slice := await self._client.find(EndpointSlice, (namespace, name))) is not None:
            await self._writer.delete(endpoint_slice)
