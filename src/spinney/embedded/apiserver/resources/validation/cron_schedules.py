"""Why a schedule or a time zone of a CronJob cannot be read."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.api.duration import parse as parse_duration
from spinney.embedded.apiserver.errors import FieldError, invalid

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Least and most of each field, and the names that it may use.
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: at for at, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: at for at, name in enumerate(_DAYS)}),
)
_NAMED = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_ZONE_PART = re.compile(r"^[A-Za-z._\-0-9+]{1,14}\Z")


class _Unreadable(Exception):
    """A part of a schedule makes no sense."""


def check_schedule(schedule: str, path: str) -> list[FieldError]:
    """When a CronJob is due."""
    found: list[FieldError] = []
    why = _problem(schedule)
    if why:
        found.append(invalid(path, schedule, why))
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(invalid(path, schedule, detail))
    return found


def _problem(schedule: str) -> str:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith(_EVERY):
        return _duration_problem(schedule)
    if schedule.startswith("@"):
        return "" if schedule in _NAMED else f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, bounds in zip(fields, _FIELDS, strict=True):
            for part in filter(None, field.split(",")):
                _check_range(part, *bounds)
    except _Unreadable as error:
        return str(error)
    return ""


def _duration_problem(schedule: str) -> str:
    text = schedule.removeprefix(_EVERY)
    try:
        parse_duration(text)
    except ValueError:
        return f'failed to parse duration {schedule}: time: invalid duration "{text}"'
    return ""


def _check_range(part: str, least: int, most: int, names: dict[str, int]) -> None:
    span, *steps = part.split("/")
    low, *high = span.split("-")
    if low in ("*", "?"):
        start, end = least, most
    else:
        start = _number(low, names)
        if len(high) > 1:
            raise _Unreadable(f"too many hyphens: {part}")
        end = _number(high[0], names) if high else start
    if len(steps) > 1:
        raise _Unreadable(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not high:
        end = most
    if start < least:
        raise _Unreadable(f"beginning of range ({start}) below minimum ({least}): {part}")
    if end > most:
        raise _Unreadable(f"end of range ({end}) above maximum ({most}): {part}")
    if start > end:
        raise _Unreadable(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _Unreadable(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise _Unreadable(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise _Unreadable(f"negative number ({number}) not allowed: {text}")
    return number


def check_zone(zone: str | None, path: str) -> list[FieldError]:
    """Where a schedule is meant."""
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = invalid(path, zone, f"unknown time zone {zone}")
    if any(part in (".", "..") or part[:1] == "-" or not _ZONE_PART.match(part) for part in zone.split("/")):
        return [unknown]
    found: list[FieldError] = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        found.append(invalid(path, zone, detail))
    if zone != "Local" and not _known(zone):
        found.append(unknown)
    return found


def _known(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
