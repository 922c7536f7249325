"""Cron schedules."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from spinney.api.batch import CronJob
from spinney.api.cron import CronError, parse
from spinney.api.meta import convert
from spinney.embedded.controllers.jobs.cronjob import plan_cronjob

NOON = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("* * * * *", "2026-01-01T12:01"),
        ("*/15 * * * *", "2026-01-01T12:15"),
        ("0 9-17/4 * * *", "2026-01-01T13:00"),
        ("30 6 * * mon", "2026-01-05T06:30"),
        ("0 0 1 feb *", "2026-02-01T00:00"),
        ("0 0 13 * fri", "2026-01-02T00:00"),
        ("@every 90m", "2026-01-01T13:30"),
        ("@daily", "2026-01-02T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
    ],
)
def test_the_next_due_time(schedule: str, due: str) -> None:
    """Days and weekdays that are both given are alternatives, as cron has always had it."""
    moment = parse(schedule).after(NOON, UTC)
    assert moment is not None
    assert moment.strftime("%Y-%m-%dT%H:%M") == due


def test_schedules_follow_their_time_zone() -> None:
    """Nine in Berlin is eight in UTC in winter."""
    moment = parse("0 9 * * *").after(NOON, ZoneInfo("Europe/Berlin"))
    assert moment == datetime(2026, 1, 2, 8, tzinfo=UTC)


def test_a_day_that_never_comes() -> None:
    """There is no 30 February."""
    assert parse("0 0 30 2 *").after(NOON, UTC) is None


@pytest.mark.parametrize(
    "schedule", ["* * * *", "60 * * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *", "@foo", "@every x"]
)
def test_bad_schedules_are_refused(schedule: str) -> None:
    """With the part that is wrong."""
    with pytest.raises(CronError):
        parse(schedule)


@pytest.mark.parametrize(("deadline", "starts"), [(10, False), (3600, True), (10**12, True), (2**63 - 1, True)])
def test_a_starting_deadline_of_ages_kept_a_cronjob_from_starting(deadline: int, starts: bool) -> None:
    """What is missed by less is made up for; how long ago a longer deadline began was no date."""
    spec = {"schedule": "0 * * * *", "startingDeadlineSeconds": deadline, "jobTemplate": {"spec": {"template": {}}}}
    body = {"metadata": {"name": "c", "namespace": "n", "creationTimestamp": "2026-01-01T11:30:00Z"}, "spec": spec}
    plan = plan_cronjob(convert(CronJob, body), [], NOON)
    assert (plan.create is not None) is starts
