"""What pods ask for, summed: which pod is largest, and what a gang needs in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spinney.api.core import Pod
from spinney.api.labels import GPU_RESOURCE
from spinney.api.requests import pod_requests

# Thousandths by resource name.
Amounts = dict[str, int]


def total_requests(pods: Iterable[Pod]) -> Amounts:
    """What some pods ask for together."""
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(pod_requests(pod.spec))
    return dict(total)


def size(pod: Pod) -> tuple[int, int, int]:
    """Orders pods by what is scarcest: GPUs, then CPU, then memory."""
    asked = pod_requests(pod.spec)
    return asked.get(GPU_RESOURCE, 0), asked.get("cpu", 0), asked.get("memory", 0)
