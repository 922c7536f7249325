"""The smallest change that lets a waiting gang run, found by removing its blockers in a trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spinney.answers.cluster import Schedule
from spinney.answers.cures import remove_blocker
from spinney.answers.whatif.trial import Trial, trial
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state.problems import NoDomain, NoRoom, Problem
from spinney.scheduler.state.refusal import Refusal
from spinney.scheduler.why.advice import advice, is_curable
from spinney.scheduler.why.blocker import deciding_refusal, dominant

# Blockers to remove before a gang counts as one that no advice helps.
_MOST_STEPS = 6


@dataclass(frozen=True)
class Remedy:
    """The blockers to remove in turn, and the blocker that remains; None if the gang then runs."""

    problems: Sequence[Problem]
    left: Problem | None = None

    @property
    def steps(self) -> list[str]:
        """What to do, step by step; each place that needs more room is named once."""
        steps: dict[object, str] = {}
        for problem in self.problems:
            step = advice(problem)
            if step:
                steps.setdefault(_place(problem) or step, step)
        return list(steps.values())

    @property
    def is_shared(self) -> bool:
        """True if other gangs take new room first, so that more of it is needed."""
        places = list(filter(None, map(_place, self.problems)))
        return len(places) > len(set(places))

    @property
    def is_enough(self) -> bool:
        """Whether the gang was placed in the trial with these steps."""
        return self.left is None and bool(self.steps)


def remedy(schedule: Schedule, key: str) -> Remedy:
    """What lets a gang run; the state is the same afterwards."""
    first = _blocker(schedule.plan, key)
    if first is None:
        return Remedy(())
    with trial(schedule.state) as changed:
        for problem in _variants(first):
            if _runs(schedule, changed, key, [problem]):
                return Remedy([problem])
        cure = _remove_in_turn(schedule, changed, key)
        return cure if cure.left is not None else Remedy(_needed(schedule, changed, key, cure.problems))


def _place(problem: Problem) -> object:
    """Where room has to be made; None if it is not room that is missing."""
    match problem:
        case NoDomain():
            return NoDomain, problem.domain
        case NoRoom() if not any(
            isinstance(refusal, Refusal) and is_curable(refusal) for refusal, _ in problem.refusals
        ):
            return NoRoom
        case _:
            return None


def _variants(problem: Problem) -> Iterator[Problem]:
    """The problem, then the problem without its first refusals in turn: those may not be the ones that decide."""
    yield problem
    while isinstance(problem, NoRoom) and len(problem.refusals) > 1:
        deciding = deciding_refusal(problem)
        problem = replace(problem, refusals=tuple(pair for pair in problem.refusals if pair[0] != deciding))
        yield problem


def _remove_in_turn(schedule: Schedule, changed: Trial, key: str) -> Remedy:
    """Remove each blocker that shows once those before it are gone."""
    taken: list[Problem] = []
    current = schedule.plan
    with changed.attempt():
        for _ in range(_MOST_STEPS):
            problem = _blocker(current, key)
            if problem is None:
                return Remedy(taken)
            taken.append(problem)
            if not remove_blocker(changed, problem, key):
                return Remedy(taken, problem)
            current = plan(schedule.state, schedule.config, schedule.plan.now)
        return Remedy(taken, _blocker(current, key))


def _needed(schedule: Schedule, changed: Trial, key: str, taken: Sequence[Problem]) -> Sequence[Problem]:
    """The blockers without those that the gang also runs with."""
    needed = list(taken)
    for problem in taken[:-1]:
        fewer = [each for each in needed if each is not problem]
        if _runs(schedule, changed, key, fewer):
            needed = fewer
    return needed


def _runs(schedule: Schedule, changed: Trial, key: str, problems: Sequence[Problem]) -> bool:
    """Whether the gang is placed once just these blockers are gone."""
    with changed.attempt():
        if not all(remove_blocker(changed, problem, key) for problem in problems):
            return False
        return _blocker(plan(schedule.state, schedule.config, schedule.plan.now), key) is None


def _blocker(current: Plan, key: str) -> Problem | None:
    """What keeps a gang waiting in a plan; None once it is placed."""
    if any(decision.job == key and decision.kind in ("bind", "wait") for decision in current.decisions):
        return None
    return dominant(current.problems.get(key, ()))
