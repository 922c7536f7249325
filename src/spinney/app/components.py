"""The registry of components: ours and those of other packages, from the entry point group `spinney.components`.

`spinney run`, `spinney up`, the platform operator and the tests all use it.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

import structlog

from spinney.app.errors import UserError, wrong_value
from spinney.kube.runtime import Component

GROUP = "spinney.components"

_log = structlog.get_logger("spinney.plugins")


@cache
def registered() -> dict[str, EntryPoint]:
    """The entry point of every component, by name: ours first, which others cannot replace."""
    by_name: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (not _is_ours(entry), entry.name)):
        by_name.setdefault(entry.name, entry)
    return by_name


def load(name: str) -> Component:
    """The component of a name, imported when it is needed."""
    entry = registered().get(name)
    if entry is None:
        raise wrong_value("COMPONENT", f"{name!r} is not a component; there are: {', '.join(registered())}")
    if _is_ours(entry):
        return _checked(entry.load())
    try:
        return _checked(entry.load())
    except Exception as error:  # another package's import may fail in any way
        raise UserError(f"component {name} ({entry.value}) cannot be loaded: {_described(error)}") from error


def load_third_party() -> list[Component]:
    """The components of other packages; one that cannot be loaded is named in a warning."""
    loaded = []
    for name, entry in registered().items():
        if _is_ours(entry):
            continue
        try:
            loaded.append(_checked(entry.load()))
        except Exception as error:  # as above
            _log.warning("component.not_loaded", entry_point=f"{name} = {entry.value}", error=_described(error))
    return loaded


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith("spinney.")


def _checked(candidate: object) -> Component:
    if not isinstance(candidate, Component):
        raise TypeError(f"a component is a spinney.kube.runtime.Component, not {type(candidate).__name__}")
    return candidate


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
