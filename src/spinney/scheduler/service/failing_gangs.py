"""Leave out gangs that make a plan fail, so that one of them does not stop all others."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from spinney.scheduler.config import Config
from spinney.scheduler.place.reservations import Reservations
from spinney.scheduler.plan import Plan, Stumble, plan
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import JobSpec
from spinney.scheduler.stopwatch import Stopwatch

_log = structlog.get_logger("spinney.scheduler")

# What made a plan fail may be gone by then, though the gang is as it was.
_AGAIN_SECONDS = 300.0


@dataclass(frozen=True)
class _Left:
    spec: JobSpec
    error: str
    since: float


class FailingGangs:
    """The gangs that are left out; each is tried again when its spec changes, and periodically."""

    def __init__(self) -> None:
        self._left: dict[str, _Left] = {}

    @property
    def errors(self) -> dict[str, str]:
        """The gangs that the last plan left out, with the error met on each."""
        return {key: left.error for key, left in self._left.items()}

    def plan(
        self,
        state: State,
        config: Config,
        now: float,
        reservations: Reservations | None,
        stopwatch: Stopwatch | None = None,
    ) -> Plan:
        """Plan, and leave out each gang that the plan fails on."""
        self._left = {
            key: left
            for key, left in self._left.items()
            if key in state.jobs and state.jobs[key].spec is left.spec and now - left.since < _AGAIN_SECONDS
        }
        while True:
            try:
                errors = {key: left.error for key, left in self._left.items()}
                return plan(state, config, now, reservations, errors, stopwatch=stopwatch)
            except Stumble as stumble:
                if stumble.job in self._left:
                    raise
                _log.exception("gang.left_aside", gang=stumble.job)
                error = f"{type(stumble.__cause__).__name__}: {stumble.__cause__}"
                self._left[stumble.job] = _Left(state.jobs[stumble.job].spec, error, now)
