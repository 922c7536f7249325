"""What counts for the process where a component's configuration file and the command line both speak: the latter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import structlog
from click.core import ParameterSource

from spinney.app.serving import Supplied, WebhookOptions
from spinney.kube.process_settings import Listen, Process
from spinney.kube.runtime import Component

T = TypeVar("T")

_log = structlog.get_logger("spinney.run")


def said_by(configured: Sequence[tuple[Component, Any]]) -> Process:
    """What the configurations say about the process; the first component that says anything is heard."""
    said = (component.process(config) for component, config in configured if component.process is not None)
    return next(said, Process())


def flag_or(name: str, flag: T, said: Any) -> T:
    """A flag's value where the user gave it, else what the configuration says, else the flag's default."""
    given = click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE
    if given or said is None or said == "":
        return flag
    found: T = said
    return found


def in_folder(folder: Path | None) -> Supplied | None:
    """Certificates that someone else keeps in a folder, under the names that Secrets are mounted with."""
    if folder is None:
        return None
    authority = folder / "ca.crt"
    supplied = Supplied(folder / "tls.crt", folder / "tls.key", authority if authority.exists() else None)
    try:
        supplied.read()
    except OSError as error:
        raise click.BadParameter(
            f"server.webhooks.certProvisionMode is manual, but {error.filename}: {error.strerror}",
            param_hint="--config",
        ) from error
    return supplied


def listening(options: WebhookOptions, said: Process) -> WebhookOptions:
    """Where the configuration wants webhooks served, unless a flag or a URL says it."""
    return options if options.listen or options.url else replace(options, listen=said.webhooks)


def pages_of(said: Process) -> list[Listen]:
    """Where health and metrics are to be found; each address has all pages."""
    return list(dict.fromkeys(page for page in (said.health, said.metrics) if page is not None))


def warn_of(said: Process) -> None:
    """Say what the configuration asks for in vain."""
    for words in said.ignored:
        _log.warning("configuration.ignored", why=words)
