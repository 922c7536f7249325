"""Settings of the process that a component's configuration file may give, beside the command line."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of leader election in seconds. `duration` > `renew_deadline`: a leader stops before another starts."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


@dataclass(frozen=True)
class Listen:
    """An address to listen on."""

    host: str
    port: int


@dataclass(frozen=True)
class ProcessOptions:
    """Settings of a process; None or empty leaves a setting to the command line."""

    qps: float | None = None
    burst: int | None = None
    elect: bool | None = None
    timing: Timing | None = None
    webhooks: Listen | None = None
    # A folder where someone else keeps `tls.crt`, `tls.key` and perhaps `ca.crt` fresh.
    certificates: Path | None = None
    # The Secret that certificates of ours are kept in.
    secret: str = ""
    health: Listen | None = None
    metrics: Listen | None = None
    log_level: str = ""
    log_format: str = ""
    # What the file asks for and nobody does, in words.
    ignored: tuple[str, ...] = ()


def is_loopback(host: str) -> bool:
    """Whether a host name or address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
