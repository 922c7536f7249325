"""How the platform operator itself is set up."""

from __future__ import annotations

from spinney.api.meta import Struct


class PlatformSettings(Struct, frozen=True):
    """What Config does not say."""

    # For every service that names none of its own.
    image: str = "spinney:latest"
    # Where the API server finds a process's webhooks, by the process's name, where it cannot reach Services.
    webhook_urls: dict[str, str] = {}
