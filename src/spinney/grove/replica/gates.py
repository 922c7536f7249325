"""When a gang's pods may be scheduled: the operator's own gates come off all of them together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from spinney.api import pod_state
from spinney.api.core import Pod
from spinney.api.labels import GPU_RESOURCE, PENDING_CREATION_GATE
from spinney.api.podgang import PodGang
from spinney.api.requests import pod_requests
from spinney.grove.model import gang_members
from spinney.grove.model.gang_members import Member


def releasable(
    gang: PodGang, members: Sequence[Member], gate: str, *, base_scheduled: bool, surplus_held: bool
) -> list[Pod]:
    """The pods whose gate comes off now.

    The whole gang must be ready: every pod exists and is referenced, the backend is ready for this generation, and the
    base gang is scheduled. Where the scheduler would let surplus pods take the gang's room, only the minimum of each
    group is released first.
    """
    if not base_scheduled or not gang_members.is_backend_ready(gang) or not gang_members.is_complete(gang, members):
        return []
    hold = surplus_held and not gang_members.is_scheduled(members)
    return [pod for member in members for pod in _of_member(member, gate, hold)]


def waves(pods: Iterable[Pod]) -> list[list[Pod]]:
    """Pods of one size each, largest first: a wave is released after the one before.

    kube-scheduler tries the pods of a gang in the order in which they lost their gates: small pods ahead of large ones
    may leave these no room.
    """
    by_size: dict[tuple[int, ...], list[Pod]] = defaultdict(list)
    for pod in pods:
        by_size[_size(pod)].append(pod)
    return [by_size[amounts] for amounts in sorted(by_size, reverse=True)]


def _size(pod: Pod) -> tuple[int, int, int]:
    """Orders pods by what is scarcest: GPUs, then CPU, then memory."""
    requests = pod_requests(pod.spec)
    return requests.get(GPU_RESOURCE, 0), requests.get("cpu", 0), requests.get("memory", 0)


def _of_member(member: Member, gate: str, hold: bool) -> list[Pod]:
    gated = sorted((pod for pod in member.active if own_gates(pod, gate)), key=pod_state.index)
    if not hold:
        return gated
    released = len(member.active) - len(gated)
    return gated[: max(0, member.minimum - released)]


def own_gates(pod: Pod, gate: str) -> tuple[str, ...]:
    """The pod's gates that the operator removes: the backend's, and upstream's on pods that were taken over."""
    return tuple(item.name for item in pod.spec.scheduling_gates if item.name in (gate, PENDING_CREATION_GATE))
