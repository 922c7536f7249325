"""The behaviour of a simulated container, from annotations or from a `sleep N` command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.api import run_times
from spinney.api.duration import DurationError
from spinney.api.labels import CRASHES, EXIT_CODE, READY_AFTER, RUN_FOR, START_AFTER, STOP_AFTER
from spinney.api.numbers import whole_number
from spinney.api.run_times import annotation, sleep_seconds


class BehaviourError(ValueError):
    """An invalid annotation."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Times of one container in seconds; infinity means never."""

    start_after: float = 0.0
    ready_after: float = 0.0
    run_for: float = math.inf
    exit_code: int = 0
    # How many runs end with `exit_code` before one runs forever; infinity means all of them.
    crashes: float = math.inf
    stop_after: float = 0.0


def behaviour(
    annotations: Mapping[str, str],
    container: str,
    command: Sequence[str] = (),
    *,
    init: bool = False,
    probe_delay: float = 0.0,
) -> Behaviour:
    """The behaviour of a container; by default an init container ends at once, and others run forever."""

    def seconds(key: str, default: float) -> float:
        value = annotation(annotations, key, container)
        return default if value is None else _seconds(key, value)

    crashes = annotation(annotations, CRASHES, container)
    exit_code = annotation(annotations, EXIT_CODE, container) or ("1" if crashes else None)
    # An exit code or a count of crashes alone means that a run ends at once.
    natural = 0.0 if init or exit_code else math.inf
    slept = sleep_seconds(command)
    return Behaviour(
        start_after=seconds(START_AFTER, 0.0),
        ready_after=seconds(READY_AFTER, probe_delay),
        run_for=seconds(RUN_FOR, natural if slept is None else slept),
        exit_code=_code(exit_code),
        crashes=_crashes(crashes),
        stop_after=seconds(STOP_AFTER, 0.0),
    )


def _seconds(key: str, text: str) -> float:
    try:
        return run_times.seconds(text)
    except DurationError as error:
        raise BehaviourError(f"annotation {key}: {error}") from None


def _code(text: str | None) -> int:
    if text is None:
        return 0
    code = whole_number(text)
    if code is None or code > 255:
        raise BehaviourError(f"annotation {EXIT_CODE}: {text!r} is not an exit code: write a number from 0 to 255")
    return code


def _crashes(text: str | None) -> float:
    if text is None:
        return math.inf
    count = whole_number(text)
    if count is None:
        raise BehaviourError(f"annotation {CRASHES}: {text!r} is not a count: write how many runs crash")
    return count
