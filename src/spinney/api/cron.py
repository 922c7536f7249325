"""Cron schedules: `*/5 9-17 * * mon-fri`, `@daily`, and when they are due next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from spinney.api import duration
from spinney.api.numbers import whole_number

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Least and most of each field, and the names that it may use.
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
# A schedule that matches no day within this time (30 February) never will.
_LONGEST_DAYS = 366 * 5


class CronError(ValueError):
    """A schedule that cannot be parsed."""


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
        """The first due time after a moment, in a time zone; None if there is none."""
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
            due = self.after(moment - timedelta(days=days), zone)
            if due is not None and due <= moment:
                return self._last(due, moment, zone)
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


@dataclass(frozen=True)
class Interval:
    """A fixed interval: `@every 5m`."""

    length: timedelta

    def after(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """The moment after this interval."""
        return moment + self.length

    def before(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """The moment before this interval."""
        return moment - self.length


def parse(text: str) -> Schedule | Interval:
    """A schedule from its five fields, a macro, or an interval."""
    if text.startswith(_EVERY):
        return Interval(_length(text))
    fields = _MACROS.get(text, text).split()
    if text.startswith("@") and text not in _MACROS:
        raise CronError(f"unrecognized descriptor: {text}")
    if len(fields) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = (
        frozenset(number for part in filter(None, field.split(",")) for number in _range(part, *bounds))
        for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    any_day, any_weekday = fields[2][0] in "*?", fields[4][0] in "*?"
    return Schedule(minutes, hours, days, months, weekdays, any_day=any_day, any_weekday=any_weekday)


def _length(text: str) -> timedelta:
    try:
        return max(timedelta(seconds=1), timedelta(microseconds=duration.parse(text.removeprefix(_EVERY)) // 1000))
    except ValueError:
        raise CronError(f"failed to parse duration {text}") from None


def _range(part: str, least: int, most: int, names: dict[str, int]) -> range:
    span, *steps = part.split("/")
    low, *high = span.split("-")
    if len(high) > 1:
        raise CronError(f"too many hyphens: {part}")
    if len(steps) > 1:
        raise CronError(f"too many slashes: {part}")
    if low in ("*", "?"):
        start, end = least, most
    else:
        start = _number(low, names)
        end = _number(high[0], names) if high else most if steps else start
    step = _number(steps[0], {}) if steps else 1
    if start < least:
        raise CronError(f"beginning of range ({start}) below minimum ({least}): {part}")
    if end > most:
        raise CronError(f"end of range ({end}) above maximum ({most}): {part}")
    if start > end:
        raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step)


def _number(word: str, names: dict[str, int]) -> int:
    if word.lower() in names:
        return names[word.lower()]
    number = whole_number(word)
    if number is None:
        raise CronError(f"failed to parse int from {word}")
    return number
