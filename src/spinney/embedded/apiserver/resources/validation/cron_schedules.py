"""Checks of the schedule and the time zone of a CronJob."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.api import cron
from spinney.embedded.apiserver.errors import FieldError, invalid

_ZONE_PART = re.compile(r"^[A-Za-z._\-0-9+]{1,14}\Z")


def check_schedule(schedule: str, path: str) -> list[FieldError]:
    """Check the schedule of a CronJob."""
    if "TZ" in schedule:
        return [invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    try:
        cron.parse(schedule)
    except cron.CronError as error:
        return [invalid(path, schedule, str(error))]
    return []


def check_zone(zone: str | None, path: str) -> list[FieldError]:
    """Check the time zone of a schedule."""
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = invalid(path, zone, f"unknown time zone {zone}")
    if any(part in (".", "..") or part[:1] == "-" or not _ZONE_PART.match(part) for part in zone.split("/")):
        return [unknown]
    errors: list[FieldError] = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid(path, zone, detail))
    if zone != "Local" and not _known(zone):
        errors.append(unknown)
    return errors


def _known(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
