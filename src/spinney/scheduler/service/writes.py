"""Carries a plan out: bind requests for whole gangs, evictions through the eviction API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.kai import BindRequest, PodGroup
from spinney.api.meta import Json, Key, convert
from spinney.api.owners import reference
from spinney.kube.client.client import Client
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, ApiError, Conflict, ConnectionLost, NotFound, TooManyRequests
from spinney.kube.runtime import Runtime
from spinney.scheduler.intake.numa_zones import predicted
from spinney.scheduler.service.feed import Feed
from spinney.scheduler.service.metrics import BINDING
from spinney.scheduler.state.specs import ZoneShares

_log = structlog.get_logger("spinney.scheduler")

# How often the binder tries a bind again before it gives up.
_BACKOFF_LIMIT = 3
_MOST_AT_ONCE = 128


@dataclass(frozen=True)
class Placement:
    """One pod of a decision: where it goes and what it gets."""

    pod: Key
    node: str
    gpu_groups: tuple[str, ...] = ()
    gpu_count: int = 0
    gpu_portion: float = 0.0
    zones: ZoneShares = ()


@dataclass(frozen=True)
class Eviction:
    """One pod that has to go, and for whom."""

    pod: Key
    action: str
    message: str
    for_group: Key | None = None


class Writes:
    """Everything the scheduler writes. A write that fails is taken back in the state by describing the pod anew."""

    def __init__(self, runtime: Runtime, feed: Feed) -> None:
        self._client: Client = runtime.client
        self._feed = feed
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._events = Recorder(runtime.client, runtime.clock, feed.shard.scheduler_name)

    def intend(self, placements: list[Placement]) -> list[Json]:
        """The requests of one decision; from now on the state counts them as placed."""
        decision = self._client.chance.uid()
        bodies = []
        for placement in placements:
            pod = self._feed.pods.get(placement.pod)
            body = self._request(pod, placement, decision, len(placements)) if pod is not None else None
            if body is None:
                self._give_up_claims(placements)
                return []
            bodies.append(body)
        for placement, body in zip(placements, bodies, strict=True):
            self._feed.intentions.binds[placement.pod] = convert(BindRequest, body)
            self._feed.mark("pod", placement.pod)
        return bodies

    def _request(self, pod: Pod, placement: Placement, decision: str, members: int) -> Json | None:
        """The request for one pod; None where the devices of its claims are not to be had on the node after all."""
        body = _bind_request(pod, placement, decision, members, self._feed)
        claims = self._feed.claims
        if claims is None:
            return body
        allocations = claims.decide(pod, placement.node) if pod.spec.resource_claims else []
        extended = claims.extend(pod, placement.node)
        if allocations is None or extended is None:
            self._feed.failures.add(placement.pod, pod.uid, placement.node)
            self._feed.mark("pod", placement.pod)
            message = f"node {placement.node} has too few devices left for the pod's claims; other nodes are tried"
            self._events.event(pod, "Warning", reasons.UNSCHEDULABLE, message)
            return None
        if allocations:
            body["spec"]["resourceClaimAllocations"] = allocations
        if extended:
            body["spec"]["extendedResourceClaimAllocation"] = extended
        return body

    def _give_up_claims(self, placements: list[Placement]) -> None:
        for placement in placements:
            pod = self._feed.pods.get(placement.pod)
            if pod is not None and self._feed.claims is not None:
                self._feed.claims.forget(pod)

    async def bind(self, bodies: list[Json]) -> None:
        """Write all requests of a decision, or none: where one cannot be written the others are taken back."""
        written = await asyncio.gather(*(self._create(body) for body in bodies))
        if all(written):
            return
        await asyncio.gather(*(self._withdraw(body) for body, done in zip(bodies, written, strict=True) if done))
        for body in bodies:
            key = (body["metadata"]["namespace"], body["metadata"]["name"])
            self._feed.intentions.binds.pop(key, None)
            self._feed.mark("pod", key)
        self._give_up_claims([Placement(_key(body), "") for body in bodies])

    async def bind_directly(self, bodies: list[Json]) -> None:
        """Bind pods that are not the binder's: those of kube-scheduler."""
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
                self._feed.intentions.binds.pop((namespace, name), None)
                self._feed.mark("pod", (namespace, name))

    async def _create(self, body: Json) -> bool:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        loop = asyncio.get_running_loop()
        async with self._slots:
            started = loop.time()
            try:
                await self._remove_leftover(namespace, name, body)
                await self._client.create(BindRequest, body, namespace)
                BINDING.observe(1000 * (loop.time() - started))
            except AlreadyExists:
                _log.info("bindrequest.exists", namespace=namespace, name=name)
                return False
            except (ApiError, ConnectionLost) as error:
                _log.warning("bindrequest.failed", namespace=namespace, name=name, error=str(error))
                return False
        return True

    async def _remove_leftover(self, namespace: str, name: str, body: Json) -> None:
        """A request for an older pod of the same name, or one that was given up, makes room for the new one."""
        old = self._feed.requests.get((namespace, name))
        if old is not None:
            await self.remove(old)

    async def remove(self, request: BindRequest) -> None:
        """Take away a request that is over: just this one, not a newer one of its name."""
        try:
            await self._client.delete(BindRequest, request.key, uid=request.uid)
        except (NotFound, Conflict):
            return

    async def _withdraw(self, body: Json) -> None:
        try:
            await self._client.delete(BindRequest, (body["metadata"]["namespace"], body["metadata"]["name"]))
        except (NotFound, ConnectionLost):
            return

    async def evict(self, evictions: list[Eviction]) -> bool:
        """Evict pods one after the other; the first refusal stops the rest, which keep running."""
        for number, eviction in enumerate(evictions):
            if await self._evict(eviction, len(evictions)):
                continue
            for spared in evictions[number:]:
                self._spare(spared)
            return False
        return True

    async def _evict(self, eviction: Eviction, together: int) -> bool:
        namespace, name = eviction.pod
        pod = self._feed.pods.get((namespace, name))
        if pod is None:
            return True
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            await self._client.post(Pod, (namespace, name), "eviction", body)
        except NotFound:
            return True
        except TooManyRequests as error:
            self._events.event(pod, "Normal", "EvictionRefused", f"a disruption budget keeps the pod: {error}")
            return False
        except (ApiError, ConnectionLost) as error:
            _log.warning("eviction.failed", namespace=namespace, name=name, error=str(error))
            return False
        group = self._feed.groups.get((namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")))
        if group is not None:
            self._events.event(group, "Normal", reasons.EVICT, eviction.message, _evictor(eviction, together))
        return True

    def _spare(self, eviction: Eviction) -> None:
        pod = self._feed.pods.get(eviction.pod)
        if pod is not None:
            self._feed.intentions.evictions.discard(pod.uid)
            self._feed.mark("pod", eviction.pod)

    async def annotate(self, group: PodGroup, annotations: dict[str, str | None]) -> None:
        """Write down when a group started, was evicted or fell below its minimum."""
        try:
            await self._client.patch(PodGroup, group.key, {"metadata": {"annotations": annotations}})
        except (NotFound, ConnectionLost) as error:
            _log.info("podgroup.annotate", namespace=group.namespace, name=group.name, error=str(error))


def _evictor(eviction: Eviction, together: int) -> dict[str, str]:
    """Who takes a pod's place, under upstream's names."""
    found = {labels.EVICTED_PODS: str(together), labels.EVICTOR_ACTION: eviction.action}
    if eviction.for_group is not None:
        namespace, name = eviction.for_group
        found |= {labels.EVICTOR_NAME: name, labels.EVICTOR_NAMESPACE: namespace}
    return found


def _bind_request(pod: Pod, placement: Placement, decision: str, members: int, feed: Feed) -> Json:
    found = {labels.BIND_SELECTED_NODE: placement.node}
    if feed.shard.pool:
        found[feed.shard.pool_label] = feed.shard.pool
    spec: Json = {
        "podName": pod.name,
        "selectedNode": placement.node,
        "receivedResourceType": reasons.FRACTION if placement.gpu_groups else reasons.REGULAR,
        "receivedGPU": {"count": placement.gpu_count, "portion": f"{placement.gpu_portion:.2f}"},
        "backoffLimit": _BACKOFF_LIMIT,
    }
    if placement.gpu_groups:
        spec["selectedGPUGroups"] = list(placement.gpu_groups)
    if placement.zones:
        spec["predictedNUMAZones"] = predicted(placement.zones)
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "labels": found,
            "annotations": {labels.DECISION: decision, labels.DECISION_MEMBERS: str(members)},
            "ownerReferences": [reference(pod)],
        },
        "spec": spec,
    }


def _key(body: Json) -> Key:
    return body["metadata"]["namespace"], body["metadata"]["name"]
