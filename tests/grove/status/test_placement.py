"""A placement is held against the topology that the gang requires, whoever placed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spinney.api.core import Node, Pod
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.grove.model.domains import shared_domain
from spinney.grove.model.gang_members import Member
from spinney.grove.model.topology import NO_LEVELS, Levels
from spinney.grove.status import gangs, problems
from tests import make

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {
    name: convert(Node, {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"pods": "8"}}})
    for name, labels in {"a": {"rack": "r1"}, "b": {"rack": "r1"}, "c": {"rack": "r2"}, "d": {}}.items()
}


def pod(name: str, on: str = "", refused: str = "", placed: datetime = NOW) -> Pod:
    """A pod on a node, or one that a scheduler refused."""
    body = make.pod(name).build()
    scheduled: Json = {"type": "PodScheduled", "status": "True" if on else "False", "reason": "Unschedulable"}
    scheduled |= {"message": refused, "lastTransitionTime": placed.isoformat()}
    body["spec"] |= {"nodeName": on} if on else {}
    body["status"] = {"phase": "Pending", "conditions": [scheduled] if on or refused else []}
    return convert(Pod, body)


def told(gang: PodGang, members: list[Member], kind: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition that the operator writes."""
    wanted = gangs.conditions(gang, members, True, False, nodes=NODES)
    return next(((each.status, each.reason, each.message) for each in wanted if each.type == kind), None)


@pytest.mark.parametrize(
    ("on", "violation"),
    [
        (["a", "b"], None),
        (["a", "b", "c"], "the gang requires one rack, and its pods are in r1 (2), r2 (1)"),
        (["d"], "the gang requires one rack, and its pods are in no domain (1)"),
    ],
)
def test_a_required_topology_that_was_not_kept_is_told(on: list[str], violation: str | None) -> None:
    """A gang across racks said Scheduled and nothing more."""
    gang = make.gang("g").packed(required="rack").group("x", 1).typed(PodGang)
    members = [Member("g-x", 1, len(on), [pod(f"p{index}", node) for index, node in enumerate(on)])]
    expected = ("True", "RequiredTopologyBroken", violation) if violation else None
    assert told(gang, members, "TopologyViolated") == expected
    scheduled = told(gang, members, "Scheduled")
    assert scheduled is not None
    assert "the gang in rack " in scheduled[2]


def test_the_topology_of_a_role_is_held_against_its_own_pods() -> None:
    """The other role may be elsewhere."""
    gang = make.gang("g").group("x", 1, required="rack").group("y", 1).typed(PodGang)
    inside = [Member("g-x", 1, 2, [pod("p", "a"), pod("q", "b")]), Member("g-y", 1, 1, [pod("r", "c")])]
    assert told(gang, inside, "TopologyViolated") is None
    across = [Member("g-x", 1, 2, [pod("p", "a"), pod("q", "c")]), Member("g-y", 1, 1, [pod("r", "c")])]
    violated = told(gang, across, "TopologyViolated")
    assert violated is not None
    assert violated[2] == "g-x requires one rack, and its pods are in r1 (1), r2 (1)"


def test_a_problem_is_an_event_once_and_is_taken_back() -> None:
    """An event when it comes, none while it stays, and the condition turns False when it goes."""
    builder = make.gang("g").packed(required="rack").group("x", 1)
    across = [Member("g-x", 1, 2, [pod("p", "a"), pod("q", "c")])]
    gang = builder.typed(PodGang)
    wanted = gangs.conditions(gang, across, True, False, nodes=NODES)
    assert [reason for reason, _ in problems.news(gang, wanted)] == ["RequiredTopologyBroken"]
    builder.object["status"] = gangs.gang_status(gang, across, wanted, None, NOW)
    later = builder.typed(PodGang)
    assert problems.news(later, gangs.conditions(later, across, True, False, nodes=NODES)) == []
    kept = [Member("g-x", 1, 1, [pod("p", "a")])]
    assert told(later, kept, "TopologyViolated") == ("False", "RequiredTopologyHeld", "")


def test_pods_beyond_the_minimum_that_find_no_place_are_told() -> None:
    """The gang runs, and its surplus is not forgotten."""
    gang = make.gang("g").group("x", 1, pods=3).typed(PodGang)
    members = [Member("g-x", 1, 3, [pod("p", "a"), pod("q", refused="0/4 nodes"), pod("r", refused="0/4 nodes")])]
    expected = ("True", "SurplusUnschedulable", "2 pods beyond the minimum wait: 0/4 nodes")
    assert told(gang, members, "SurplusWaiting") == expected
    starting = [Member("g-x", 1, 3, [pod("p", refused="0/4 nodes"), pod("q"), pod("r")])]
    assert told(gang, starting, "SurplusWaiting") is None


@pytest.mark.parametrize(("placed", "score"), [(NOW - timedelta(minutes=1), 1.0), (NOW + timedelta(minutes=1), 0.5)])
def test_the_score_follows_a_pod_that_was_placed_later(placed: datetime, score: float) -> None:
    """It stays where no pod moved, whatever happens to nodes, and tells where the pods are where one did."""
    builder = make.gang("g").packed(required="rack").group("x", 1)
    scheduled = {"type": "Scheduled", "status": "True", "reason": "", "lastTransitionTime": NOW.isoformat()}
    builder.object["status"] = {"phase": "Running", "conditions": [scheduled], "placementScore": 1.0}
    members = [Member("g-x", 1, 2, [pod("p", "a", placed=NOW - timedelta(minutes=1)), pod("q", "c", placed=placed)])]
    for levels in (Levels("t", (("rack", "rack"),)), NO_LEVELS):
        assert gangs.gang_score(builder.typed(PodGang), members, levels, NODES) == score


def test_later_pods_are_kept_to_the_domain_that_the_gang_is_in() -> None:
    """Where a scheduler forgets the topology of pods beyond the minimum, a node selector holds them to it."""
    gang = make.gang("g").packed(required="rack").group("x", 1, pods=2).typed(PodGang)
    assert shared_domain(gang, [Member("g-x", 1, 2, [pod("p", "a"), pod("q")])], NODES) == {"rack": "r1"}
    assert shared_domain(gang, [Member("g-x", 1, 2, [pod("p"), pod("q")])], NODES) == {}
