"""When a gang's pods may be scheduled: the operator's own gate comes off all of them together, and no other gate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from spinney.api.core import Pod
from spinney.api.labels import PENDING_CREATION_GATE
from spinney.api.podgang import PodGang
from spinney.grove.model import gang_members, pod_state
from spinney.grove.model.gang_members import Member
from spinney.grove.model.requests import size


def ours(gate: str) -> frozenset[str]:
    """The gates that are the operator's to remove: the backend's, and upstream's on pods that were taken over."""
    return frozenset((gate, PENDING_CREATION_GATE))


def releasable(
    gang: PodGang, members: Sequence[Member], gate: str, *, base_scheduled: bool, surplus_held: bool
) -> list[Pod]:
    """The pods whose gate comes off now.

    Everything must hold for the gang as a whole: every pod exists and is referenced, the backend is ready for this
    generation, and the base gang is on its nodes. Where the scheduler would let surplus pods take the gang's room,
    only the minimum of each group goes first.
    """
    if not base_scheduled or not gang_members.is_backend_ready(gang) or not gang_members.is_complete(gang, members):
        return []
    hold = surplus_held and not gang_members.is_scheduled(members)
    return [pod for member in members for pod in _of_member(member, ours(gate), hold)]


def waves(pods: Iterable[Pod]) -> list[list[Pod]]:
    """Pods of one size each, largest first: a wave is let go when the one before is.

    kube-scheduler tries the pods of a gang in the order in which they lost their gates, and never in another: small
    ones ahead of large ones may leave these no room.
    """
    by_size: dict[tuple[int, ...], list[Pod]] = defaultdict(list)
    for pod in pods:
        by_size[size(pod)].append(pod)
    return [by_size[amounts] for amounts in sorted(by_size, reverse=True)]


def _of_member(member: Member, gates: frozenset[str], hold: bool) -> list[Pod]:
    gated = sorted((pod for pod in member.active if _held(pod, gates)), key=pod_state.index)
    if not hold:
        return gated
    released = len(member.active) - len(gated)
    return gated[: max(0, member.minimum - released)]


def _held(pod: Pod, gates: frozenset[str]) -> bool:
    return any(gate.name in gates for gate in pod.spec.scheduling_gates)


def own_gates(pod: Pod, gate: str) -> tuple[str, ...]:
    """The pod's gates that are the operator's to remove; those of others stay."""
    return tuple(held.name for held in pod.spec.scheduling_gates if held.name in ours(gate))
