"""The window over which usage counts: sliding, or restarted at fixed times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spinney.api.cron import CronError, parse
from spinney.api.duration import prometheus_seconds
from spinney.api.kaishard import UsageParams
from spinney.scheduler.config import ConfigError

SLIDING, TUMBLING, CRON = "sliding", "tumbling", "cron"
_WHERE = "usageDBConfig.usageParams"


@dataclass(frozen=True)
class UsageWindow:
    """A usage window: its type, its length, and when it starts."""

    kind: str = SLIDING
    seconds: float = 7 * 86400.0
    begins: datetime | None = None
    schedule: str = ""

    def length(self, now: datetime) -> float:
        """The length of the window that ends now, in seconds."""
        if self.kind == TUMBLING and self.begins is not None:
            passed = (now - self.begins).total_seconds()
            return passed % self.seconds if passed > 0 else 0.0
        if self.kind == CRON:
            since = parse(self.schedule).before(now, UTC) or now - timedelta(seconds=self.seconds)
            return (now - since).total_seconds()
        return self.seconds


def window_of(parameters: UsageParams) -> UsageWindow:
    """The window that a shard configures; raises ConfigError for wrong values."""
    kind = parameters.window_type or SLIDING
    if kind not in (SLIDING, TUMBLING, CRON):
        raise ConfigError(f"{_WHERE}.windowType is {kind!r}; it must be {SLIDING}, {TUMBLING} or {CRON}")
    if kind == TUMBLING and parameters.tumbling_window_start_time is None:
        raise ConfigError(f"{_WHERE}.tumblingWindowStartTime must say when the first window begins")
    if kind == CRON:
        try:
            parse(parameters.cron_string)
        except CronError as error:
            raise ConfigError(f"{_WHERE}.cronString: {error}") from None
    return UsageWindow(
        kind,
        prometheus_seconds(parameters.window_size or "1w"),
        parameters.tumbling_window_start_time,
        parameters.cron_string,
    )
