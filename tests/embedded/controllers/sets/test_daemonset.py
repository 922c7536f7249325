"""What DaemonSets need next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from spinney.api.apps import DaemonSet
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, convert
from spinney.embedded.controllers.sets.daemonset_plan import node_of, plan_daemonset
from spinney.embedded.controllers.sets.revisions import REVISION, RevisionedPlan
from tests import make

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def daemonset(max_unavailable: int | str = 1, **spec: Any) -> DaemonSet:
    """A set whose template's spec has these fields."""
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable}}
    metadata = {"name": "d", "namespace": "default", "uid": "ds", "generation": 1}
    return convert(DaemonSet, {"metadata": metadata, "spec": {"template": template, "updateStrategy": strategy}})


def node(name: str, *taints: Json, **labels: str) -> Node:
    """A node with taints and labels."""
    body = make.node(name).build()
    body["spec"] = {"taints": list(taints)}
    body["metadata"]["labels"] = labels
    return convert(Node, body)


def running(made: Json, name: str, *, ready: bool = True, **labels: str) -> Pod:
    """A planned pod, once it runs where it is meant to."""
    place = node_of(convert(Pod, made))
    metadata = {**made["metadata"], "name": name, "uid": name, "labels": {**made["metadata"]["labels"], **labels}}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T11:00:00Z"}
    spec, status = {**made["spec"], "nodeName": place}, {"phase": "Running", "conditions": [condition]}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status})


def plan(owner: DaemonSet, nodes: list[Node], *pods: Pod) -> RevisionedPlan:
    """The plan for a set."""
    return plan_daemonset(owner, nodes, list(pods), set(), NOW)


def test_every_node_gets_a_pod() -> None:
    """Each pod names its node, tolerates that the node is in trouble, and carries the template's hash."""
    made = plan(daemonset(), [node("a"), node("b")]).create
    assert [node_of(convert(Pod, pod)) for pod in made] == ["a", "b"]
    assert {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"} in made[0]["spec"][
        "tolerations"
    ]
    assert made[0]["metadata"]["labels"]["app"] == "d"
    assert made[0]["metadata"]["labels"][REVISION]


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"nodeSelector": {"gpu": "yes"}}, ["b"]),
        ({"nodeName": "a"}, ["a"]),
        ({"tolerations": [{"operator": "Exists"}]}, ["a", "b", "c"]),
        ({}, ["a", "b"]),
    ],
)
def test_which_nodes_it_is_for(spec: Json, nodes: list[str]) -> None:
    """Selectors and taints of nodes say where it runs."""
    taint = {"key": "k", "effect": "NoSchedule"}
    made = plan(daemonset(**spec), [node("a"), node("b", gpu="yes"), node("c", taint)]).create
    assert [node_of(convert(Pod, pod)) for pod in made] == nodes


def test_a_failed_pod_goes_before_the_next_comes() -> None:
    """It is deleted, and nothing is made while it is there."""
    body = {**make.pod("one").on("a").build(), "status": {"phase": "Failed"}}
    failed = convert(Pod, body)
    next_ = plan(daemonset(), [node("a")], failed)
    assert ([pod.name for pod in next_.delete], next_.create) == (["one"], [])


def test_pods_of_lost_nodes_go() -> None:
    """A pod on a node that is gone, or that it may not stay on, is deleted."""
    one, two = plan(daemonset(), [node("a"), node("b")]).create
    out = {"key": "k", "effect": "NoExecute"}
    left = plan(daemonset(), [node("b", out)], running(one, "one"), running(two, "two"))
    assert sorted(pod.name for pod in left.delete) == ["one", "two"]


def test_an_update_replaces_as_many_as_may_be_missing() -> None:
    """Pods of an old template go one by one, unless more may be missing; those that are not ready go at once."""
    nodes = [node(name) for name in "abc"]
    old = {REVISION: "old"}
    made = plan(daemonset(), nodes).create
    pods = [running(body, f"p{at}", **old) for at, body in enumerate(made)]
    assert len(plan(daemonset(), nodes, *pods).delete) == 1
    assert len(plan(daemonset(max_unavailable=2), nodes, *pods).delete) == 2
    unready = [running(made[0], "p0", ready=False, **old), *pods[1:]]
    assert [pod.name for pod in plan(daemonset(), nodes, *unready).delete] == ["p0"]


def test_status_counts_nodes() -> None:
    """The status says on how many nodes it should be, is, and is ready."""
    nodes = [node("a"), node("b")]
    one, two = plan(daemonset(), nodes).create
    status = plan(daemonset(), nodes, running(one, "one"), running(two, "two", ready=False)).status
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"], status["numberReady"]) == (2, 2, 1)
    assert (status["numberAvailable"], status["numberUnavailable"], status["updatedNumberScheduled"]) == (1, 1, 2)
