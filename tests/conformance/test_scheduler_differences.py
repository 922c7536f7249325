"""Where KAI decides otherwise, it is because of the faults that docs/differences.md names: with them, we agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from spinney.scheduler import cases, search
from spinney.scheduler import status as st
from spinney.scheduler.gangs import Job
from spinney.scheduler.moves import Checkpoint, Moves
from spinney.scheduler.nodes import Rows
from spinney.scheduler.plugins.reclaiming import Reclaiming
from spinney.scheduler.tasks import Task
from spinney.scheduler.topology import Domains
from spinney.scheduler.trials import Trial
from tests import data


@cache
def _cases(name: str) -> dict[str, Any]:
    file = data.path(f"conformance/kai-random/{name}")
    return {entry["case"]["Name"]: entry for entry in json.loads(file.read_text())}


def _narrow_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only domains inside the narrowest one that holds all nodes with room are tried."""
    common = Domains.common
    monkeypatch.setattr(Domains, "common", lambda self, rows, _: common(self, rows, -1))


def _victims_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job with victims of a smaller trial and of this one counts twice against its queue."""

    class Twice:
        def __init__(self, trial: Trial) -> None:
            self.preemptor, self.pending, self.trial = trial.preemptor, trial.pending, trial

        def victims(self) -> Iterator[tuple[Job, list[Task]]]:
            settled = {task.job for batch in self.trial.recorded for task in batch}
            tried = {task.job for batch in self.trial.potential for task in batch}
            for job, tasks in self.trial.victims():
                yield from [(job, tasks)] * (2 if job in settled & tried else 1)

    fair: Callable[..., bool] = Reclaiming.reclaim_is_fair
    monkeypatch.setattr(Reclaiming, "reclaim_is_fair", lambda self, trial: fair(self, Twice(trial)))


def _first_ways_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Victims are added in one order only, and no choice among a few of them is tried."""
    monkeypatch.setattr(search, "every_choice", lambda _: iter(()))


def _victims_end_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Victims without GPUs are placed again only on nodes that whom they make room for could use."""
    config = cases._config
    monkeypatch.setattr(cases, "_config", lambda entry: replace(config(entry), rehome_anywhere=False))


def _traces_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that a trial moved to another GPU of its node stays counted as leaving when the trial is given up."""
    rollback = Moves.rollback

    def leaving_traces(self: Moves, point: Checkpoint) -> None:
        moved: list[tuple[Task, int]] = []
        for move in self.done[point[1] :]:
            before = self.evicted.get(move.task.key)
            if move.kind == "wait" and move.groups and before is not None and before.node == move.node:
                moved += [(move.task, move.node)] if before.groups != move.groups else []
        rollback(self, point)
        for task, row in moved:
            if task.status != st.RELEASING and task.node == row:
                self.state.track(task, row, st.RELEASING, 1)
                self.state.nodes.touched.append(row)
                self.version += 1

    def always_again(self: search.Solver, generator: Callable[..., Any], tasks: list[Task], feasible: Rows) -> bool:
        recorded: list[list[Task]] = []

        def probe(count: int) -> bool:
            nonlocal recorded
            point = self.cycle.moves.checkpoint()
            found = self._probe(generator, tasks[:count], recorded, feasible)
            if found is not None:
                recorded = found[0]
                self.cycle.moves.rollback(point)
            return found is not None

        return (
            bool(search._largest(len(tasks), probe)) and self._probe(generator, tasks, recorded, feasible) is not None
        )

    monkeypatch.setattr(Moves, "rollback", leaving_traces)
    monkeypatch.setattr(search.Solver, "_solve_with", always_again)


TRACED = [
    ("cases.json", "random 90", [_narrow_domains]),
    ("cases.json", "random 123", [_narrow_domains]),
    ("cases.json", "random 206", [_victims_twice]),
    ("cases.json", "random 223", [_narrow_domains, _victims_twice]),
    ("cases.json", "random 320", [_victims_twice, _first_ways_only]),
    ("cases.json", "random 543", [_victims_twice]),
    ("cases.json", "random 897", [_narrow_domains]),
    *(("cases.json", f"random {number}", [_first_ways_only]) for number in (590, 632, 867, 1495)),
    ("sharing.json", "sharing 165", [_first_ways_only]),
    *(("sharing.json", f"sharing {number}", [_victims_end_for_nothing]) for number in (34, 748)),
    *(("sharing.json", f"sharing {number}", [_narrow_domains]) for number in (283, 313, 724)),
    ("sharing.json", "sharing 862", [_narrow_domains, _first_ways_only]),
    *(("sharing.json", f"sharing {number}", [_traces_of_trials]) for number in (200, 370, 378, 603, 716, 824, 848)),
]


@pytest.mark.parametrize(("file", "name", "faults"), TRACED, ids=[name for _, name, _ in TRACED])
def test_a_difference_goes_away_with_the_fault_that_explains_it(
    monkeypatch: pytest.MonkeyPatch, file: str, name: str, faults: list[Callable[[pytest.MonkeyPatch], None]]
) -> None:
    """We differ from what KAI was seen to decide, and agree once we make its mistake."""
    entry = _cases(file)[name]
    assert not cases.run_case(entry).passed
    for fault in faults:
        fault(monkeypatch)
    assert cases.run_case(entry).passed
