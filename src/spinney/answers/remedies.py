"""The smallest change that lets a waiting gang run: its blockers are taken away in a trial, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.answers.cluster import Schedule
from spinney.answers.cures import take_away
from spinney.answers.trial import trial
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state.problems import Problem
from spinney.scheduler.why.advice import advice
from spinney.scheduler.why.blocker import dominant

# Blockers that are taken away before a gang counts as beyond help.
_MOST_STEPS = 6


@dataclass(frozen=True)
class Remedy:
    """What to do, step by step, and the blocker that would be left; None if the gang would then run."""

    steps: Sequence[str]
    left: Problem | None = None

    @property
    def is_enough(self) -> bool:
        """Whether the gang was placed in the trial with these steps."""
        return self.left is None and bool(self.steps)


def remedy(schedule: Schedule, key: str) -> Remedy:
    """What lets a gang run; the state is the same afterwards."""
    steps: list[str] = []
    current = schedule.plan
    with trial(schedule.state) as changed:
        for _ in range(_MOST_STEPS):
            problem = _blocker(current, key)
            if problem is None:
                return Remedy(steps)
            step = advice(problem)
            if step and step not in steps:
                steps.append(step)
            if not take_away(changed, problem, key):
                return Remedy(steps, problem)
            current = plan(schedule.state, schedule.config, schedule.plan.now)
        return Remedy(steps, _blocker(current, key))


def _blocker(current: Plan, key: str) -> Problem | None:
    """What keeps a gang waiting in a plan; None once it is placed."""
    if any(decision.job == key and decision.kind in ("bind", "wait") for decision in current.decisions):
        return None
    return dominant(current.problems.get(key, ()))
