"""Components with their configuration: from files, and from flags that change single fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spinney.api.meta import convert
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.app.components import load
from spinney.app.errors import wrong_value
from spinney.kube.runtime import Component


@dataclass(frozen=True)
class Override:
    """A flag that sets one field, wherever a component's configuration has it."""

    flag: str
    # The path of the field, by the names of the wire types.
    path: tuple[str, ...]
    value: Any
    # Why the flag is refused where no component has the field.
    otherwise: str


def choose_parts(names: str) -> list[Override]:
    """Choose some parts of a component, such as backends, by a comma-separated list; nothing where it is empty."""
    chosen = tuple(filter(None, names.split(",")))
    otherwise = "none of these components has parts to choose from"
    return [Override("--only", ("only",), chosen, otherwise)] if chosen else []


def choose_fallback(backend: str) -> list[Override]:
    """Choose the backend of sets whose scheduler no backend claims; nothing where the name is empty."""
    path = ("scheduler", "fallback_backend")
    otherwise = "none of these components chooses backends"
    return [Override("--fallback-backend", path, backend, otherwise)] if backend else []


def configured_components(
    names: Sequence[str], files: Sequence[str] = (), overrides: Sequence[Override] = ()
) -> list[tuple[Component, Any]]:
    """Load components and read their configurations. A file is `FILE` for the only component, else `COMPONENT=FILE`."""
    components = [load(name) for name in dict.fromkeys(names)]
    by_component = _files(components, files)
    configs = [_read(component, by_component.get(component.name, "")) for component in components]
    for override in overrides:
        if not any(_has(config, override.path) for config in configs):
            raise wrong_value(override.flag, override.otherwise)
        configs = [_set(config, override.path, override.value) for config in configs]
    option = "--config" if files or not overrides else overrides[-1].flag
    return [
        (_as_configured(component, config, option), config)
        for component, config in zip(components, configs, strict=True)
    ]


def _files(components: Sequence[Component], files: Sequence[str]) -> dict[str, str]:
    by_component: dict[str, str] = {}
    for text in files:
        name, sign, file = text.partition("=")
        if not sign and len(components) > 1:
            raise wrong_value("--config", f"{text!r}: with several components say COMPONENT=FILE")
        by_component[name if sign else components[0].name] = file if sign else text
    unknown = set(by_component) - {component.name for component in components}
    if unknown:
        raise wrong_value("--config", f"{', '.join(sorted(unknown))}: not among the components")
    return by_component


def _read(component: Component, file: str) -> Any:
    if component.settings is None:
        if file:
            raise wrong_value("--config", f"{component.name} takes no configuration file")
        return None
    if not file:
        return convert(component.settings, {})
    try:
        return convert(component.settings, read_yaml(Path(file).read_bytes()) or {})
    except OSError as error:
        raise wrong_value("--config", f"{file}: {error.strerror}") from error
    except YamlError as error:
        raise wrong_value("--config", f"{file}: not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise wrong_value("--config", f"{file}: {error}") from error


def _has(config: Any, path: Sequence[str]) -> bool:
    if config is None or path[0] not in getattr(config, "__struct_fields__", ()):
        return False
    return len(path) == 1 or _has(getattr(config, path[0]), path[1:])


def _set(config: Any, path: Sequence[str], value: Any) -> Any:
    """The configuration with a field set to a value; unchanged if it has no such field."""
    if not _has(config, path):
        return config
    inner = value if len(path) == 1 else _set(getattr(config, path[0]), path[1:], value)
    return msgspec.structs.replace(config, **{path[0]: inner})


def _as_configured(component: Component, config: Any, option: str) -> Component:
    if component.configured is None:
        return component
    try:
        return component.configured(config)
    except ValueError as error:
        raise wrong_value(option, str(error)) from error
