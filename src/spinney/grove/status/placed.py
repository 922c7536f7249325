"""A PodGang's whole status: its phase, its conditions, and how close it lies once it is placed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.core import Node
from spinney.api.meta import Condition, Json
from spinney.api.podgang import PodGang
from spinney.grove.model import pod_state
from spinney.grove.model.requests import total_requests
from spinney.grove.model.topology import Levels
from spinney.grove.status import gangs
from spinney.grove.status.gangs import Member
from spinney.grove.status.patches import difference, turned
from spinney.grove.status.score import placement_score


def gang_status(
    found: PodGang, members: Sequence[Member], conditions: Iterable[Condition], score: float | None, now: datetime
) -> Json:
    """The status as it should be stored; others' conditions stay as they are."""
    status: Json = {"phase": gangs.phase(members), "conditions": turned(found.status.conditions, conditions, now)}
    if score is not None:
        status["placementScore"] = score
    return status


def gang_patch(found: PodGang, wanted: Json) -> Json:
    """What to write to have a gang's status as wanted; the schema wants a phase in every status."""
    patch = difference(found.status, wanted)
    return {"phase": wanted["phase"], **patch} if patch else {}


def gang_score(found: PodGang, members: Sequence[Member], levels: Levels, nodes: Iterable[Node]) -> float | None:
    """The placement score; none before the gang is placed, and as it was then afterwards."""
    if not gangs.is_scheduled(members):
        return None
    known = find(found.status.conditions, reasons.SCHEDULED)
    if known is not None and known.status == "True" and found.status.placement_score is not None:
        # Nodes that come and go later do not move it.
        return found.status.placement_score
    pods = [pod for member in members for pod in member.staying if pod_state.is_scheduled(pod)]
    by_name = {node.name: node for node in nodes} if levels.keys else {}
    return placement_score(pods, by_name, levels, total_requests(pods))
