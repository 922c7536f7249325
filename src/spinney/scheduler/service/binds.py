"""Write BindRequests: all of a gang's, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import structlog

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Json, Key, convert
from spinney.api.owners import reference
from spinney.kube.client.client import Client
from spinney.kube.client.flow import Priority
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, ApiError, Conflict, ConnectionLost, NotFound
from spinney.kube.runtime import Runtime
from spinney.scheduler.intake.numa_zones import predicted
from spinney.scheduler.plan import Decision
from spinney.scheduler.service.bind_backoff import BindBackoff
from spinney.scheduler.service.device_claims import DeviceClaims, NoDevices
from spinney.scheduler.service.intentions import Intentions
from spinney.scheduler.service.metrics import BINDING
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.views import Views
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import GpuRequest

_log = structlog.get_logger("spinney.scheduler")

# How often the binder tries a bind again before it gives up.
_BACKOFF_LIMIT = 3
_MOST_AT_ONCE = 128


class Binds:
    """Writes BindRequests; if a write fails, the gang's pods are scheduled again."""

    def __init__(
        self,
        runtime: Runtime,
        shard: Shard,
        state: State,
        views: Views,
        *,
        intentions: Intentions,
        backoff: BindBackoff,
        claims: DeviceClaims | None,
    ) -> None:
        self._client: Client = runtime.client
        self._shard = shard
        self._views = views
        self._intentions = intentions
        self._backoff = backoff
        self._claims = claims
        self._state = state
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._events = Recorder(runtime.client, runtime.clock, shard.scheduler_name)

    def intend(self, decisions: Sequence[Decision]) -> list[Json]:
        """Build the requests of one gang; from now on the state counts its pods as placed."""
        uid = self._client.chance.uid()
        keys = [self._pod_key(decision) for decision in decisions]
        bodies = []
        for key, decision in zip(keys, decisions, strict=True):
            pod = self._views.pods.get(key)
            body = self._request(pod, decision, uid, len(decisions)) if pod is not None else None
            if body is None:
                self._forget_claims(keys)
                return []
            bodies.append(body)
        for key, body in zip(keys, bodies, strict=True):
            self._intentions.bind(key, convert(BindRequest, body))
        return bodies

    def _pod_key(self, decision: Decision) -> Key:
        spec = self._state.tasks[decision.task].spec
        return spec.namespace, spec.name

    def _request(self, pod: Pod, decision: Decision, uid: str, members: int) -> Json | None:
        """The request for one pod; None if the node's devices do not suffice for its claims."""
        gpu = self._state.tasks[decision.task].spec.gpu
        spec: Json = {
            "podName": pod.name,
            "selectedNode": decision.node,
            "receivedResourceType": reasons.FRACTION if decision.gpu_groups else reasons.REGULAR,
            "receivedGPU": self._received(gpu, decision),
            "backoffLimit": _BACKOFF_LIMIT,
        }
        if decision.gpu_groups:
            spec["selectedGPUGroups"] = list(decision.gpu_groups)
        if decision.zones:
            spec["predictedNUMAZones"] = predicted(decision.zones)
        if self._claims is not None:
            try:
                spec |= self._claims.allocate(pod, decision.node)
            except NoDevices as problem:
                self._backoff.add(pod.key, pod.uid, decision.node)
                self._events.event(pod, "Warning", reasons.UNSCHEDULABLE, str(problem))
                return None
        pool = {self._shard.pool_label: self._shard.pool} if self._shard.pool else {}
        metadata = {
            "name": pod.name,
            "namespace": pod.namespace,
            "labels": {labels.BIND_SELECTED_NODE: decision.node, **pool},
            "annotations": {labels.DECISION: uid, labels.DECISION_MEMBERS: str(members)},
            "ownerReferences": [reference(pod)],
        }
        return {"metadata": metadata, "spec": spec}

    def _received(self, gpu: GpuRequest, decision: Decision) -> Json:
        """How many GPUs a pod gets, and how much of each."""
        if not decision.gpu_groups:
            return {"count": gpu.whole, "portion": f"{float(bool(gpu.whole)):.2f}"}
        portion = gpu.portion
        if gpu.memory:
            row = self._state.nodes.rows[decision.node]
            portion = -(-gpu.memory * 100 // int(self._state.nodes.gpu_memory[row])) / 100
        return {"count": gpu.devices, "portion": f"{portion:.2f}"}

    def _forget_claims(self, pods: Iterable[Key]) -> None:
        for key in pods:
            pod = self._views.pods.get(key)
            if pod is not None and self._claims is not None:
                self._claims.forget(pod)

    async def bind(self, bodies: list[Json]) -> None:
        """Write all requests of a decision; if one fails, delete the others."""
        written = await asyncio.gather(*(self._create(body) for body in bodies))
        if all(written):
            return
        # What cannot be deleted now is found among the partial decisions.
        await asyncio.gather(*(self._withdraw(body) for body, done in zip(bodies, written, strict=True) if done))
        for body in bodies:
            self._intentions.withdraw_bind(_key(body))
        self._forget_claims(map(_key, bodies))

    async def bind_directly(self, bodies: list[Json]) -> None:
        """Bind pods of kube-scheduler, which the binder does not serve."""
        await asyncio.gather(*(self._bind_one(body) for body in bodies))

    async def _bind_one(self, body: Json) -> None:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": body["spec"]["selectedNode"]}
        uid = body["metadata"]["ownerReferences"][0]["uid"]
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid}, "target": target}
        async with self._slots:
            try:
                await self._client.post(Pod, (namespace, name), "binding", binding)
            except (ApiError, ConnectionLost) as error:
                _log.warning("binding.failed", namespace=namespace, name=name, error=str(error))
                self._intentions.withdraw_bind((namespace, name))

    async def _create(self, body: Json) -> bool:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        loop = asyncio.get_running_loop()
        async with self._slots:
            started = loop.time()
            try:
                await self._remove_leftover((namespace, name))
                # As urgent as a pod's own binding.
                async with self._client.turn(Priority.POD):
                    await self._client.create(BindRequest, body, namespace)
                BINDING.observe(1000 * (loop.time() - started))
            except AlreadyExists:
                _log.info("bindrequest.exists", namespace=namespace, name=name)
                return False
            except (ApiError, ConnectionLost) as error:
                _log.warning("bindrequest.failed", namespace=namespace, name=name, error=str(error))
                return False
        return True

    async def _remove_leftover(self, key: Key) -> None:
        """Delete a request for an older pod of the same name, or one that failed."""
        old = self._views.requests.get(key)
        if old is not None:
            await self.remove(old)

    async def remove(self, request: BindRequest) -> None:
        """Delete a request by UID, so that a newer one of the same name stays."""
        await self._delete(request.key, request.uid)

    async def _withdraw(self, body: Json) -> None:
        await self._delete(_key(body))

    async def _delete(self, key: Key, uid: str = "") -> None:
        try:
            await self._client.delete(BindRequest, key, uid=uid)
        except (NotFound, Conflict):
            return
        except (ApiError, ConnectionLost) as error:
            _log.warning("bindrequest.left", namespace=key[0], name=key[1], error=str(error))


def _key(body: Json) -> Key:
    return body["metadata"]["namespace"], body["metadata"]["name"]
