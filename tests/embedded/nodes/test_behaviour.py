"""What a simulated container does, from annotations and commands."""

from __future__ import annotations

import math

import pytest

from spinney.api import run_times
from spinney.api.run_times import sleep_seconds
from spinney.embedded.nodes.behaviour import Behaviour, BehaviourError, behaviour

FOREVER = math.inf


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        (["sleep", "30"], 30),
        (["/bin/sleep", "1.5"], 1.5),
        (["sleep", "2m"], 120),
        (["sh", "-c", "sleep 3600"], 3600),
        (["/bin/bash", "-c", "sleep infinity"], FOREVER),
        (["sleep", "infinity"], FOREVER),
        (["sleep"], None),
        (["sleep", "500ms"], None),
        (["sh", "-c", "sleep 1; train"], None),
        (["nginx"], None),
        ([], None),
    ],
)
def test_sleep_is_understood_and_nothing_else(command: list[str], seconds: float | None) -> None:
    """Only a command that is `sleep N`, alone or as a shell's whole script, has a length."""
    assert sleep_seconds(command) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5s", 1.5), ("500ms", 0.5), ("2m30s", 150), ("1h", 3600), ("1d", 86400), ("never", FOREVER)],
)
def test_durations(text: str, seconds: float) -> None:
    """Durations are seconds, Go's units, days, or never."""
    assert run_times.seconds(text) == seconds


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, Behaviour()),
        ({"start-after": "2s"}, Behaviour(start_after=2)),
        ({"ready-after": "never"}, Behaviour(ready_after=FOREVER)),
        ({"run-for": "10"}, Behaviour(run_for=10)),
        ({"run-for": "10", "exit-code": "3"}, Behaviour(run_for=10, exit_code=3)),
        ({"exit-code": "3"}, Behaviour(run_for=0, exit_code=3)),
        ({"crashes": "2"}, Behaviour(run_for=0, exit_code=1, crashes=2)),
        ({"stop-after": "never"}, Behaviour(stop_after=FOREVER)),
        ({"run-for": "10", "run-for.main": "20"}, Behaviour(run_for=20)),
        ({"run-for.other": "20"}, Behaviour()),
    ],
)
def test_annotations(annotations: dict[str, str], expected: Behaviour) -> None:
    """Each annotation sets one thing; one that names the container goes before one that does not."""
    assert behaviour({f"spinney.dev/{key}": value for key, value in annotations.items()}, "main") == expected


def test_an_annotation_goes_before_a_sleep() -> None:
    """`run-for` overrides what the command says, an exit code goes with it."""
    annotations = {"spinney.dev/run-for": "5s"}
    assert behaviour(annotations, "main", ["sleep", "30"]).run_for == 5
    assert behaviour({"spinney.dev/exit-code": "1"}, "main", ["sleep", "30"]) == Behaviour(run_for=30, exit_code=1)


def test_an_init_container_that_says_nothing_is_done_at_once() -> None:
    """Init containers have to end, so they do."""
    assert behaviour({}, "setup", ["prepare"], init=True).run_for == 0
    assert behaviour({}, "setup", ["sleep", "3"], init=True).run_for == 3


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("run-for", "soon", "spinney.dev/run-for: 'soon' is not a duration"),
        ("ready-after", "-1s", "spinney.dev/ready-after: '-1s' is not a duration"),
        ("exit-code", "256", "from 0 to 255"),
        ("crashes", "some", "how many runs crash"),
    ],
)
def test_bad_annotations_say_what_to_write(key: str, value: str, hint: str) -> None:
    """An annotation that cannot be read is named, with what is allowed."""
    with pytest.raises(BehaviourError, match=hint):
        behaviour({f"spinney.dev/{key}": value}, "main")
