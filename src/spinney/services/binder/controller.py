"""Carries out BindRequests: many at once, and none before all requests of its decision exist."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
import structlog

from spinney.api import labels, reasons
from spinney.api.bindrequests import decision_of, is_final, is_for, retries
from spinney.api.conditions import find
from spinney.api.core import Node, Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Json, Key
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, ConnectionLost, NotFound
from spinney.kube.runtime import Runtime
from spinney.services.binder.bind import Bind, BindError, Finish, Step, carry_out
from spinney.services.binder.node_queues import NodeQueues

_log = structlog.get_logger("spinney.binder")

_BY_DECISION = "binder/decision"
_BY_POD = "binder/pod"
# Requests that wait cost nothing: only bindings in flight are limited.
_ALL_AT_ONCE = 1_000_000


class PodBinding:
    """The last step: binds the pod to its node, with annotations about what it received."""

    def __init__(self, client: Client, node_queues: NodeQueues, timeout_seconds: float) -> None:
        self._client = client
        self._node_queues = node_queues
        self._timeout = timeout_seconds

    def concerns(self, bind: Bind) -> bool:
        """Always."""
        return True

    async def do(self, bind: Bind) -> None:
        """Bind when it is the pod's turn on its node, within the timeout."""
        async with self._node_queues.turn(bind.target):
            try:
                async with asyncio.timeout(self._timeout):
                    await self._post(bind)
            except TimeoutError:
                raise ConnectionLost(f"binding pod {bind.pod.name}: no answer within {self._timeout:g} s") from None

    async def _post(self, bind: Bind) -> None:
        """Post the binding; the API server copies its annotations to the pod."""
        spec = bind.request.spec
        annotations = {labels.RECEIVED_RESOURCE_TYPE: spec.received_resource_type or reasons.REGULAR}
        if spec.predicted_numa_zones:
            annotations[labels.NUMA_PREDICTED] = msgspec.json.encode(spec.predicted_numa_zones).decode()
        body: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": bind.pod.name, "uid": bind.pod.uid, "annotations": annotations},
            "target": {"apiVersion": "v1", "kind": "Node", "name": bind.target},
        }
        await self._client.post(Pod, bind.pod.key, "binding", body)

    async def undo(self, bind: Bind) -> None:
        """Nothing to undo: a refused binding changes nothing."""

    async def bound_to(self, bind: Bind) -> str:
        """The node that the pod has by now."""
        pod = await self._client.find(Pod, bind.pod.key)
        return pod.spec.node_name if pod is not None and pod.uid == bind.pod.uid else ""


class Binder:
    """Watches BindRequests and carries them out."""

    def __init__(self, runtime: Runtime, steps: tuple[Step, ...], finish: Finish) -> None:
        self._client = runtime.client
        self._steps = steps
        self._finish = finish
        self._requests = runtime.caches.of(BindRequest)
        self._pods = runtime.caches.of(Pod)
        self._nodes = runtime.caches.of(Node)
        self._events = Recorder(runtime.client, runtime.clock, "binder")
        self._requests.index(_BY_DECISION, lambda request: (decision_of(request)[0],))
        self._requests.index(_BY_POD, lambda request: (f"{request.namespace}/{request.spec.pod_name}",))
        self.controller = Controller("binder", runtime, self.reconcile, concurrency=_ALL_AT_ONCE)
        self.controller.watch(self._requests, keys=self._complete)
        # A request may be seen before its pod: they come by different watches.
        self.controller.watch(self._pods, self._of_pod, when=_is_new)
        self.controller.wait_for(self._nodes)

    def _complete(self, change: Change[BindRequest]) -> Iterable[Key]:
        """The request; of a decision with several, all of them once the last one exists."""
        request = change.new
        if request is None:
            return ()
        decision, members = decision_of(request)
        if change.old is not None and change.old.spec == request.spec:
            # Our own status write must not end the pause after a failure.
            return ()
        if members <= 1:
            return (request.key,)
        siblings = self._requests.by(_BY_DECISION, decision)
        if len(siblings) < members:
            return ()
        return [sibling.key for sibling in siblings]

    def _of_pod(self, change: Change[Pod]) -> Iterable[Key]:
        requests = self._requests.by(_BY_POD, f"{change.object.namespace}/{change.object.name}")
        return [request.key for request in requests]

    async def reconcile(self, key: Key) -> After | None:
        """Carry out one request, or report why it fails."""
        namespace, name = key
        request = self._requests.get((namespace, name))
        if request is None or is_final(request) or request.metadata.deletion_timestamp is not None:
            return None
        decision, members = decision_of(request)
        if members > 1 and len(self._requests.by(_BY_DECISION, decision)) < members:
            return None
        pod = self._pods.get((namespace, request.spec.pod_name))
        if pod is None or not is_for(request, pod):
            # Not cached yet; or gone, or another pod of that name: then the garbage collector deletes the request.
            return None
        if pod.spec.node_name:
            await self._already_bound(request, pod)
            return None
        try:
            await self._bind(request, pod)
        except (BindError, ApiError, TimeoutError) as error:
            return await self._failed(request, pod, str(error) or type(error).__name__)
        await self._write_status(request, {"phase": "Succeeded", "reason": None})
        bound = find(pod.status.conditions, reasons.POD_BOUND)
        if request.status.failed_attempts or bound is not None:
            # An event only after a failure that was reported; otherwise the node says enough.
            self._events.event(pod, "Normal", reasons.BOUND, f"Pod bound to node {request.spec.selected_node}")
        if bound is not None and bound.status == "False":
            await self._mark(pod, "True", reasons.BOUND, f"bound to node {request.spec.selected_node}")
        return None

    async def _bind(self, request: BindRequest, pod: Pod) -> None:
        node = self._nodes.get(request.spec.selected_node)
        if node is None:
            raise BindError(f"node {request.spec.selected_node} is not there any more")
        if pod.metadata.deletion_timestamp is not None:
            raise BindError("the pod is being deleted")
        await carry_out(Bind(request, pod, node), self._steps, self._finish)

    async def _already_bound(self, request: BindRequest, pod: Pod) -> None:
        if pod.spec.node_name == request.spec.selected_node:
            await self._write_status(request, {"phase": "Succeeded", "reason": None})
            return
        reason = f"the pod is already on node {pod.spec.node_name}"
        final = max(retries(request), 1)
        await self._write_status(request, {"phase": "Failed", "reason": reason, "failedAttempts": final})

    async def _failed(self, request: BindRequest, pod: Pod, reason: str) -> After | None:
        attempts = request.status.failed_attempts + 1
        limit = max(retries(request), 1)
        _log.info("bind.failed", pod=pod.name, namespace=pod.namespace, reason=reason, attempt=attempts, limit=limit)
        await self._write_status(request, {"phase": "Failed", "reason": reason, "failedAttempts": attempts})
        message = f"binding to node {request.spec.selected_node} failed (attempt {attempts} of {limit}): {reason}"
        self._events.event(pod, "Warning", reasons.BINDING_ERROR, message)
        if attempts >= limit:
            await self._mark(pod, "False", reasons.BINDING_ERROR, reason)
            return None
        return After(2.0 ** (attempts - 1))

    async def _write_status(self, request: BindRequest, status: Json) -> None:
        try:
            await self._client.patch(BindRequest, request.key, {"status": status}, subresource="status")
        except NotFound:
            # The pod was deleted meanwhile, and the request with it.
            _log.debug("request.gone", name=request.name, namespace=request.namespace)

    async def _mark(self, pod: Pod, status: str, reason: str, message: str) -> None:
        condition = {"type": reasons.POD_BOUND, "status": status, "reason": reason, "message": message}
        try:
            await self._client.patch(
                Pod,
                pod.key,
                {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}},
                subresource="status",
                kind=Patch.STRATEGIC,
            )
        except NotFound:
            _log.debug("pod.gone", name=pod.name, namespace=pod.namespace)


def _is_new(change: Change[Pod]) -> bool:
    return change.new is not None and (change.old is None or change.old.uid != change.new.uid)
