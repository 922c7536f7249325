"""Tell about backends of other packages that cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from spinney.backends.registry import Registry

_USES_BACKENDS = ("grove", "backends")

_log = structlog.get_logger("spinney.plugins")


def warn_of_broken_backends(components: Iterable[str]) -> None:
    """Log a warning for each backend that cannot be loaded, if one of the components uses backends."""
    if not any(name in _USES_BACKENDS for name in components):
        return
    for broken in Registry.load().broken:
        _log.warning("backend.not_loaded", entry_point=f"{broken.name} = {broken.origin}", error=broken.why)
