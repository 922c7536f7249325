"""Node taints and how long pods stay among them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from spinney.api.affinity import Taint
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, convert
from spinney.embedded.controllers.pods.node_taints import plan_taints
from spinney.embedded.controllers.pods.taint_eviction import seconds_left
from tests import make

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def node(ready: str = "True", **spec: Any) -> Node:
    """A node with a Ready condition."""
    body = make.node("node-1").build()
    body["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    return convert(Node, body | {"spec": spec})


def keys(taints: list[Json] | None) -> list[str]:
    """Taints as `key:effect`."""
    return [f"{taint['key'].rpartition('/')[2]}:{taint['effect']}" for taint in taints or []]


@pytest.mark.parametrize(
    ("made", "taints"),
    [
        (node("False"), ["not-ready:NoExecute", "not-ready:NoSchedule"]),
        (node("Unknown"), ["unreachable:NoExecute", "unreachable:NoSchedule"]),
        (node(unschedulable=True), ["unschedulable:NoSchedule"]),
    ],
)
def test_conditions_and_cordons_become_taints(made: Node, taints: list[str]) -> None:
    """As kube-controller-manager names them."""
    assert keys(plan_taints(made, NOW)) == taints


def test_a_node_that_is_right_is_not_written() -> None:
    """Neither a healthy node nor one whose taints are there already."""
    assert plan_taints(node(), NOW) is None
    cordoned = node(unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    assert plan_taints(cordoned, NOW) is None


def test_taints_of_others_stay() -> None:
    """Only the control plane's own come and go."""
    own = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    lost = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    assert plan_taints(node(taints=[own, lost]), NOW) == [own]


@pytest.mark.parametrize(
    ("tolerations", "left"),
    [
        ([], 0),
        ([{"key": "lost", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}], 240),
        ([{"key": "lost", "operator": "Exists"}], math.inf),
        ([{"operator": "Exists"}], math.inf),
        ([{"key": "other", "operator": "Exists"}], 0),
        ([{"key": "lost", "operator": "Exists", "tolerationSeconds": 30}], 0),
    ],
)
def test_how_long_a_pod_may_stay(tolerations: list[Json], left: float) -> None:
    """At once without a toleration, as long as it says from when the taint came, or for ever."""
    taint = convert(Taint, {"key": "lost", "effect": "NoExecute", "timeAdded": "2026-01-01T11:59:00Z"})
    body = make.pod("a").build()
    body["spec"]["tolerations"] = tolerations
    assert seconds_left(convert(Pod, body), [taint], NOW) == left


def test_taints_that_only_hold_off_new_pods_move_nobody() -> None:
    """NoSchedule evicts no one."""
    taint = convert(Taint, {"key": "full", "effect": "NoSchedule"})
    assert seconds_left(make.pod("a").typed(Pod), [taint], NOW) == math.inf
