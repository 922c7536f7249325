"""The behaviour of a simulated container, from annotations or from a `sleep N` command."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.api.labels import CRASHES, EXIT_CODE, READY_AFTER, RUN_FOR, START_AFTER, STOP_AFTER
from spinney.api.numbers import whole_number

NEVER = "never"

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d)?")


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
        value = _annotation(annotations, key, container)
        return default if value is None else _seconds(key, value)

    crashes = _annotation(annotations, CRASHES, container)
    exit_code = _annotation(annotations, EXIT_CODE, container) or ("1" if crashes else None)
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


def sleep_seconds(command: Sequence[str]) -> float | None:
    """The seconds of `sleep N`, as a command or in a script of only `echo` and `sleep`; None for other commands."""
    words = list(command)
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1] in ("-c", "-ec"):
        lines = [line.strip() for line in words[2].replace(";", "\n").splitlines()]
        doing = [line for line in lines if line and not line.startswith(("#", "echo "))]
        slept = [_slept(line.split()) for line in doing]
        return sum(each for each in slept if each is not None) if slept and None not in slept else None
    return _slept(words)


def _slept(words: Sequence[str]) -> float | None:
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    if words[1] in ("infinity", "inf"):
        return math.inf
    match = _PART.fullmatch(words[1])
    return float(match[1]) * _UNITS[match[2] or "s"] if match and match[2] != "ms" else None


def duration(text: str) -> float:
    """Seconds of `90`, `1.5s`, `2m30s`, `500ms` or `never`."""
    if text == NEVER:
        return math.inf
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise BehaviourError(f"{text!r} is not a duration: write seconds (90, 1.5s), 500ms, 2m30s or {NEVER}")
    return float(sum(float(number) * _UNITS[unit or "s"] for number, unit in parts))


def _annotation(annotations: Mapping[str, str], key: str, container: str) -> str | None:
    return annotations.get(f"{key}.{container}", annotations.get(key))


def _seconds(key: str, text: str) -> float:
    try:
        return duration(text)
    except BehaviourError as error:
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
