"""Which waiting gangs are released, and why the others wait."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from spinney.api.core import Node
from spinney.api.meta import Json, convert
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.kube_scheduler.in_turn.concurrent_gangs import ConcurrentPods
from spinney.backends.kube_scheduler.in_turn.node_info import node_infos
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView, Placement
from spinney.backends.kube_scheduler.in_turn.release_plan import (
    Candidate,
    Verdict,
    is_complete,
    is_gated,
    is_overdue,
    is_placed,
    minimum_pods,
)
from spinney.backends.kube_scheduler.in_turn.release_round import ReleaseRound
from tests import make

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GATE = "scheduling.k8s.io/workload"


def plan_release(
    candidates: Collection[Candidate], view: ClusterView, placing: ConcurrentPods, now: datetime
) -> dict[tuple[str, str], Verdict]:
    """The verdicts at the end of a round, which takes one step at a time."""
    current = ReleaseRound(candidates, view, placing, now)
    while len(current.verdicts) < len(candidates):
        current.go_on(1)
    return current.verdicts


def waiting(name: str, gpus: int, pods: int = 2, age: int = 0, priority: int = 0, attempts: int = 0) -> Candidate:
    """A gang of gated pods with so many GPUs each."""
    builder = make.gang(name).group("w", pods)
    builder.object["metadata"]["creationTimestamp"] = (NOW - timedelta(seconds=age)).isoformat()
    if attempts:
        builder.annotate("grove.io/release-attempts", " ".join(map(str, range(attempts))))
        tell(builder, "False", "Recreated", NOW)
    members = [member(f"{name}-w-{index}", f"{name}-w", gpus, index, priority=priority) for index in range(pods)]
    return Candidate(convert(PodGang, builder.build()), tuple(members))


def member(name: str, role: str, gpus: int, index: int = 0, on: str = "", priority: int = 0) -> Pod:
    """A pod of a gang; gated unless it has a node."""
    builder = (
        make.pod(name).gpus(gpus).label("grove.io/podclique", role).label("grove.io/podclique-pod-index", str(index))
    )
    body = (builder.on(on) if on else builder.gate(GATE)).build()
    body["spec"]["priority"] = priority
    return convert(Pod, body)


def tell(builder: make.GangBuilder, status: str, reason: str, since: datetime) -> None:
    """Put a BackendReady condition on a gang."""
    condition: Json = {
        "type": "BackendReady",
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since.isoformat(),
    }
    builder.object["status"] = {"phase": "Pending", "conditions": [condition]}


def decide(candidates: Sequence[Candidate], gpus: int, now: datetime = NOW) -> dict[str, str]:
    """The reason that each gang is given, on one node of so many GPUs."""
    nodes = [make.node("n", gpus).typed(Node)]

    view = ClusterView(lambda above: node_infos(nodes, [], above))
    verdicts = plan_release(candidates, view, ConcurrentPods(view, ()), now)
    return {name: verdict.readiness.reason for (_, name), verdict in verdicts.items()}


def test_the_oldest_that_fits_goes_and_the_others_wait() -> None:
    """Together they would need more than there is."""
    gangs = [waiting("young", 2), waiting("old", 2, age=60)]
    assert decide(gangs, 6) == {"old": "Released", "young": "WaitsForOtherGang"}


def test_a_gang_that_does_not_fit_blocks_nobody() -> None:
    """The next one is tried."""
    gangs = [waiting("huge", 8, age=60), waiting("small", 2)]
    assert decide(gangs, 8) == {"huge": "DoesNotFitYet", "small": "Released"}


def test_gangs_that_cannot_block_each_other_go_together() -> None:
    """Wherever kube-scheduler places the pods of one, those of the other find nodes."""
    gangs = [waiting("young", 2), waiting("old", 2, age=60)]
    assert decide(gangs, 8) == {"old": "Released", "young": "Released"}


def test_beside_a_gang_that_only_just_fits_nobody_is_let_go() -> None:
    """Six GPUs hold pods of 3, 2 and 1, but not in every order and size."""
    roles = [waiting("wide", 3, pods=1), waiting("small", 1, pods=3)]
    assert decide(roles, 6) == {"small": "Released", "wide": "WaitsForOtherGang"}


def test_a_gang_that_only_just_fits_is_told_the_nodes_of_its_pods() -> None:
    """Its large pod could find its node taken by small ones; where all fit anyway, no node is nominated."""
    nodes = [make.node(name, 2).typed(Node) for name in "ab"]
    gang = make.gang("g").group("small", 2).group("large", 1).typed(PodGang)
    small = [member(f"g-small-{index}", "g-small", 1, index) for index in range(2)]
    candidate = Candidate(gang, (*small, member("g-large-0", "g-large", 2)))

    def places(nodes: list[Node]) -> Placement:
        view = ClusterView(lambda above: node_infos(nodes, [], above))
        verdict = plan_release([candidate], view, ConcurrentPods(view, ()), NOW)[candidate.key]
        assert verdict.readiness.reason == "Released"
        return verdict.placement

    nominated = places(nodes)
    assert nominated["g-small-0"] == nominated["g-small-1"] != nominated["g-large-0"]
    assert places([*nodes, make.node("c", 2).typed(Node)]) == {}


def test_priority_comes_before_age() -> None:
    """The more important gang is tried first."""
    gangs = [waiting("old", 2, age=60), waiting("vip", 2, priority=100)]
    assert decide(gangs, 6) == {"vip": "Released", "old": "WaitsForOtherGang"}


def test_a_gang_that_was_let_go_in_vain_rests_longer_each_time() -> None:
    """One minute, then two; another gang goes meanwhile."""
    gangs = [waiting("tired", 2, age=60, attempts=2), waiting("fresh", 2)]
    assert decide(gangs, 8) == {"tired": "Recreated", "fresh": "Released"}
    assert decide([gangs[0]], 8, NOW + timedelta(minutes=2)) == {"tired": "Released"}


def test_after_three_attempts_it_waits_and_says_so() -> None:
    """Something blocks it that the search for a placement does not see."""
    assert decide([waiting("never", 2, attempts=3)], 8, NOW + timedelta(days=1)) == {"never": "NeverBound"}


def mixed(*bound: int) -> Candidate:
    """A gang of 4 pods with minimum 2; those of some indexes have a node."""
    gang = convert(PodGang, make.gang("a-0").group("w", 2, pods=4).build())
    pods = [member(f"a-0-w-{i}", "a-0-w", 1, i, on="n" if i in bound else "") for i in range(4)]
    return Candidate(gang, tuple(pods))


def test_only_the_minimum_counts() -> None:
    """The first pods of a role, those with a node before the others."""
    assert [pod.name for pod in minimum_pods(mixed())] == ["a-0-w-0", "a-0-w-1"]
    assert [pod.name for pod in minimum_pods(mixed(3))] == ["a-0-w-3", "a-0-w-0"]
    assert not is_placed(mixed(3))
    assert is_placed(mixed(2, 3))
    assert is_gated(mixed())
    assert not is_gated(mixed(3))


def test_a_gang_is_whole_when_all_it_refers_to_is_known() -> None:
    """A pod cache may lag behind the gang's."""
    complete = mixed()
    assert is_complete(complete)
    assert not is_complete(Candidate(complete.gang, complete.pods[:3]))


def test_five_minutes_are_enough() -> None:
    """A gang that was released and not bound by then is created again."""
    builder = make.gang("a-0").group("w", 1)
    tell(builder, "True", "Released", NOW)
    candidate = Candidate(convert(PodGang, builder.build()), ())
    assert not is_overdue(candidate, NOW + timedelta(minutes=4))
    assert is_overdue(candidate, NOW + timedelta(minutes=5))
