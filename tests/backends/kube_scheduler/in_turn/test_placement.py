"""The search for a placement refuses what kube-scheduler would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.core import Node
from spinney.api.meta import Json, convert
from spinney.api.pod import Pod
from spinney.api.volumes import Reach
from spinney.backends.kube_scheduler.in_turn.node_info import node_infos
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView, Unplaced, place
from tests import make


def node(name: str, gpus: int = 8, zone: str = "", **changes: Any) -> Node:
    """A ready node."""
    builder = make.node(name, gpus)
    body = (builder.label("zone", zone) if zone else builder).build()
    body["spec"] = changes
    return convert(Node, body)


def pod(name: str, gpus: int = 1, on: str = "", priority: int = 0, app: str = "x", **spec: Any) -> Pod:
    """A pod, perhaps on a node already."""
    builder = make.pod(name).gpus(gpus).label("app", app).spec(priority=priority, **spec)
    return (builder.on(on) if on else builder).typed(Pod)


def term(key: str, app: str = "x", **more: Any) -> Json:
    """Pods of one app, in the domains of a node label."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def away(key: str = "kubernetes.io/hostname", app: str = "x", **more: Any) -> Json:
    """Never in a domain with pods of an app."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, app, **more)]}}


def near(key: str = "zone", app: str = "x", **more: Any) -> Json:
    """Only in a domain with a pod of an app."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, app, **more)]}}


def spread(key: str = "zone", skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> list[Json]:
    """As many pods of the app in one domain as in another, give or take."""
    return [{**term(key), "maxSkew": skew, "whenUnsatisfiable": when, **more}]


def port(number: int, address: str = "") -> list[Json]:
    """A container on a port of its host."""
    ports = [{"containerPort": 1, "hostPort": number, "hostIP": address, "protocol": "TCP"}]
    return [{"name": "main", "ports": ports}]


def fits(pods: list[Pod], nodes: list[Node], held: list[Pod] | None = None, reach: Reach | None = None) -> bool:
    """Whether pods can be placed beside those that run."""
    view = ClusterView(lambda above: node_infos(nodes, held or [], above), lambda _: reach or Reach())
    return not isinstance(place(pods, view), Unplaced)


TAINT = [{"key": "k", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("nodes", "pods", "wanted"),
    [
        ([node("a", 8)], [pod("p", 4), pod("q", 4)], True),
        ([node("a", 7)], [pod("p", 4), pod("q", 4)], False),
        # Small ones first would break up the room of the large one.
        ([node("a", 4), node("b", 2)], [pod("s", 1), pod("t", 1), pod("large", 4)], True),
        ([node("a", unschedulable=True)], [pod("p")], False),
        ([node("a", taints=TAINT)], [pod("p")], False),
        ([node("a", taints=TAINT)], [pod("p", tolerations=[{"operator": "Exists"}])], True),
        ([node("a")], [pod("p", nodeSelector={"zone": "x"})], False),
    ],
)
def test_a_gang_fits_only_with_a_placement_in_hand(nodes: list[Node], pods: list[Pod], wanted: bool) -> None:
    """Requests, taints and node selectors are looked at."""
    assert fits(pods, nodes) is wanted


ZONES = [node("a", zone="1"), node("b", zone="1"), node("c", zone="2")]


@pytest.mark.parametrize(
    ("pods", "held", "wanted"),
    [
        # Anti-affinity: by host and by zone, of the gang's own pods and of those that are there, in both directions.
        ([pod(f"p{i}", affinity=away()) for i in range(3)], [], True),
        ([pod(f"p{i}", affinity=away()) for i in range(4)], [], False),
        ([pod(f"p{i}", affinity=away("zone")) for i in range(2)], [], True),
        ([pod(f"p{i}", affinity=away("zone")) for i in range(3)], [], False),
        ([pod("p", affinity=away("zone", "db"))], [pod("db", on="c", app="db"), pod("d2", on="a", app="db")], False),
        ([pod("p")], [pod("o", on="a", affinity=away("zone")), pod("q", on="c", affinity=away("zone"))], False),
        ([pod("p")], [pod("o", on="a", affinity=away("zone"))], True),
        # Namespaces chosen by labels are not looked up: any may be meant.
        ([pod("p", affinity=away("zone", namespaceSelector={"matchLabels": {"a": "b"}}))], [pod("o", on="a")], True),
        ([pod("p", affinity=away("zone", namespaces=["other"])), pod("q", affinity=away("zone"))], [], True),
        # A node without the label is in no domain of it.
        ([pod(f"p{i}", affinity=away("rack")) for i in range(9)], [], True),
        # Affinity: somebody must be there, or the pod is the first of its own crowd.
        ([pod("p", affinity=near("zone", "db"))], [], False),
        ([pod("p", affinity=near("zone", "db"))], [pod("db", on="c", app="db")], True),
        ([pod("p", affinity=near("rack", "db"))], [pod("db", on="c", app="db")], False),
        ([pod("p", affinity=near()), pod("q", affinity=near())], [], True),
        ([pod("p", 8, affinity=near()), pod("q", 8, affinity=near()), pod("r", 8, affinity=near())], [], False),
        # Spreading: the next pod may not be more than the skew above the emptiest domain.
        ([pod(f"p{i}", 8, topologySpreadConstraints=spread()) for i in range(3)], [], True),
        ([pod("p", 8, topologySpreadConstraints=spread())], [pod("o", 8, on="a"), pod("q", 8, on="c")], True),
        ([pod("p", 8, topologySpreadConstraints=spread())], [pod("o", on="a"), pod("q", 8, on="c", app="y")], False),
        ([pod("p", 8, topologySpreadConstraints=spread(minDomains=3))], [pod("o", on="a"), pod("q", on="c")], False),
        ([pod("p", 8, topologySpreadConstraints=spread(when="ScheduleAnyway"))], [pod("o", on="a")], True),
        ([pod("p", topologySpreadConstraints=spread("rack"))], [], False),
        # Host ports: one of a kind on each node and address.
        ([pod(f"p{i}", containers=port(80)) for i in range(3)], [], True),
        ([pod(f"p{i}", containers=port(80)) for i in range(4)], [], False),
        (
            [pod(f"p{i}", containers=port(80)) for i in range(3)],
            [pod("o", on="a", containers=port(80, "10.0.0.1"))],
            False,
        ),
    ],
)
def test_rules_between_pods_are_kept(pods: list[Pod], held: list[Pod], wanted: bool) -> None:
    """Three nodes in two zones: a pod whose rules leave no node is not placed."""
    assert fits(pods, ZONES, held) is wanted


def test_pods_on_closed_nodes_count_too() -> None:
    """A cordoned node takes no pods, but those on it are still in its zone."""
    closed = node("shut", zone="1", unschedulable=True)
    assert not fits([pod("p", affinity=away("zone"))], [closed, node("a", zone="1")], [pod("o", on="shut")])


def test_pods_on_nodes_take_room_unless_they_could_be_preempted() -> None:
    """Pods of a lower priority count as gone only on request."""
    nodes, held = [node("a", 8)], [pod("old", 8, on="a", priority=1)]
    view = ClusterView(lambda above: node_infos(nodes, held, above))
    assert isinstance(place([pod("p")], view), Unplaced)
    assert place([pod("p")], view, above=2) == {"p": "a"}
    assert isinstance(place([pod("p")], view, above=1), Unplaced)


def test_a_node_that_is_not_ready_has_no_room() -> None:
    """A node that is not ready takes no pods."""
    body = make.node("a").build()
    body["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not fits([pod("p")], [convert(Node, body)])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("a", 1)], "no node that it may use has room for one more pod: insufficient nvidia.com/gpu"),
        ([node("a", unschedulable=True)], "no ready node matches its node selector, affinity and tolerations"),
        ([], "no ready node matches its node selector, affinity and tolerations"),
    ],
)
def test_a_pod_without_a_node_says_what_is_missing_and_not_none(nodes: list[Node], said: str) -> None:
    """The message was "None" where no claim of the pod was at fault."""
    view = ClusterView(lambda above: node_infos(nodes, [], above))
    unplaced = place([pod("one"), pod("two")], view)
    assert isinstance(unplaced, Unplaced)
    assert unplaced.reason == said
