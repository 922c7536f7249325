"""A gang that the scheduler fails on must not stop the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.scheduler.actions import allocate
from spinney.scheduler.advice import advice
from spinney.scheduler.config import Config
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.gangs import Gang, Job
from spinney.scheduler.plan import Plan, Stumble, plan
from spinney.scheduler.reasons import LeftAside
from spinney.scheduler.service.aside import Aside
from spinney.scheduler.texts import message
from tests.scheduler.clusters import Cluster, statuses


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that were tried to be placed; on the one named `bad` it fails half-way."""
    seen: list[str] = []
    place = allocate.place_gang

    def place_gang(cycle: Cycle, gang: Gang, *rest: object, **options: bool) -> bool:
        assert isinstance(gang, Job)
        seen.append(gang.key)
        done = place(cycle, gang, *rest, **options)  # type: ignore[arg-type]  # handed on as they came
        if gang.key == "bad":
            raise ValueError("no such row")
        return done

    monkeypatch.setattr(allocate, "place_gang", place_gang)
    return seen


def cluster() -> Cluster:
    """Room for both gangs, one of which breaks every plan."""
    return Cluster(4).queue("q", 100).job("bad", "q", [""]).job("good", "q", [""])


def decide(aside: Aside, stage: Cluster, now: float = 0.0) -> Plan:
    """One more plan."""
    return aside.plan(stage.state, Config(), now, None)


@pytest.mark.usefixtures("tried")
def test_the_others_are_placed_and_it_hears_why_it_waits() -> None:
    """What was done for it is taken back, and its reason says whose fault it is."""
    done = decide(Aside(), cluster())
    assert statuses(done) == {"good-0": "Binding"}
    (problem,) = done.problems["bad"]
    assert isinstance(problem, LeftAside)
    assert "leaves it out until it changes: ValueError: no such row" in message(problem)
    assert "spinney snapshot save" in advice(problem)


def test_it_is_tried_again_when_it_changes_and_from_time_to_time(tried: list[str]) -> None:
    """Between that, no plan is lost on it."""
    aside, stage = Aside(), cluster()
    decide(aside, stage)
    tried.clear()
    decide(aside, stage, now=60.0)
    assert "bad" not in tried
    decide(aside, stage, now=301.0)
    assert "bad" in tried
    tried.clear()
    stage.state.set_job(replace(stage.state.jobs["bad"].spec, priority=7))
    decide(aside, stage, now=302.0)
    assert "bad" in tried


@pytest.mark.usefixtures("tried")
def test_a_plan_alone_says_which_gang_it_failed_on() -> None:
    """Tools that ask for one plan see the fault itself."""
    with pytest.raises(Stumble, match="failed on gang bad") as caught:
        plan(cluster().state, Config(), 0.0)
    assert isinstance(caught.value.__cause__, ValueError)
