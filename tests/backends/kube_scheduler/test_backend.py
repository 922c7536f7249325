"""kube-scheduler: the gang API of each Kubernetes release."""

from __future__ import annotations

import pytest

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster
from spinney.backends.kube_scheduler import v1_35, v1_36, v1_37, v1_37_composite
from spinney.backends.kube_scheduler.backend import BACKEND, SHAPES, Shape
from spinney.backends.served import Served
from tests import make

SERVES = {
    "1.35": Served(frozenset(v1_35.SHAPE.resources)),
    "1.36": Served(frozenset(v1_36.SHAPE.resources)),
    "1.37": Served(frozenset(v1_37.SHAPE.resources)),
    "1.37+composite": Served(frozenset(v1_37_composite.SHAPE.resources)),
}


def sample() -> make.GangBuilder:
    """The gang of the reference's samples: two roles, one elastic, one packed more tightly."""
    return (
        make.gang("svc-0", "ml")
        .priority("inference-high")
        .packed(required="block")
        .group("prefill", 2, pods=3, required="rack")
        .group("decode", 2)
    )


@pytest.mark.parametrize(
    ("release", "index", "link"),
    [
        ("1.35", 0, {"workloadRef": {"name": "svc-0", "podGroup": "gang"}}),
        ("1.35", 2, {"workloadRef": {"name": "svc-0", "podGroup": "gang"}}),
        ("1.36", 2, {"schedulingGroup": {"podGroupName": "svc-0"}}),
        ("1.37", 1, {"schedulingGroup": {"podGroupName": "svc-0"}}),
        ("1.37", 2, {}),
        ("1.37+composite", 2, {"schedulingGroup": {"podGroupName": "svc-0-prefill"}}),
    ],
)
def test_pods_are_linked_at_creation(release: str, index: int, link: Json) -> None:
    """Everyone joins, except surplus where one gated pod would hold the whole group."""
    pod = make.pod("p", "ml").label("grove.io/podclique", "svc-0-prefill")
    pod.label("grove.io/podclique-pod-index", str(index))
    prepared = BACKEND.prepare(pod.build(), convert(PodGang, sample().build()), SERVES[release])
    fields = {key: prepared["spec"][key] for key in ("workloadRef", "schedulingGroup") if key in prepared["spec"]}
    assert (fields, prepared["spec"]["schedulerName"]) == (link, "default-scheduler")


@pytest.mark.parametrize(
    ("release", "held"), [("1.35", True), ("1.36", True), ("1.37", True), ("1.37+composite", False)]
)
def test_surplus_is_held_where_roles_are_flattened(release: str, held: bool) -> None:
    """In a flat group surplus takes the room of other roles; in a tree each role has its own minimum."""
    assert BACKEND.capabilities(SERVES[release]).surplus_held == held


def test_the_most_expressive_shape_that_is_served_wins() -> None:
    """A cluster that serves several versions gets the newest shape."""
    everything = Served(frozenset(resource for shape in SHAPES for resource in shape.resources))
    shapes: list[Shape] = [v1_37_composite.SHAPE]
    assert BACKEND.capabilities(everything) is shapes[0].capabilities


def test_without_a_gang_api_nothing_is_written_and_nothing_promised() -> None:
    """The controller tells the user; pods are only given their scheduler."""
    gang = convert(PodGang, sample().build())
    assert BACKEND.capabilities(Served()).api == ""
    assert BACKEND.translate(gang, Cluster(Served())).objects == ()
    pod = BACKEND.prepare(make.pod("p").label("grove.io/podclique", "x").build(), gang, Served())
    assert set(pod["spec"]) == {"containers", "schedulerName"}


def test_from_137_on_pods_of_different_priority_are_refused() -> None:
    """kube-scheduler fails such a gang as a whole."""
    pcs = convert(
        PodCliqueSet, make.pcs("a").clique("x", priorityClassName="high").clique("y", priorityClassName="low").build()
    )
    (problem,) = BACKEND.check(pcs, SERVES["1.37"])
    assert "'high', 'low'" in problem.message
    assert BACKEND.check(pcs, SERVES["1.35"]) == ()
