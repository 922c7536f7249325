"""Cron schedules: `*/5 9-17 * * mon-fri`, `@daily`, and when they are due next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {
    "month": {name: number + 1 for number, name in enumerate(_MONTHS)},
    "weekday": {name: number for number, name in enumerate(_WEEKDAYS)},
}
_BOUNDS = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 7)}
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# A schedule that matches no day within this time (30 February) never will.
_LONGEST_DAYS = 366 * 5


class CronError(ValueError):
    """A schedule that cannot be read."""


@dataclass(frozen=True)
class Schedule:
    """The minutes, hours, days, months and weekdays on which something is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    # Where both days and weekdays are restricted, either will do; a star restricts nothing.
    any_day: bool
    any_weekday: bool

    def after(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """The first due time after a moment, in a time zone; None where there is none."""
        local = moment.astimezone(zone).replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = local.replace(hour=0, minute=0)
        for offset in range(_LONGEST_DAYS):
            date = day + timedelta(days=offset)
            if not self._on(date):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    due = date.replace(hour=hour, minute=minute)
                    if due >= local:
                        return due.astimezone(moment.tzinfo)
        return None

    def before(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """The last due time that is not after a moment; None where there is none within some years."""
        days = 1
        while days <= _LONGEST_DAYS:
            found = self.after(moment - timedelta(days=days), zone)
            if found is not None and found <= moment:
                return self._last(found, moment, zone)
            days *= 2
        return None

    def _last(self, due: datetime, moment: datetime, zone: tzinfo) -> datetime:
        while (following := self.after(due, zone)) is not None and following <= moment:
            due = following
        return due

    def _on(self, date: datetime) -> bool:
        if date.month not in self.months:
            return False
        by_day, by_weekday = date.day in self.days, (date.weekday() + 1) % 7 in self.weekdays
        return by_day and by_weekday if self.any_day or self.any_weekday else by_day or by_weekday


def parse(text: str) -> Schedule:
    """A schedule from its five fields, or from a macro."""
    fields = _MACROS.get(text.strip(), text).split()
    if len(fields) != 5:
        raise CronError(f"schedule {text!r} has {len(fields)} fields: write minute hour day month weekday, or @daily")
    minute, hour, day, month, weekday = (_field(kind, field, text) for kind, field in zip(_BOUNDS, fields, strict=True))
    return Schedule(
        minute,
        hour,
        day,
        month,
        frozenset(number % 7 for number in weekday),
        any_day=fields[2][0] in "*?",
        any_weekday=fields[4][0] in "*?",
    )


def _field(kind: str, field: str, text: str) -> frozenset[int]:
    return frozenset(number for part in field.split(",") for number in _part(kind, part, text))


def _part(kind: str, part: str, text: str) -> range:
    low, high = _BOUNDS[kind]
    span, _, step = part.partition("/")
    first, dash, last = span.partition("-")
    try:
        if span in ("*", "?"):
            start, end = low, high
        else:
            start = _number(kind, first)
            end = _number(kind, last) if dash else (high if step else start)
        every = int(step) if step else 1
    except ValueError:
        raise CronError(f"schedule {text!r}: {part!r} is not a {kind}") from None
    if not low <= start <= end <= high or every < 1:
        raise CronError(f"schedule {text!r}: {part!r} is outside {low}-{high} of {kind}")
    return range(start, end + 1, every)


def _number(kind: str, word: str) -> int:
    named = _NAMES.get(kind, {}).get(word.lower())
    return int(word) if named is None else named
