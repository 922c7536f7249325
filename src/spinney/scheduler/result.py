"""What a cycle has decided and noticed so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.min_runtimes import MinRuntimes
from spinney.scheduler.state.problems import Problem
from spinney.scheduler.state.tasks import Triple
from spinney.scheduler.state.transaction import Move


class Attempt(NamedTuple):
    """One way to look for victims in a search: its name, how long it took and how it ended."""

    generator: str
    seconds: float
    result: str


class Searched(NamedTuple):
    """A search for victims: its action, the scenarios tried, how it ended, and the ways that were tried."""

    action: str
    scenarios: int
    result: str
    attempts: tuple[Attempt, ...]


class Turn(NamedTuple):
    """A gang that waits for its turn."""

    job: str
    queue: str
    priority: int


@dataclass(slots=True)
class Result:
    """The result of a cycle while it grows; `plan` turns it into data."""

    # Moves that are decided, each with its action and the gang that a victim goes for.
    decided: list[tuple[str, Move, Job | None]] = field(default_factory=list)
    # Grows whenever decisions are added or withdrawn.
    changes: int = 0
    # Whether anybody is to be evicted.
    evicts: bool = False
    # Why a job could not be placed, by job.
    problems: dict[str, list[Problem]] = field(default_factory=dict)
    staleness: dict[str, float | None] = field(default_factory=dict)
    # Gangs in the order of their turn, where a plugin works it out.
    turns: list[Turn] = field(default_factory=list)
    searches: list[Searched] = field(default_factory=list)
    # How long jobs are protected after they started; None if none is.
    min_runtimes: MinRuntimes | None = None
    # By queue; empty without the plugin that works them out.
    fair_share: dict[str, Triple] = field(default_factory=dict)

    def add_problem(self, job: Job, problem: Problem) -> None:
        """Note why a job could not be placed."""
        self.problems.setdefault(job.key, []).append(problem)

    def withdraw_evictions(self, tasks: set[str]) -> None:
        """Drop the latest eviction of each of some tasks."""
        rest = []
        for decision in reversed(self.decided):
            move = decision[1]
            if move.kind == "evict" and move.task.key in tasks:
                tasks.discard(move.task.key)
            else:
                rest.append(decision)
        self.decided[:] = rest[::-1]
        self.changes += 1
