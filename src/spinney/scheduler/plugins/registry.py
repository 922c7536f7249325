"""Plugins by name: ours, and those of other packages (entry point group `spinney.scheduler.plugins`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points

from spinney.scheduler.config import Config, ConfigError, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.plugins import (
    claims,
    fragmentation,
    job_keys,
    job_order,
    minruntime,
    node_scores,
    numa,
    predicates,
    preferences,
    proportion,
    scenario_generators,
    topology,
)

GROUP = "spinney.scheduler.plugins"
Install = Callable[[Cycle, PluginConfig], None]


def _no_hooks(_: Cycle, __: PluginConfig) -> None:
    """Install nothing: upstream has this plugin, and no hook is needed here."""


BUILT_IN: dict[str, Install] = {
    "predicates": predicates.install,
    "proportion": proportion.install,
    "priority": job_keys.priority,
    "elastic": job_keys.elastic,
    "kubeflow": _no_hooks,
    "ray": _no_hooks,
    "subgrouporder": _no_hooks,
    "taskorder": _no_hooks,
    "nodeavailability": node_scores.availability,
    "gpusharingorder": node_scores.gpu_sharing,
    "gpupack": node_scores.gpu_pack,
    "gpuspread": node_scores.gpu_spread,
    "resourcetype": node_scores.resource_type,
    "nominatednode": node_scores.nominated_node,
    "dynamicresources": claims.install,
    "nodeplacement": node_scores.node_placement,
    "minruntime": minruntime.install,
    "topology": topology.install,
    "snapshot": _no_hooks,
    "reflectjoborder": job_order.install,
    "podaffinity": preferences.install,
    "numa": numa.install,
    "fragmentation": fragmentation.install,
    "sg-nodelocalgreedy": scenario_generators.node_local,
    "sg-multinodegang": scenario_generators.multi_node,
}


@cache
def _third_party() -> dict[str, Install]:
    return {point.name: point.load() for point in entry_points(group=GROUP)}


def known() -> frozenset[str]:
    """The names that a configuration may use."""
    return frozenset((*BUILT_IN, *_third_party()))


def install(cycle: Cycle, config: Config) -> None:
    """Install every configured plugin in a cycle, in order."""
    for plugin in config.plugins:
        plugin_install = BUILT_IN.get(plugin.name) or _third_party().get(plugin.name)
        if plugin_install is None:
            raise ConfigError(f"plugin {plugin.name!r} is unknown; known are {', '.join(sorted(known()))}")
        with cycle.stopwatch.plugin(plugin.name):
            plugin_install(cycle, plugin)
