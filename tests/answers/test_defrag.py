"""Defragmentation: which pods move, what it gains, and who stays."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.answers.defrag import defrag
from spinney.answers.model import Defrag
from tests.answers.scene import Scene

RACK = "topology/rack"


def scattered(**group: Any) -> Scene:
    """Four nodes of eight GPUs in two racks; three of them have two GPUs in use each."""
    scene = Scene().queue("team")
    scene.nodes(2, **{RACK: "r0"}).nodes(2, **{RACK: "r1"})
    scene.add(
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "t"},
            "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]},
        }
    )
    for number in range(3):
        scene.job(f"j{number}", 1, 2, on=f"n{number}", **group)
    return scene


def moved(plan: Defrag) -> dict[str, tuple[str | None, str | None]]:
    return {each.pod: (each.node, each.to) for each in plan.moves}


def test_pods_move_together_and_whole_nodes_become_free() -> None:
    """Stranded GPUs and the largest gang of every level are told before and after."""
    plan = defrag(scattered().cluster(), 100)
    assert moved(plan) == {"default/j0-0": ("n0", "n1"), "default/j2-0": ("n2", "n1")}
    assert (plan.stranded_before, plan.stranded_after) == (18, 2)
    gains = {each.level: (each.before, each.after) for each in plan.levels}
    assert gains == {"node": (8, 8), RACK: (8, 16), "cluster": (8, 24)}


def test_a_limit_of_moves_is_kept() -> None:
    """With one move allowed one node is emptied."""
    plan = defrag(scattered().cluster(), 1)
    assert len(plan.moves) == 1
    assert plan.kept == {"too many pods would move": 1}


@pytest.mark.parametrize(
    ("group", "reason"),
    [({"preemptibility": "non-preemptible"}, "a pod is not preemptible")],
)
def test_protected_gangs_stay(group: dict[str, Any], reason: str) -> None:
    """Nothing moves, and the reason is told with the number of nodes."""
    plan = defrag(scattered(**group).cluster(), 100)
    assert (plan.moves, plan.kept) == ([], {reason: 3})
    assert plan.text == "No move would help: 18 GPUs are stranded."


def test_bare_pods_stay() -> None:
    """An evicted bare pod would be lost."""
    scene = scattered()
    for number in range(3):
        del scene.pod(f"j{number}-0")["metadata"]["ownerReferences"]
    assert defrag(scene.cluster(), 100).kept == {"nobody creates a pod again": 3}


def test_a_minimum_run_time_protects() -> None:
    """The queue's pods started an hour ago and may run for two."""
    scene = scattered()
    queue = next(each for each in scene.objects if each["kind"] == "Queue")
    queue["spec"]["preemptMinRuntime"] = "2h"
    assert defrag(scene.cluster(), 100).kept == {"a pod is within its minimum run time": 3}
    queue["spec"]["preemptMinRuntime"] = "30m"
    assert defrag(scene.cluster(), 100).moves


def test_a_disruption_budget_is_not_overspent() -> None:
    """One eviction is allowed: one pod moves, the next node is kept."""
    scene = scattered()
    for number in range(3):
        scene.pod(f"j{number}-0")["metadata"]["labels"] = {"app": "x"}
    scene.add(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3},
        }
    )
    plan = defrag(scene.cluster(), 100)
    assert len(plan.moves) == 1
    assert plan.kept == {"a disruption budget keeps a pod": 1}


def test_pods_that_fit_nowhere_else_stay() -> None:
    """Two nodes with five of eight GPUs in use each have no room for one another."""
    scene = Scene().nodes(3).queue("team").job("a", 1, 5, on="n0").job("b", 1, 5, on="n1")
    plan = defrag(scene.cluster(), 100)
    assert (plan.moves, plan.kept) == ([], {"the pods fit nowhere else": 2})
