"""The life cycle of a container as data: a sequence of stages with durations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spinney.embedded.nodes.behaviour import Behaviour

# How kubelets space restarts: at once, then 10 s doubling up to 5 min; forgotten after a run of 10 min.
FIRST_BACK_OFF = 10.0
LONGEST_BACK_OFF = 300.0
BACK_OFF_FORGOTTEN = 600.0

# Timers may fire early by the wall clock: a stage with less than this left is over.
TIMER_SLACK = 0.0005

CREATING = "ContainerCreating"
CRASH_LOOP = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a container's life cycle; stages without duration are never reported."""

    state: Literal["waiting", "running", "terminated"]
    seconds: float
    reason: str = ""
    ready: bool = False
    restarts: int = 0
    exit_code: int = 0


def life_cycle(behaviour: Behaviour, policy: str, restarts: int = 0) -> Iterator[Stage]:
    """All stages of a container under a restart policy; a final stage lasts forever."""
    if restarts == 0:
        yield Stage("waiting", behaviour.start_after, CREATING)
    back_off = 0.0
    for run in itertools.count(restarts):
        runs = behaviour.run_for if run < behaviour.crashes else math.inf
        unready = min(behaviour.ready_after, runs)
        yield Stage("running", unready, restarts=run)
        yield Stage("running", runs - unready if unready < math.inf else math.inf, ready=True, restarts=run)
        if runs == math.inf:
            return
        if not restarted(policy, behaviour.exit_code):
            yield Stage("terminated", math.inf, restarts=run, exit_code=behaviour.exit_code)
            return
        yield Stage("terminated", 0.0, restarts=run, exit_code=behaviour.exit_code)
        back_off = 0.0 if runs >= BACK_OFF_FORGOTTEN else back_off
        yield Stage("waiting", back_off, CRASH_LOOP, restarts=run)
        back_off = min(max(back_off * 2, FIRST_BACK_OFF), LONGEST_BACK_OFF)


def restarted(policy: str, exit_code: int) -> bool:
    """Whether a container with this exit code is restarted."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


@dataclass(frozen=True, slots=True)
class Ended:
    """The previous, or the last, run."""

    exit_code: int
    started: float
    finished: float


class ContainerRun:
    """The current stage of one container."""

    def __init__(self, name: str, stages: Iterator[Stage], now: float) -> None:
        self.name = name
        self.since = now
        self.started = now
        self.ended: Ended | None = None
        self._stages = stages
        self.stage = next(stages)

    def advance(self, now: float) -> None:
        """Advance to the stage at this time."""
        while now >= self.since + self.stage.seconds - TIMER_SLACK:
            self._next(self.since + self.stage.seconds)

    def finish(self, exit_code: int, now: float) -> None:
        """End the current run: its program returned, or it was killed."""
        self.ended = Ended(exit_code, self.started, now)
        self.stage = Stage("terminated", math.inf, restarts=self.stage.restarts, exit_code=exit_code)
        self.since = now
        self._stages = iter(())

    @property
    def wakes(self) -> float:
        """When its stage ends."""
        return self.since + self.stage.seconds

    @property
    def over(self) -> bool:
        """Whether the container has ended for good."""
        return self.stage.state == "terminated" and self.stage.seconds == math.inf

    def _next(self, at: float) -> None:
        before, self.stage = self.stage, next(self._stages)
        self.since = at
        if self.stage.state == "running" and before.state != "running":
            self.started = at
        if self.stage.state == "terminated":
            self.ended = Ended(self.stage.exit_code, self.started, at)
