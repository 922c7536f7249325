"""Read the scheduler's configuration file; wrong names and values are errors at start-up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from spinney.api import duration, labels
from spinney.api.schedulerfile import ARGUMENTS, SchedulerFile
from spinney.scheduler.config import ACTIONS, Config, ConfigError, PluginConfig
from spinney.scheduler.plugins.registry import known

T = TypeVar("T")


def from_file(file: SchedulerFile) -> Config:
    """The configuration in the file, with upstream's defaults for everything it leaves out."""
    config = _with_arguments(Config(), file.args)
    if file.actions:
        config = replace(config, actions=_actions(file.actions))
    if file.tiers:
        plugins = tuple(PluginConfig(entry.name, entry.arguments) for tier in file.tiers for entry in tier.plugins)
        _check("plugin", [plugin.name for plugin in plugins], known())
        config = replace(config, plugins=plugins)
    _check("queueDepthPerAction: action", file.queue_depth_per_action, config.actions)
    return replace(config, queue_depth=dict(file.queue_depth_per_action))


def _actions(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    _check("action", names, ACTIONS)
    return names


def _check(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    unknown = sorted(set(names) - set(allowed))
    if unknown:
        raise ConfigError(f"{what} {', '.join(unknown)} is unknown; known are {', '.join(sorted(allowed))}")


def _with_arguments(config: Config, arguments: Mapping[str, str]) -> Config:
    _check("args: flag", arguments, ARGUMENTS)
    return replace(
        config,
        consolidation_victims=_argument(arguments, "max-consolidation-preemptees", int, config.consolidation_victims),
        staleness_grace=_argument(
            arguments, "default-staleness-grace-period", duration.seconds, config.staleness_grace
        ),
        skip_alike=_argument(arguments, "use-scheduling-signatures", _boolean, config.skip_alike),
        rehome_anywhere=_argument(arguments, "rehome-victims-anywhere", _boolean, config.rehome_anywhere),
        workers=_workers(arguments),
        stuck_after=_argument(arguments, "stuck-in-releasing-threshold", duration.seconds, config.stuck_after),
        full_hierarchy=_argument(arguments, "full-hierarchy-fairness", _boolean, config.full_hierarchy),
        reserve_after=_argument(arguments, "reservation-delay", duration.seconds, config.reserve_after),
        reservations=_argument(arguments, "max-reservations", int, config.reservations),
        consolidating_reclaim=_argument(
            arguments, "allow-consolidating-reclaim", _boolean, config.consolidating_reclaim
        ),
    )


def _workers(arguments: Mapping[str, str]) -> tuple[str, str] | None:
    if not _argument(arguments, "restrict-node-scheduling", _boolean, default=False):
        return None
    return (
        arguments.get("cpu-worker-node-label-key") or labels.CPU_WORKER,
        arguments.get("gpu-worker-node-label-key") or labels.GPU_WORKER,
    )


def _argument(arguments: Mapping[str, str], name: str, read: Callable[[str], T], default: T) -> T:
    text = arguments.get(name, "")
    try:
        return read(text) if text else default
    except ValueError as error:
        raise ConfigError(f"args.{name} is {text!r}: {error}") from None


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"
