"""Pods of limited queues wait behind a gate while their queue is full, so that no autoscaler buys nodes for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import Queue
from spinney.api.meta import Json
from spinney.kube.cache import Cache, Change, Key
from spinney.kube.client import Patch
from spinney.kube.controller import Controller
from spinney.kube.errors import Invalid, NotFound
from spinney.kube.runtime import Runtime
from spinney.services.admission.settings import AdmissionSettings
from spinney.services.usage import Amounts, add, is_gpu, requested

# GPUs, CPU and memory in the units of a queue's limits: devices, thousandths of a core, megabytes.
Triple = tuple[Fraction, Fraction, Fraction]
_ALL: Key = ("", "all")
_GATHER_SECONDS = 0.5


def path(queue: str, queues: Cache[Queue]) -> list[Queue]:
    """A queue and the queues above it."""
    way: list[Queue] = []
    found = queues.get(queue)
    while found is not None and found not in way:
        way.append(found)
        found = queues.get(found.spec.parent_queue)
    return way


def limits(queue: Queue) -> tuple[float, float, float]:
    """What a queue may hold; -1 is any amount."""
    shares = queue.spec.resources
    return (shares.gpu.limit, shares.cpu.limit, shares.memory.limit) if shares else (0, 0, 0)


def is_limited(queue: str, queues: Cache[Queue]) -> bool:
    """Whether there is any limit on the way up."""
    return any(limit >= 0 for found in path(queue, queues) for limit in limits(found))


def put_gate(pod: Json) -> None:
    """Create the pod behind the gate."""
    gates = pod["spec"].setdefault("schedulingGates", [])
    if not any(gate["name"] == labels.QUEUE_GATE for gate in gates):
        gates.append({"name": labels.QUEUE_GATE})


def in_units(amounts: Amounts) -> Triple:
    """What a pod asks for, in the units of limits."""
    gpus = sum(amount for name, amount in amounts.items() if is_gpu(name))
    cpu, memory = amounts.get("cpu", 0), amounts.get("memory", 0)
    return Fraction(gpus, 1000), Fraction(cpu), Fraction(memory, 10**9)


def plan_release(pods: Iterable[Pod], queues: Cache[Queue], queue_label: str) -> list[Pod]:
    """The gated pods for which their queues have room, oldest first; those already let through hold theirs."""
    used: dict[str, Amounts] = {}
    waiting: list[tuple[Pod, list[Queue]]] = []
    for pod in pods:
        way = path(pod.metadata.labels.get(queue_label, ""), queues)
        if is_gated(pod):
            waiting.append((pod, way))
        else:
            _hold(used, way, requested(pod))
    released = []
    for pod, way in sorted(waiting, key=_age):
        amounts = requested(pod)
        if all(_fits(used.get(queue.name, {}), amounts, limits(queue)) for queue in way):
            _hold(used, way, amounts)
            released.append(pod)
    return released


def is_gated(pod: Pod) -> bool:
    """Whether the pod waits behind our gate."""
    return any(gate.name == labels.QUEUE_GATE for gate in pod.spec.scheduling_gates)


def _age(entry: tuple[Pod, list[Queue]]) -> tuple[str, str, str]:
    meta = entry[0].metadata
    return str(meta.creation_timestamp), meta.namespace, meta.name


def _hold(used: dict[str, Amounts], way: Iterable[Queue], amounts: Amounts) -> None:
    for queue in way:
        add(used.setdefault(queue.name, {}), amounts)


def _fits(used: Amounts, more: Amounts, most: tuple[float, float, float]) -> bool:
    total = dict(used)
    add(total, more)
    return all(limit < 0 or amount <= limit for amount, limit in zip(in_units(total), most, strict=True))


class GateKeeper:
    """Takes the gate off pods as their queues get room."""

    def __init__(self, runtime: Runtime, settings: AdmissionSettings) -> None:
        self._client = runtime.client
        self._settings = settings
        self._pods = runtime.caches.of(Pod)
        self._queues = runtime.caches.of(Queue)
        self.controller = Controller("queue-gates", runtime, self.reconcile, concurrency=1)
        self.controller.wait_for(self._pods, self._queues)
        self._pods.on_change(self._changed)
        self._queues.on_change(lambda _: self.controller.enqueue(*_ALL, after=_GATHER_SECONDS))

    def _changed(self, change: Change[Pod]) -> None:
        if change.object.spec.scheduler_name == self._settings.scheduler_name:
            self.controller.enqueue(*_ALL, after=_GATHER_SECONDS)

    def _ours(self) -> Iterator[Pod]:
        return (pod for pod in self._pods if pod.spec.scheduler_name == self._settings.scheduler_name)

    async def reconcile(self, key: Key) -> None:
        """Let through what there is room for."""
        for pod in plan_release(self._ours(), self._queues, self._settings.queue_label):
            index = next(at for at, gate in enumerate(pod.spec.scheduling_gates) if gate.name == labels.QUEUE_GATE)
            where = f"/spec/schedulingGates/{index}"
            patch = [
                {"op": "test", "path": f"{where}/name", "value": labels.QUEUE_GATE},
                {"op": "remove", "path": where},
            ]
            try:
                await self._client.patch(Pod, pod.name, pod.namespace, patch, kind=Patch.JSON)
            except (NotFound, Invalid):
                # It went, or somebody else took a gate off in the same moment: the next look finds out.
                continue
