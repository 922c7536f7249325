"""The conservative fit check."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.core import Node
from spinney.api.meta import convert
from spinney.api.pod import Pod
from spinney.backends.fit import misfit, rooms
from tests import make


def node(name: str, gpus: int, **changes: Any) -> Node:
    """A ready node."""
    body = make.node(name, gpus).build()
    body["spec"] = changes
    return convert(Node, body)


def pod(name: str, gpus: int, on: str = "", priority: int = 0, **spec: Any) -> Pod:
    """A pod, perhaps on a node already."""
    builder = make.pod(name).gpus(gpus).label("app", "x")
    if on:
        builder.on(on)
    body = builder.build()
    body["spec"] |= {"priority": priority, **spec}
    return convert(Pod, body)


def anti() -> dict[str, Any]:
    """Anti-affinity between the pods of one app, host by host."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("nodes", "pods", "fits"),
    [
        ([node("a", 8)], [pod("p", 4), pod("q", 4)], True),
        ([node("a", 7)], [pod("p", 4), pod("q", 4)], False),
        # Small ones first would break up the room of the large one.
        ([node("a", 4), node("b", 2)], [pod("s", 1), pod("t", 1), pod("large", 4)], True),
        ([node("a", 8, unschedulable=True)], [pod("p", 1)], False),
        ([node("a", 8, taints=[{"key": "k", "effect": "NoSchedule"}])], [pod("p", 1)], False),
        (
            [node("a", 8, taints=[{"key": "k", "effect": "NoSchedule"}])],
            [pod("p", 1, tolerations=[{"operator": "Exists"}])],
            True,
        ),
        ([node("a", 8)], [pod("p", 1, nodeSelector={"zone": "x"})], False),
        ([node("a", 8)], [pod("p", 1, affinity=anti()), pod("q", 1, affinity=anti())], False),
        ([node("a", 8), node("b", 8)], [pod("p", 1, affinity=anti()), pod("q", 1, affinity=anti())], True),
    ],
)
def test_a_gang_fits_only_with_a_placement_in_hand(nodes: list[Node], pods: list[Pod], fits: bool) -> None:
    """Room, taints, selectors and host anti-affinity are looked at."""
    assert (misfit(pods, rooms(nodes, [])) is None) is fits


def test_pods_on_nodes_take_room_unless_they_could_be_preempted() -> None:
    """What has a lower priority counts as gone only when asked for."""
    nodes, held = [node("a", 8)], [pod("old", 8, on="a", priority=1)]
    assert misfit([pod("p", 1)], rooms(nodes, held)) is not None
    assert misfit([pod("p", 1)], rooms(nodes, held, above=2)) is None
    assert misfit([pod("p", 1)], rooms(nodes, held, above=1)) is not None


def test_a_node_that_is_not_ready_has_no_room() -> None:
    """Its capacity is only on paper."""
    body = make.node("a").build()
    body["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert rooms([convert(Node, body)], []) == []
