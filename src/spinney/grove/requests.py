"""What pods ask for, summed: which pod is largest, and what a gang needs in all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from spinney.api.core import Pod
from spinney.api.labels import GPU_RESOURCE
from spinney.api.pod import Container
from spinney.api.quantity import milli

# Thousandths by resource name.
Amounts = dict[str, int]


def pod_requests(pod: Pod) -> Amounts:
    """The sum over containers, or the largest init container where that is more."""
    total: Amounts = defaultdict(int)
    for container in pod.spec.containers:
        for resource, amount in _requests(container).items():
            total[resource] += amount
    for container in pod.spec.init_containers:
        for resource, amount in _requests(container).items():
            total[resource] = max(total[resource], amount)
    for resource, quantity in pod.spec.overhead.items():
        total[resource] += milli(quantity)
    return dict(total)


def total_requests(pods: Iterable[Pod]) -> Amounts:
    """What some pods ask for together."""
    total: Amounts = defaultdict(int)
    for pod in pods:
        for resource, amount in pod_requests(pod).items():
            total[resource] += amount
    return dict(total)


def size(pod: Pod) -> tuple[int, int, int]:
    """Orders pods by what is scarcest: GPUs, then CPU, then memory."""
    asked = pod_requests(pod)
    return asked.get(GPU_RESOURCE, 0), asked.get("cpu", 0), asked.get("memory", 0)


def _requests(container: Container) -> Amounts:
    asked = {**container.resources.limits, **container.resources.requests}
    return {resource: milli(quantity) for resource, quantity in asked.items()}
