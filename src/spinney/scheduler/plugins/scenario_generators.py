"""Ways to look for victims, in the order they are tried."""

from __future__ import annotations

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.victims import scenarios


def node_local(cycle: Cycle, _: PluginConfig) -> None:
    """Clear one node at a time."""
    cycle.hooks.generators.append(("NodeLocalGreedy", scenarios.node_local))


def multi_node(cycle: Cycle, _: PluginConfig) -> None:
    """Clear as few nodes as hold the gang."""
    cycle.hooks.generators.append(("MultiNodeGang", scenarios.multi_node))
