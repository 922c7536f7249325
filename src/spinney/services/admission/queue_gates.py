"""Queue gates: pods of a full queue wait behind a gate, so that autoscalers add no nodes for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import Queue
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_finished
from spinney.kube.caches.cache import Cache
from spinney.services.pods.claims import Claims
from spinney.services.pods.usage import Amounts, add, is_gpu, requested

# GPUs, CPU and memory in the units of a queue's limits: devices, thousandths of a core, megabytes.
Triple = tuple[Fraction, Fraction, Fraction]


@dataclass
class Demand:
    """Requests of pods; a device claim counts once, however many pods share it."""

    amounts: Amounts = field(default_factory=dict)
    claims: dict[Key, Amounts] = field(default_factory=dict)

    def __iadd__(self, other: Demand) -> Demand:
        add(self.amounts, other.amounts)
        self.claims |= other.claims
        return self

    def total(self) -> Amounts:
        """Requests and claims in one sum."""
        total = dict(self.amounts)
        for amounts in self.claims.values():
            add(total, amounts)
        return total


def path(queue: str, queues: Cache[Queue]) -> list[Queue]:
    """A queue and its ancestors."""
    ancestors: list[Queue] = []
    current = queues.get(queue)
    while current is not None and current not in ancestors:
        ancestors.append(current)
        current = queues.get(current.spec.parent_queue)
    return ancestors


def limits(queue: Queue) -> tuple[float, float, float]:
    """The limits of a queue; -1 is unlimited."""
    shares = queue.spec.resources
    return (shares.gpu.limit, shares.cpu.limit, shares.memory.limit) if shares else (0, 0, 0)


def is_limited(queue: str, queues: Cache[Queue]) -> bool:
    """Whether a queue or one of its ancestors has a limit."""
    return any(limit >= 0 for ancestor in path(queue, queues) for limit in limits(ancestor))


def put_gate(pod: Json) -> None:
    """Add the queue gate to a pod."""
    gates = pod["spec"].setdefault("schedulingGates", [])
    if not any(gate["name"] == labels.QUEUE_GATE for gate in gates):
        gates.append({"name": labels.QUEUE_GATE})


def in_units(amounts: Amounts) -> Triple:
    """Requests in the units of limits."""
    gpus = sum(amount for name, amount in amounts.items() if is_gpu(name))
    cpu, memory = amounts.get("cpu", 0), amounts.get("memory", 0)
    return Fraction(gpus, 1000), Fraction(cpu), Fraction(memory, 10**9)


def plan_release(pods: Iterable[Pod], queues: Cache[Queue], claims: Claims, queue_label: str) -> list[Pod]:
    """The gated pods that fit into their queues, oldest first, beside the pods without a gate."""
    used: dict[str, Demand] = {}
    waiting: list[tuple[Pod, list[Queue]]] = []
    for pod in pods:
        ancestors = path(pod.metadata.labels.get(queue_label, ""), queues)
        if is_gated(pod):
            waiting.append((pod, ancestors))
        else:
            _hold(used, ancestors, demand_of(pod, claims))
    released = []
    for pod, ancestors in sorted(waiting, key=_age):
        demand = demand_of(pod, claims)
        if all(_fits(used.get(queue.name, Demand()), demand, limits(queue)) for queue in ancestors):
            _hold(used, ancestors, demand)
            released.append(pod)
    return released


def demand_of(pod: Pod, claims: Claims) -> Demand:
    """The requests of a pod, with device claims; none once it has ended."""
    return Demand() if is_finished(pod) else Demand(requested(pod), claims.of(pod))


def is_gated(pod: Pod) -> bool:
    """Whether the pod waits behind our gate."""
    return any(gate.name == labels.QUEUE_GATE for gate in pod.spec.scheduling_gates)


def _age(entry: tuple[Pod, list[Queue]]) -> tuple[str, str, str]:
    meta = entry[0].metadata
    return str(meta.creation_timestamp), meta.namespace, meta.name


def _hold(used: dict[str, Demand], queues: Iterable[Queue], demand: Demand) -> None:
    for queue in queues:
        entry = used.setdefault(queue.name, Demand())
        entry += demand


def _fits(used: Demand, more: Demand, most: tuple[float, float, float]) -> bool:
    both = Demand(dict(used.amounts), dict(used.claims))
    both += more
    return all(limit < 0 or amount <= limit for amount, limit in zip(in_units(both.total()), most, strict=True))
