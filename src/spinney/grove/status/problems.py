"""What is wrong with a gang that runs: a required topology that was not kept, pods that find no place."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api import pod_state, reasons
from spinney.api.conditions import find, is_true
from spinney.api.meta import Condition
from spinney.api.podgang import PodGang
from spinney.backends.blockers import pod_report
from spinney.grove.model import gang_members
from spinney.grove.model.domains import Placement
from spinney.grove.model.gang_members import Member


def topology_violated(gang: PodGang, placements: Sequence[Placement]) -> list[Condition]:
    """A required topology that does not hold, whoever placed the pods; nothing for a gang that never broke one."""
    broken = [
        f"{placement.subject} requires one {placement.key}, and its pods are in {placement}"
        for placement in placements
        if placement.is_broken
    ]
    return _problem(
        gang,
        reasons.TOPOLOGY_VIOLATED,
        "; ".join(broken),
        reasons.REQUIRED_TOPOLOGY_BROKEN,
        reasons.REQUIRED_TOPOLOGY_HELD,
    )


def surplus_waiting(gang: PodGang, members: Sequence[Member]) -> list[Condition]:
    """Pods beyond the minimum that the scheduler says it cannot place."""
    waiting = [pod for member in members for pod in member.active if not pod_state.is_scheduled(pod)]
    report = pod_report(waiting) if gang_members.is_scheduled(members) else ""
    return _problem(
        gang,
        reasons.SURPLUS_WAITING,
        f"{len(waiting)} pods beyond the minimum wait: {report}" if report else "",
        reasons.SURPLUS_UNSCHEDULABLE,
        reasons.SURPLUS_PLACED,
    )


def news(gang: PodGang, wanted: Sequence[Condition]) -> list[tuple[str, str]]:
    """The reasons and messages of problems that a gang did not have before: each is worth an event."""
    return [
        (condition.reason, condition.message)
        for condition in wanted
        if condition.type in (reasons.TOPOLOGY_VIOLATED, reasons.SURPLUS_WAITING)
        and condition.status == "True"
        and not is_true(gang.status.conditions, condition.type)
    ]


def _problem(gang: PodGang, kind: str, message: str, present: str, gone: str) -> list[Condition]:
    """The condition of a problem; none if the gang neither has it nor ever had it."""
    if message:
        return [Condition(type=kind, status="True", reason=present, message=message)]
    if find(gang.status.conditions, kind) is None:
        return []
    return [Condition(type=kind, status="False", reason=gone)]
