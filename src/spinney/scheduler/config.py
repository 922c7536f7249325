"""The scheduler's configuration: actions, plugins with their arguments, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ALLOCATE, CONSOLIDATION, RECLAIM, PREEMPT = "allocate", "consolidation", "reclaim", "preempt"
STALE_GANG_EVICTION = "stalegangeviction"
ACTIONS = (ALLOCATE, CONSOLIDATION, RECLAIM, PREEMPT, STALE_GANG_EVICTION)


class ConfigError(ValueError):
    """A configuration that names something unknown or gives it a wrong value."""


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A plugin that is on, with its arguments."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)

    def number(self, key: str, default: float) -> float:
        """Return an argument as a number; raise an error that names a wrong one."""
        text = self.arguments.get(key, "")
        try:
            return float(text) if text else default
        except ValueError:
            raise ConfigError(f"plugin {self.name}: argument {key} is {text!r}; it must be a number") from None


# In upstream's order for a configuration file: scores are summed and comparators asked in this order.
DEFAULT_PLUGINS = (
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "nodeplacement",
    "minruntime",
    "topology",
    "snapshot",
    "sg-nodelocalgreedy",
    "sg-multinodegang",
)


@dataclass(frozen=True, slots=True)
class Config:
    """What one cycle does; defaults are upstream's."""

    actions: tuple[str, ...] = ACTIONS
    plugins: tuple[PluginConfig, ...] = tuple(PluginConfig(name) for name in DEFAULT_PLUGINS)
    # How many jobs of each queue an action looks at; absent is all.
    queue_depth: Mapping[str, int] = field(default_factory=dict)
    # Jobs that one consolidation may move; -1 is any number, 0 switches it off.
    consolidation_victims: int = 16
    staleness_grace: float = 60.0
    # Whether evicting actions skip jobs that ask for more of the same than a failed one; equal jobs are always
    # skipped.
    skip_alike: bool = True
    # Whether victims that are placed again do not count as taken from their queue.
    consolidating_reclaim: bool = True
    # Whether victims without GPUs may move to nodes that the preemptor cannot use; upstream evicts them for good.
    rehome_anywhere: bool = True
    # Labels of the nodes that take pods without GPUs, and pods with GPUs; None allows all nodes for both.
    workers: tuple[str, str] | None = None
    # After how long a pod that is evicted but still runs no longer counts as releasing.
    stuck_after: float = 120.0
    # Whether fair shares are divided at every level of the queue tree, or among leaves only.
    full_hierarchy: bool = True
    # Scenarios tried for one job before the search gives up; the reason then says so.
    search_steps: int = 2000
    # How long a gang waits before nodes are reserved for it, and the number of reservations at once; 0 for none.
    reserve_after: float = 300.0
    reservations: int = 8

    def without(self, *names: str) -> Config:
        """The same configuration with some plugins off."""
        return replace(self, plugins=tuple(plugin for plugin in self.plugins if plugin.name not in names))
