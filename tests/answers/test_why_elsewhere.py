"""Why a workload waits when it is not the plan that holds it: gates, missing groups, other schedulers, backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spinney.answers.explanation import explanations
from tests import make
from tests.answers.scene import Scene, ago

Json = dict[str, Any]


def bare(scheduler: str, **status: Any) -> Scene:
    """One pod of a scheduler."""
    pod = make.pod("waits").scheduler(scheduler).metadata(uid="u", creationTimestamp=ago(60))
    return Scene().nodes(1).queue("team").add(pod.status(phase="Pending", **status))


def gated() -> Scene:
    """A gang whose pods somebody else holds back."""
    scene = Scene().nodes(1).queue("team").job("waits", 2, 1)
    for number in range(2):
        scene.pod(f"waits-{number}")["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    return scene


def gang_of(backend: str, *conditions: Json) -> Scene:
    """A set whose gang carries conditions of its backend and the operator."""
    labels = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "waits",
        "grove.io/podgang": "waits-0",
        "grove.io/podclique": "waits-0-w",
        "grove.io/scheduler-backend": backend,
    }
    pod = make.pod("waits-0-w-0").scheduler(backend).metadata(uid="p", labels=labels).status(phase="Pending")
    gang = make.gang("waits-0").group("w", 1).backend(backend).status(phase="Pending", conditions=list(conditions))
    return Scene().nodes(1).add(make.pcs("waits").clique("w").metadata(uid="s"), gang, pod)


WAITING = {"type": "Scheduled", "status": "False", "reason": "WaitingForScheduler", "message": "on nodes: 0 of 1"}


def ready(message: str, reason: str = "Synced") -> Json:
    """What a backend says about a gang that its scheduler has."""
    return {"type": "BackendReady", "status": "True", "reason": reason, "message": message}


def with_placeholder() -> Scene:
    """A gang for which YuniKorn could not hold the room."""
    scene = gang_of("yunikorn", ready("the gang is defined by its pods' annotations"), WAITING)
    pod = make.pod("tg-waits").scheduler("yunikorn").status(phase="Pending", conditions=unscheduled("no GPUs left"))
    pod.metadata(
        uid="t",
        labels={"yunikorn.apache.org/app-id": "waits-0-uid-1"},
        annotations={"internal.yunikorn.apache.org/placeholder": "true"},
    )
    return scene.add(pod)


def unscheduled(message: str) -> list[Json]:
    """What a scheduler writes on a pod that it cannot place."""
    return [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]


SITUATIONS: dict[str, tuple[Callable[[], Scene], str]] = {
    "gates of others": (gated, "2 pods are held by scheduling gate kueue.x-k8s.io/admission."),
    "no group yet": (lambda: bare("kai-scheduler"), "Pod waits has no PodGroup yet."),
    "the words of another scheduler": (
        lambda: bare("default-scheduler", conditions=unscheduled("0/1 nodes are available: 1 Insufficient cpu.")),
        "Default-scheduler: 0/1 nodes are available: 1 Insufficient cpu.",
    ),
    "a scheduler that is silent": (lambda: bare("volcano"), "Scheduler volcano has said nothing about it yet."),
    "a backend that is absent": (
        lambda: gang_of(
            "volcano",
            {"type": "BackendReady", "status": "False", "reason": "NotServed", "message": "PodGroup is not served"},
        ),
        "Backend volcano: PodGroup is not served.",
    ),
    "a scheduler that does not run": (
        lambda: gang_of(
            "koordinator",
            {"type": "BackendReady", "status": "False", "reason": "SchedulerSilent", "message": "no lease was renewed"},
        ),
        "Backend koordinator: no lease was renewed.",
    ),
    "what Volcano wrote on its group": (
        lambda: gang_of(
            "volcano", ready("NotEnoughResources: 1/1 tasks in gang unschedulable", "SchedulerReports"), WAITING
        ),
        "On nodes: waits-0-w 0 of 1; volcano says: NotEnoughResources: 1/1 tasks in gang unschedulable.",
    ),
    "what YuniKorn wrote on a placeholder": (
        with_placeholder,
        "On nodes: waits-0-w 0 of 1; yunikorn says: 0 of 1 placeholders hold room: no GPUs left.",
    ),
    "a gang of which only its scheduler knows": (
        lambda: gang_of("volcano", ready("PodGroup waits-0 written"), WAITING),
        "On nodes: waits-0-w 0 of 1; volcano has the gang and has said nothing about it: "
        "only volcano knows why it waits.",
    ),
    "a base gang that waits": (
        lambda: gang_of(
            "kai",
            {"type": "Scheduled", "status": "False", "reason": "WaitingForBaseGang", "message": "base gang first"},
        ),
        "Base gang first.",
    ),
    "pods that a gang waits for": (
        lambda: gang_of(
            "default",
            {"type": "Scheduled", "status": "False", "reason": "WaitingForPods", "message": "1 of 2 pods exist"},
        ),
        "1 of 2 pods exist.",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_reason_is_that_of_whoever_holds_it(name: str) -> None:
    """One sentence that names who holds the workload."""
    build, text = SITUATIONS[name]
    (explanation,) = explanations(build().cluster(), "", "waits", "default")
    assert explanation.why is not None
    assert explanation.why.text == text


@pytest.mark.parametrize("kind", ["gang/waits-0", "podcliqueset/waits"])
def test_a_gang_of_any_backend_is_explained(kind: str) -> None:
    """`explain gang/…` and `explain set/…` said "no gang", though the PodGang exists."""
    broken = {"type": "TopologyViolated", "status": "True", "reason": "x", "message": "it is in r1 (2), r2 (1)"}
    scene = gang_of("koordinator", ready("PodGroup waits-0 written"), WAITING, broken)
    (explanation,) = explanations(scene.cluster(), *kind.split("/"), "default")
    assert "  Gang waits-0: TopologyViolated: It is in r1 (2), r2 (1)." in explanation.sentences


def test_a_missing_priority_class_is_told() -> None:
    """Its gangs run with the default priority, and nobody would notice."""
    scene = Scene().nodes(1).queue("team").job("waits", 1, 1, on="n0", priorityClassName="gone")
    (explanation,) = explanations(scene.cluster(), "job", "waits", "default")
    assert "  PriorityClass gone does not exist: priority 50 counts instead." in explanation.sentences
