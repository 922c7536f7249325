"""The resource requests of a pod as the scheduler counts them, in thousandths of each unit."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api.core import PodSpec, Resources
from spinney.api.quantity import ResourceList, milli


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """The larger of what runs together and what any init container needs while it runs, plus overhead.

    Init containers that keep running (sidecars) count with the containers, and with every init container after them.
    What the pod as a whole asks for stands in place of what its containers add up to.
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        own = _requests(container.resources)
        if container.restart_policy == "Always":
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            together = dict(sidecars)
            _add(together, own)
            _raise_to(peak, together)
    total = sidecars
    for container in spec.containers:
        _add(total, _requests(container.resources))
    _raise_to(total, peak)
    if spec.resources:
        total |= _requests(spec.resources)
    _add(total, in_milli(spec.overhead))
    return total


def _requests(resources: Resources) -> dict[str, int]:
    """The requests; a limit alone is a request too, as the API server defaults it."""
    return in_milli({**resources.limits, **resources.requests})


def in_milli(amounts: ResourceList) -> dict[str, int]:
    """Amounts in thousandths of each unit."""
    return {name: milli(amount) for name, amount in amounts.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)
