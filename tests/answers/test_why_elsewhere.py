"""Why a workload waits when it is not the plan that holds it: gates, missing groups, other schedulers, backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spinney.answers.explanation import explanations
from spinney.answers.model import ExpectedStart
from spinney.answers.whatif import forecast
from spinney.answers.workloads import workloads
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


def test_expected_start_from_deadlines() -> None:
    """A gang starts when enough of what runs has ended; who has no end makes it unknown."""
    scene = Scene().nodes(1).queue("team").job("runs", 1, 8, on="n0").job("waits", 1, 8)
    first = next(each for each in workloads(scene.cluster()).items if each.ref.name == "waits").expected_start
    assert first is not None
    assert (first.at, first.sureness) == (None, "unknown")
    scene.pod("runs-0")["spec"]["activeDeadlineSeconds"] = 4200
    start = next(each for each in workloads(scene.cluster()).items if each.ref.name == "waits").expected_start
    assert start is not None
    # It has run for an hour of its seventy minutes.
    assert (start.at, start.sureness) == ("2026-05-04T12:10:00Z", "estimate")


def test_a_start_beyond_what_is_played_forward_is_not_said_to_be_unknowable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large cluster is played forward by few moments: run times are known, the start only lies further ahead."""
    monkeypatch.setattr(forecast, "_MOST_MOMENTS", 1)
    monkeypatch.setattr(forecast, "_LEAST_MOMENTS", 1)
    scene = Scene().nodes(1).queue("team").job("runs", 1, 8, on="n0")
    scene.job("first", 1, 8).job("second", 1, 8)
    for name in ("runs-0", "first-0", "second-0"):
        scene.pod(name)["spec"]["activeDeadlineSeconds"] = 7200
    starts = {each.ref.name: each.expected_start for each in workloads(scene.cluster()).items}
    known_start, later = starts["first"], starts["second"]
    assert known_start is not None
    assert known_start.at is not None
    assert "by then at the latest" in known_start.text
    assert later is not None
    assert later.text == "it lies further ahead than a cluster of this size is played forward"


def test_expected_start_behind_another_gang() -> None:
    """Who is first in line goes first, and for as long as it says."""
    scene = Scene().nodes(1).queue("team").job("runs", 1, 8, on="n0").job("first", 1, 8).job("second", 1, 8)
    scene.pod("runs-0")["metadata"]["annotations"]["spinney.dev/run-for"] = "4200s"
    scene.pod("first-0")["metadata"]["annotations"]["spinney.dev/run-for"] = "600s"
    by_name = {each.ref.name: each for each in workloads(scene.cluster()).items}
    line = sorted(("first", "second"), key=lambda name: by_name[name].line or 0)
    first, second = (by_name[name].expected_start for name in line)
    assert first is not None
    assert first.at == "2026-05-04T12:10:00Z"
    assert second is not None
    # The first has a known end only if it is the one that says how long it runs.
    assert second.at == ("2026-05-04T12:20:00Z" if line[0] == "first" else None)


def start_of(scene: Scene, name: str) -> ExpectedStart:
    """The expected start of a workload."""
    start = next(each for each in workloads(scene.cluster()).items if each.ref.name == name).expected_start
    assert start is not None
    return start


@pytest.mark.parametrize(
    "says",
    [
        {"annotations": {"spinney.dev/run-for": "4200"}},
        {"annotations": {"spinney.dev/run-for.main": "1h10m"}},
        {"command": ["sleep", "70m"]},
        {"command": ["sh", "-c", "echo hello; sleep 4200"]},
    ],
)
def test_expected_start_from_what_pods_say(says: Json) -> None:
    """Plain seconds, one container's annotation and `sleep N` count as on simulated nodes."""
    scene = Scene().nodes(1).queue("team").job("runs", 1, 8, on="n0").job("waits", 1, 8)
    pod = scene.pod("runs-0")
    pod["metadata"]["annotations"] |= says.get("annotations", {})
    pod["spec"]["containers"][0] |= {"name": "main", "command": says.get("command", [])}
    start = start_of(scene, "waits")
    assert (start.at, start.sureness) == ("2026-05-04T12:10:00Z", "estimate")


def test_expected_start_from_history() -> None:
    """Pods like the one in the way ran for 30 to 90 minutes: of those that ran longer than it, the median counts."""
    scene = Scene().nodes(1).queue("team").job("runs", 1, 8, on="n0").job("waits", 1, 8)
    for number, minutes in enumerate((30, 70, 80, 90)):
        state = {"terminated": {"exitCode": 0, "finishedAt": ago(7200 - 60 * minutes)}}
        ended = scene.member(f"old-{number}", "", 8, on="n0")
        ended.status(phase="Succeeded", startTime=ago(7200), containerStatuses=[{"name": "main", "state": state}])
        scene.add(ended)
    start = start_of(scene, "waits")
    assert (start.at, start.sureness) == ("2026-05-04T12:20:00Z", "guess")
    assert "as long as others like them did" in start.text
    scene.pod("runs-0")["spec"]["containers"][0]["image"] = "another"
    assert start_of(scene, "waits").sureness == "unknown"
