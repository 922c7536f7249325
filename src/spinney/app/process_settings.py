"""Settings of a process: a flag wins over the components' configuration files, which win over the defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import structlog

from spinney.app.errors import UserError, wrong_value
from spinney.app.serving import Supplied
from spinney.kube import logs
from spinney.kube.process_settings import Listen, ProcessOptions, Timing
from spinney.kube.runtime import Component

_log = structlog.get_logger("spinney.run")


@dataclass(frozen=True)
class ProcessSettings:
    """How a process runs its components."""

    qps: float = 2000.0
    burst: int = 4000
    elect: bool = True
    timing: Timing = field(default_factory=Timing)
    webhooks: Listen | None = None
    # A folder with certificates that an administrator keeps current.
    certificates: Path | None = None
    # The Secret of certificates of ours.
    secret: str = ""
    health: Listen | None = None
    # Over TLS, for those who may read them; on loopback for everyone.
    metrics: Listen | None = None
    log_level: str = "info"
    log_format: logs.Format = "text"
    # Settings of the file that have no effect, in words.
    ignored: tuple[str, ...] = ()


def process_settings(
    configured: Sequence[tuple[Component, Any]], flags: ProcessOptions, lease_flags: Mapping[str, float | None]
) -> ProcessSettings:
    """The settings of a process that runs these components; the first configuration that says anything counts."""
    files = (component.process(config) for component, config in configured if component.process is not None)
    settings = ProcessSettings(**{**_given(next(files, ProcessOptions())), **_given(flags)})
    flagged_times = {name: seconds for name, seconds in lease_flags.items() if seconds is not None}
    timing = replace(settings.timing, **flagged_times)
    if not timing.duration > timing.renew_deadline > timing.retry_period > 0:
        raise UserError("leases need --lease-duration > --renew-deadline > --retry-period > 0", exit_code=2)
    return replace(settings, timing=timing)


def _given(process: ProcessOptions) -> dict[str, Any]:
    values = {each.name: getattr(process, each.name) for each in fields(process)}
    return {name: value for name, value in values.items() if value not in (None, "", ())}


def certificates_in(folder: Path | None) -> Supplied | None:
    """Certificates that an administrator keeps in a folder, under the names that Secrets are mounted with."""
    if folder is None:
        return None
    authority = folder / "ca.crt"
    supplied = Supplied(folder / "tls.crt", folder / "tls.key", authority if authority.exists() else None)
    try:
        supplied.read()
    except OSError as error:
        message = f"server.webhooks.certProvisionMode is manual, but {error.filename}: {error.strerror}"
        raise wrong_value("--config", message) from error
    return supplied


def warn_of_ignored(settings: ProcessSettings) -> None:
    """Log the settings of a configuration file that have no effect."""
    for words in settings.ignored:
        _log.warning("configuration.ignored", why=words)
