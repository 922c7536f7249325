"""How long containers run, as annotations and `sleep N` commands say it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from spinney.api.duration import DurationError
from spinney.api.labels import RUN_FOR
from spinney.api.pod import Pod

NEVER = "never"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d)?")


def seconds(text: str) -> float:
    """Seconds of `90`, `1.5s`, `2m30s`, `500ms`, `1d`; `never` is infinity."""
    if text == NEVER:
        return math.inf
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise DurationError(f"{text!r} is not a duration: write seconds (90, 1.5s), 500ms, 2m30s or {NEVER}")
    return float(sum(float(number) * _UNITS[unit or "s"] for number, unit in parts))


def annotation(annotations: Mapping[str, str], key: str, container: str) -> str | None:
    """The value of an annotation for one container: its own, else that for all."""
    return annotations.get(f"{key}.{container}", annotations.get(key))


def sleep_seconds(command: Sequence[str]) -> float | None:
    """The seconds of `sleep N`, as a command or in a script of only `echo` and `sleep`; None for other commands."""
    words = list(command)
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1] in ("-c", "-ec"):
        lines = [line.strip() for line in words[2].replace(";", "\n").splitlines()]
        doing = [line for line in lines if line and not line.startswith(("#", "echo "))]
        slept = [_slept(line.split()) for line in doing]
        return sum(time for time in slept if time is not None) if slept and None not in slept else None
    return _slept(words)


def _slept(words: Sequence[str]) -> float | None:
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    if words[1] in ("infinity", "inf"):
        return math.inf
    match = _PART.fullmatch(words[1])
    return float(match[1]) * _UNITS[match[2] or "s"] if match and match[2] != "ms" else None


def stated(pod: Pod) -> float | None:
    """How long a pod runs once started, by what it says itself: its slowest container; None where one says nothing."""
    slowest = 0.0
    for container in pod.spec.containers:
        text = annotation(pod.metadata.annotations, RUN_FOR, container.name)
        try:
            own = seconds(text) if text else sleep_seconds((*container.command, *container.args))
        except DurationError:
            own = None
        if own is None or math.isinf(own):
            return None
        slowest = max(slowest, own)
    return slowest if pod.spec.containers else None
