"""Simulated kubelets: one process that runs the pods of every simulated node."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
import structlog

from spinney.api.core import Container, Node, Pod
from spinney.api.labels import GPU_GROUP, GPU_RESOURCE, RESERVED_GPU
from spinney.api.meta import Key, ObjectMeta
from spinney.embedded.controllers.writes import BY_NODE, node_name
from spinney.embedded.nodes.behaviour import BehaviourError
from spinney.embedded.nodes.capacity import NodeCapacity, requests
from spinney.embedded.nodes.node import has_kubelet, host_address
from spinney.embedded.nodes.pod_run import TERMINAL, PodRun
from spinney.embedded.nodes.references import references
from spinney.embedded.nodes.stages import TIMER_SLACK
from spinney.embedded.nodes.status import status_patch
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.writes import Writes
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

# A program that an init container really runs: it gets the kubelet's client and returns an exit code.
Program = Callable[[Client, Pod, Container], Awaitable[int]]

_CONCURRENCY = 32
_PROGRAM_RETRY_SECONDS = 10.0
# How often a pod with a missing ConfigMap or Secret is checked.
_REFERENCE_RETRY_SECONDS = 2.0
# In place of the version that a report in flight will create.
_REPORTING = "reporting"
_log = structlog.get_logger("spinney.kubelet")


class Kubelets:
    """Starts, stops and reports every pod that is bound to a simulated node."""

    def __init__(self, runtime: Runtime, programs: Mapping[str, Program] | None = None) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._programs = dict(programs or {})
        self._pods = runtime.caches.of(Pod)
        self._nodes = runtime.caches.of(Node)
        self._runs: dict[Key, PodRun] = {}
        self._capacities: dict[str, NodeCapacity] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._addresses = itertools.count(1)
        self._recorder = Recorder(runtime.client, runtime.clock, "kubelet")
        self._pods.index(BY_NODE, node_name)
        self.controller = Controller("kubelets", runtime, self._reconcile, _CONCURRENCY)
        self.controller.watch(self._nodes, self._pods_of, when=_kubelet_changed)
        self.controller.watch(self._pods, when=lambda change: bool(change.object.spec.node_name))

    @property
    def writes(self) -> Writes:
        """The writes so far, for tests of write budgets."""
        return self._client.writes

    async def run(self) -> None:
        """Run the pods of all nodes until cancelled."""
        try:
            await self.controller.run()
        finally:
            for task in self._tasks:
                task.cancel()

    def gpus(self, pod: Pod) -> list[str]:
        """The UUIDs of the GPUs that a pod holds."""
        capacity = self._capacities.get(pod.spec.node_name)
        return capacity.gpus(pod.uid) if capacity else []

    def _pods_of(self, change: Change[Node]) -> Iterable[Key]:
        return [pod.key for pod in self._pods.by(BY_NODE, change.object.name)]

    async def _reconcile(self, key: Key) -> After | None:
        pod = self._pods.get(key)
        run = self._runs.get(key)
        if run is not None and (pod is None or pod.uid != run.uid):
            self._forget(key, run)
            run = None
        if pod is None or not pod.spec.node_name:
            return None
        node = self._nodes.get(pod.spec.node_name)
        if node is None or not has_kubelet(node):
            return None
        try:
            if pod.metadata.deletion_timestamp is not None:
                return await self._stop(pod, run)
            if pod.status.phase in TERMINAL:
                self._capacity(node).release(pod.uid)
                return None
            return await self._run_pod(pod, node, run or self._admit(key, pod, node))
        except NotFound:
            # Gone while we wrote; the watch will say so.
            return None

    async def _run_pod(self, pod: Pod, node: Node, run: PodRun) -> After | None:
        now = self._clock.now()
        if pod.metadata.resource_version == run.reported and now.timestamp() < run.wakes - TIMER_SLACK:
            return After(run.wakes - now.timestamp()) if run.wakes < math.inf else None
        waits = await self._lacks_references(pod, run)
        now = self._clock.now()
        for container in run.advance(now.timestamp()) if not waits else ():
            self._start_program(pod, container)
        patch = status_patch(pod, run, host_address(node), now)
        if patch is not None:
            run.reported = _REPORTING
            pod = await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")
            # Unless something happened while the report was in flight: that is reported next.
            if run.reported == _REPORTING and not waits:
                run.reported = pod.metadata.resource_version
        if run.phase in TERMINAL:
            self._capacity(node).release(pod.uid)
        elif run.phase == "Running":
            await self._annotate_gpu(pod)
        wait = run.wakes - now.timestamp() if not waits else _REFERENCE_RETRY_SECONDS
        return After(max(wait, TIMER_SLACK)) if wait < math.inf else None

    async def _lacks_references(self, pod: Pod, run: PodRun) -> bool:
        """Whether a pod cannot start because a ConfigMap or Secret is missing."""
        if run.complete or run.rejected:
            return False
        for kind, name in references(pod):
            if await self._client.find(kind, (pod.namespace, name)) is None:
                message = f'{kind.resource.kind.lower()} "{name}" not found'
                self._recorder.event(pod, "Warning", "FailedMount", message)
                return True
        run.complete = True
        return False

    def _admit(self, key: Key, pod: Pod, node: Node) -> PodRun:
        """Admit a new pod, or resume one that ran before this process started."""
        now = self._clock.now().timestamp()
        try:
            run = PodRun(pod, now, self._next_address(), frozenset(self._program_names(pod)))
        except BehaviourError as error:
            plain = msgspec.structs.replace(pod, metadata=ObjectMeta(name=pod.name, uid=pod.uid))
            run = PodRun(plain, now, self._next_address())
            run.reject("InvalidAnnotation", str(error), now)
            self._runs[key] = run
            return run
        capacity = self._capacity(node)
        if pod.status.start_time is not None:
            capacity.hold(pod)
            run.resume(pod)
        else:
            refused = capacity.admit(pod)
            if refused is not None:
                run.reject(*refused, now)
        self._runs[key] = run
        return run

    async def _stop(self, pod: Pod, run: PodRun | None) -> After | None:
        """End a pod within its grace period and delete it."""
        grace = pod.metadata.deletion_grace_period_seconds or 0
        now = self._clock.now()
        if run is not None and grace and pod.status.phase not in TERMINAL:
            run.stopping = run.stopping or now.timestamp()
            left = run.stopping + min(run.stop_after, grace) - now.timestamp()
            if left > TIMER_SLACK:
                return After(left)
        # The containers have ended: their resources are free, even if a finalizer keeps the pod.
        if capacity := self._capacities.get(pod.spec.node_name):
            capacity.release(pod.uid)
        if pod.metadata.finalizers and pod.status.phase not in TERMINAL and run is not None:
            await self._report_end(pod, run)
        if grace or not pod.metadata.finalizers:
            await self._client.delete(Pod, pod.key, uid=pod.uid, grace_seconds=0)
        return None

    async def _report_end(self, pod: Pod, run: PodRun) -> None:
        """Report how a pod ended, for the owner of a finalizer on it."""
        now = self._clock.now()
        run.advance(now.timestamp())
        run.kill(now.timestamp())
        node = self._nodes.get(pod.spec.node_name)
        patch = status_patch(pod, run, host_address(node) if node else "", now)
        if patch is not None:
            await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")

    async def _annotate_gpu(self, pod: Pod) -> None:
        """Annotate a reservation pod with its GPU, as the program in it would."""
        if GPU_GROUP not in pod.metadata.labels or RESERVED_GPU in pod.metadata.annotations:
            return
        devices = self.gpus(pod)
        if requests(pod).get(GPU_RESOURCE) and devices:
            annotations = {RESERVED_GPU: devices[0]}
            await self._client.patch(Pod, pod.key, {"metadata": {"annotations": annotations}})

    def _start_program(self, pod: Pod, container: Container) -> None:
        task = asyncio.create_task(self._program(pod, container), name=f"{pod.namespace}/{pod.name} {container.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _program(self, pod: Pod, container: Container) -> None:
        """Run an init container's program, again after failures, until it succeeds or its pod is gone."""
        key = pod.key
        program = self._programs[self._program_of(container)]
        while True:
            try:
                code = await program(self._client, pod, container)
            except Exception:
                _log.exception("program.failed", pod=pod.name, namespace=pod.namespace, container=container.name)
                code = 1
            run = self._runs.get(key)
            if run is None or run.uid != pod.uid:
                return
            again = run.program_done(container.name, code, self._clock.now().timestamp())
            self.controller.enqueue(*key)
            if not again:
                return
            await asyncio.sleep(_PROGRAM_RETRY_SECONDS)

    def _program_names(self, pod: Pod) -> Iterable[str]:
        return (container.name for container in pod.spec.init_containers if self._program_of(container))

    def _program_of(self, container: Container) -> str:
        """The key of the program that a container's command line begins with."""
        words = [*container.command, *container.args]
        line = " ".join([words[0].rpartition("/")[2], *words[1:]]) if words else ""
        return next((name for name in self._programs if line == name or line.startswith(f"{name} ")), "")

    def _capacity(self, node: Node) -> NodeCapacity:
        capacity = self._capacities.setdefault(node.name, NodeCapacity(node.name))
        capacity.resize(node)
        return capacity

    def _forget(self, key: Key, run: PodRun) -> None:
        del self._runs[key]
        capacity = self._capacities.get(run.node)
        if capacity is not None:
            capacity.release(run.uid)

    def _next_address(self) -> str:
        """Pod addresses are given out once, from 10.128.0.0/9."""
        number = next(self._addresses)
        return f"10.{128 + (number >> 16) % 128}.{number >> 8 & 255}.{number & 255}"


def _kubelet_changed(change: Change[Node]) -> bool:
    before = change.old is not None and has_kubelet(change.old)
    after = change.new is not None and has_kubelet(change.new)
    return before != after
