"""The life of a container as a sequence of stages."""

from __future__ import annotations

import math
from itertools import islice

from spinney.embedded.nodes.behaviour import Behaviour
from spinney.embedded.nodes.stages import ContainerRun, life_cycle


def shown(does: Behaviour, policy: str, count: int = 40) -> list[str]:
    """The stages that last, as `state seconds`."""
    stages = islice(life_cycle(does, policy), count)
    return [f"{stage.state}{'*' if stage.ready else ''} {stage.seconds:g}" for stage in stages if stage.seconds]


def test_anything_runs_on_and_is_ready() -> None:
    """Without a word, a container is ready at once and runs for ever."""
    assert shown(Behaviour(), "Always", 3) == ["running* inf"]


def test_start_ready_and_end_take_the_time_they_are_given() -> None:
    """Creating, not yet ready, ready, over."""
    does = Behaviour(start_after=2, ready_after=3, run_for=10)
    assert shown(does, "Never") == ["waiting 2", "running 3", "running* 7", "terminated inf"]


def test_a_container_that_never_gets_ready_still_ends() -> None:
    """Readiness does not hold up the end."""
    assert shown(Behaviour(ready_after=math.inf, run_for=10), "Never") == ["running 10", "terminated inf"]


def test_crashes_are_spaced_like_a_kubelet_spaces_them() -> None:
    """The first restart is at once, then 10 s, doubling up to 5 min."""
    does = Behaviour(run_for=1, exit_code=1)
    waits = [float(text.split()[1]) for text in shown(does, "OnFailure", 60) if text.startswith("waiting")]
    assert waits[:8] == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_long_run_makes_the_back_off_forgotten() -> None:
    """A container that ran ten minutes starts over without a wait."""
    stages = shown(Behaviour(run_for=700, exit_code=1), "Always", 40)
    assert set(stages) == {"running* 700"}


def test_after_its_crashes_a_container_runs_on() -> None:
    """`crashes` counts the runs that end."""
    does = Behaviour(run_for=1, exit_code=1, crashes=2)
    assert shown(does, "Always") == ["running* 1", "running* 1", "waiting 10", "running* inf"]


def test_success_is_not_repeated_on_failure() -> None:
    """OnFailure ends with the first success; Always does not."""
    assert shown(Behaviour(run_for=1), "OnFailure") == ["running* 1", "terminated inf"]
    assert shown(Behaviour(run_for=1), "Always", 10)[-1] != "terminated inf"


def test_a_run_moves_with_time_and_skips_nothing() -> None:
    """Looking late shows where the container is by then, and how its last run ended."""
    run = ContainerRun("main", life_cycle(Behaviour(run_for=5, exit_code=2), "Always"), now=100)

    run.advance(107)

    assert (run.stage.state, run.stage.restarts, run.started) == ("running", 1, 105)
    assert run.ended is not None
    assert (run.ended.exit_code, run.ended.started, run.ended.finished) == (2, 100, 105)
    assert run.wakes == 110
