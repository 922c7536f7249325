"""When a waiting workload is expected to start, and how sure that is."""

from __future__ import annotations

import pytest

from spinney.answers.model import ExpectedStart
from spinney.answers.whatif import forecast
from spinney.answers.workloads import workloads
from tests.answers.scene import Json, Scene, ago


def full() -> Scene:
    """A node whose GPUs are all used by one pod, which has run for an hour."""
    return Scene().nodes(1).queue("team").job("runs", 1, 8, on="n0")


def start_of(scene: Scene, name: str) -> ExpectedStart:
    """The expected start of a workload."""
    start = next(each for each in workloads(scene.cluster()).items if each.ref.name == name).expected_start
    assert start is not None
    return start


def test_expected_start_from_deadlines() -> None:
    """A gang starts when enough of what runs has ended; who has no end makes it unknown."""
    scene = full().job("waits", 1, 8)
    start = start_of(scene, "waits")
    assert (start.at, start.sureness) == (None, "unknown")
    scene.pod("runs-0")["spec"]["activeDeadlineSeconds"] = 4200
    start = start_of(scene, "waits")
    # It has run for an hour of its seventy minutes.
    assert (start.at, start.sureness) == ("2026-05-04T12:10:00Z", "estimate")


def test_a_start_beyond_what_is_played_forward_is_not_said_to_be_unknowable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large cluster is played forward by few moments: run times are known, the start only lies further ahead."""
    monkeypatch.setattr(forecast, "_MOST_MOMENTS", 1)
    monkeypatch.setattr(forecast, "_LEAST_MOMENTS", 1)
    scene = full().job("first", 1, 8).job("second", 1, 8)
    for name in ("runs-0", "first-0", "second-0"):
        scene.pod(name)["spec"]["activeDeadlineSeconds"] = 7200
    start = start_of(scene, "first")
    assert start.at is not None
    assert "by then at the latest" in start.text
    assert start_of(scene, "second").text == "it lies further ahead than a cluster of this size is played forward"


def test_expected_start_behind_another_gang() -> None:
    """Who is first in line goes first, and for as long as it says."""
    scene = full().job("first", 1, 8).job("second", 1, 8)
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
    scene = full().job("waits", 1, 8)
    pod = scene.pod("runs-0")
    pod["metadata"]["annotations"] |= says.get("annotations", {})
    pod["spec"]["containers"][0] |= {"name": "main", "command": says.get("command", [])}
    start = start_of(scene, "waits")
    assert (start.at, start.sureness) == ("2026-05-04T12:10:00Z", "estimate")


def test_expected_start_from_history() -> None:
    """Pods like the one in the way ran for 30 to 90 minutes: of those that ran longer than it, the median counts."""
    scene = full().job("waits", 1, 8)
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
