"""Which pods lose their gate, in which order, and which gate."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.core import Pod
from spinney.api.meta import convert
from spinney.api.podgang import PodGang
from spinney.grove.model.gang_members import Member
from spinney.grove.replica import gates
from tests import make

GATE = "grove.io/podgang"


def pod(name: str, index: int = 0, cpu: str = "1", node: str = "", *others: str) -> Pod:
    """A pod of a gang; without a node it is gated."""
    built = make.pod(name).request(cpu=cpu).label("grove.io/podclique-pod-index", str(index))
    for gate in (*others, *(() if node else (GATE,))):
        built.gate(gate)
    return (built.on(node) if node else built).typed(Pod)


def gang(*pods: Pod, ready: bool = True, observed: int = 3) -> PodGang:
    """A stored gang that names pods, with what its backend says."""
    references = [{"namespace": "default", "name": pod.name} for pod in pods]
    said = {"type": "BackendReady", "status": "True" if ready else "False", "observedGeneration": observed}
    return convert(
        PodGang,
        {
            "metadata": {"name": "g", "generation": 3},
            "spec": {"podgroups": [{"name": "a", "minReplicas": 1, "podReferences": references}]},
            "status": {"phase": "Pending", "conditions": [said]},
        },
    )


def released(stored: PodGang, *members: Member, **how: Any) -> list[str]:
    """The names of the pods that are let go."""
    settings = {"base_scheduled": True, "surplus_held": False, **how}
    return [pod.name for pod in gates.releasable(stored, members, GATE, **settings)]


def test_all_pods_of_a_complete_gang_are_let_go_together() -> None:
    """Whatever they ask for."""
    pods = [pod("small", 0, "1"), pod("large", 1, "8"), pod("middle", 2, "4")]
    assert released(gang(*pods), Member("a", 1, 3, pods)) == ["small", "large", "middle"]


def test_the_largest_go_first() -> None:
    """Pods of the same size go at once."""
    pods = [pod("small", 0, "1"), pod("large", 1, "8"), pod("middle", 2, "4"), pod("little", 3, "1")]
    assert [[member.name for member in wave] for wave in gates.waves(pods)] == [
        ["large"],
        ["middle"],
        ["small", "little"],
    ]


@pytest.mark.parametrize(
    ("stored", "wanted", "how"),
    [
        ({"ready": False}, 2, {}),
        ({"observed": 2}, 2, {}),
        ({}, 3, {}),
        ({}, 2, {"base_scheduled": False}),
    ],
    ids=["backend-not-ready", "older-generation", "pod-missing", "base-gang-waits"],
)
def test_nobody_goes_before_all_can(stored: dict[str, Any], wanted: int, how: dict[str, Any]) -> None:
    """One condition that does not hold keeps the whole gang."""
    pods = [pod("one", 0), pod("two", 1)]
    assert released(gang(*pods, **stored), Member("a", 1, wanted, pods), **how) == []


def test_a_pod_that_is_not_referenced_keeps_the_gang() -> None:
    """A pod must be named by its gang before any goes."""
    pods = [pod("one", 0), pod("two", 1)]
    assert released(gang(pods[0]), Member("a", 1, 2, pods)) == []


def test_surplus_waits_where_the_scheduler_needs_that() -> None:
    """Beyond the minimum pods stay gated until the gang is on its nodes, lowest ordinals first."""
    pods = [pod("two", 2), pod("zero", 0), pod("one", 1)]
    member = Member("a", 2, 3, pods)
    assert sorted(released(gang(*pods), member, surplus_held=True)) == ["one", "zero"]
    placed = [pod("zero", 0, node="n1"), pod("one", 1, node="n2"), pod("two", 2)]
    assert released(gang(*placed), Member("a", 2, 3, placed), surplus_held=True) == ["two"]


def test_only_our_gates_are_removed() -> None:
    """The backend's gate and upstream's old one come off, wherever they stand; others stay."""
    held = pod("one", 0, "1", "", "team.io/wait", "grove.io/podgang-pending-creation")
    assert gates.own_gates(held, GATE) == ("grove.io/podgang-pending-creation", GATE)


@pytest.mark.parametrize(
    ("gated_pod", "free"),
    [
        (pod("held"), False),
        (pod("taken-over", 0, "1", "n1", "grove.io/podgang-pending-creation"), False),
        (pod("held-by-others", 0, "1", "n1", "team.io/wait"), True),
        (pod("placed", node="n1"), True),
    ],
    ids=lambda value: value.name if isinstance(value, Pod) else "",
)
def test_a_pod_is_free_for_us_when_our_gates_are_off(gated_pod: Pod, free: bool) -> None:
    """Gates of others do not count as holding a pod back."""
    assert (not gates.own_gates(gated_pod, GATE)) is free
