"""How far a workload's pods got: each step with the time of the last pod that took it."""

from __future__ import annotations

from typing import Any

from spinney.answers.tree import tree_of
from spinney.answers.workloads import parts_of, prospects_of
from tests.answers.scene import Scene, ago, owner

GROVE, GANGS = "grove.io/v1alpha1", "scheduler.grove.io/v1alpha1"


def gang(name: str, base: str = "", **since: float) -> dict[str, Any]:
    """A PodGang of the set with conditions that are true since so many seconds."""
    return {
        "apiVersion": GANGS,
        "kind": "PodGang",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"grove.io/base-podgang": base} if base else {},
            "ownerReferences": [owner(GROVE, "PodCliqueSet", "set")],
        },
        "status": {
            "conditions": [
                {"type": kind, "status": "True", "reason": "Test", "message": "m", "lastTransitionTime": ago(seconds)}
                for kind, seconds in since.items()
            ]
        },
    }


def steps_of(*objects: dict[str, Any], pods: dict[str, tuple[str, list[dict[str, str]]]]) -> dict[str, tuple[str, int]]:
    """The steps of a set with some gangs and pods: name → (gang, gates)."""
    scene = Scene().nodes(1).queue("team")
    scene.add({"apiVersion": GROVE, "kind": "PodCliqueSet", "metadata": {"name": "set", "uid": "uid-set"}}, *objects)
    scene.objects[-len(objects) - 1]["metadata"]["namespace"] = "default"
    for name, (gang_name, gates) in pods.items():
        pod = Scene.member(name, "").label("grove.io/podgang", gang_name)
        built = pod.metadata(ownerReferences=[owner(GROVE, "PodCliqueSet", "set")]).build()
        built["spec"]["schedulingGates"] = gates
        scene.add(built)
    cluster = scene.cluster()
    (parts,) = (parts for ref, parts in parts_of(cluster).items() if ref.name == "set")
    timeline = tree_of(cluster, parts, prospects_of(cluster)).timeline
    return {step.step: (step.at, step.pods) for step in timeline}


def test_pods_of_a_gang_were_gated_and_are_released_when_it_is_complete() -> None:
    """The API keeps no time for a gate that is gone; both steps stayed empty."""
    steps = steps_of(gang("set-0", Initialized=50), pods={"a": ("set-0", []), "b": ("set-0", [])})
    assert steps == {"created": (ago(60), 2), "gated": (ago(60), 2), "released": (ago(50), 2)}


def test_a_pod_that_still_has_a_gate_is_not_released() -> None:
    """Surplus pods may keep theirs for longer."""
    gate = [{"name": "grove.io/podgang-pending-creation"}]
    steps = steps_of(gang("set-0", Initialized=50), pods={"a": ("set-0", []), "b": ("set-0", gate)})
    assert steps["gated"][1] == 2
    assert steps["released"] == (ago(50), 1)


def test_a_scaled_gang_is_released_once_its_base_gang_is_scheduled() -> None:
    """However early it was complete."""
    gangs = gang("set-0", Initialized=50, Scheduled=20), gang("set-0-x-0", "set-0", Initialized=45)
    assert steps_of(*gangs, pods={"a": ("set-0-x-0", [])})["released"] == (ago(20), 1)
