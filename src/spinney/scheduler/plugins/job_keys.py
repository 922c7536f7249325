"""Sort keys of jobs in one queue; their age comes last."""

from __future__ import annotations

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle


def priority(cycle: Cycle, _: PluginConfig) -> None:
    """Higher priority first."""
    cycle.hooks.job_keys.append(lambda gang: -gang.job.priority)


def elastic(cycle: Cycle, _: PluginConfig) -> None:
    """Gangs below their minimum first, then those exactly at it, then those with tasks to spare."""
    cycle.hooks.job_keys.append(lambda gang: gang.elastic_state())
