"""Minimum run time: a gang that just started is protected from eviction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from spinney.api.duration import seconds
from spinney.scheduler.config import Config, ConfigError, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scenario
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.min_runtimes import MinRuntimes, has_min_runtime, is_young
from spinney.scheduler.state.specs import QueueSpec
from spinney.scheduler.state.tasks import Task

NAME = "minruntime"
METHODS = ("lca", "queue")


def install(cycle: Cycle, plugin: PluginConfig) -> None:
    """Filter protected victims, and refuse scenarios that take a protected elastic gang below its minimum."""
    rule, hooks, queues, now = parse(plugin), cycle.hooks, cycle.queues, cycle.now
    if not (rule.reclaim or rule.preempt or any(map(has_min_runtime, queues.specs))):
        return

    def reclaim_protected(gang: Gang, victim: Job) -> bool:
        return is_young(victim, rule.reclaim_runtime(queues, gang.job.queue, victim.queue), now)

    def preempt_protected(_: Gang, victim: Job) -> bool:
        return is_young(victim, rule.preempt_runtime(queues, victim.queue), now)

    cycle.result.min_runtimes = rule
    hooks.reclaim_filters.append(lambda gang, victim: victim.elastic() or not reclaim_protected(gang, victim))
    hooks.preempt_filters.append(lambda gang, victim: victim.elastic() or not preempt_protected(gang, victim))
    hooks.min_runtimes.append(lambda gang, victim: rule.runtime(queues, gang.job, victim))
    hooks.reclaim_checks.append(partial(_keeps_cores, reclaim_protected))
    hooks.preempt_checks.append(partial(_keeps_cores, preempt_protected))


def parse(plugin: PluginConfig) -> MinRuntimes:
    """Parse the plugin's arguments; raise an error that names a wrong one."""
    method = plugin.arguments.get("reclaimResolveMethod") or "lca"
    if method not in METHODS:
        raise ConfigError(f"plugin {NAME}: reclaimResolveMethod {method!r} is unknown; use lca or queue")
    reclaim, preempt = _seconds(plugin, "defaultReclaimMinRuntime"), _seconds(plugin, "defaultPreemptMinRuntime")
    return MinRuntimes(reclaim, preempt, method)


def longest_runtime(config: Config, queues: Iterable[QueueSpec]) -> float:
    """The longest time for which anything that runs may be protected."""
    runtimes = [0.0]
    for queue in queues:
        runtimes += [queue.preempt_min_runtime or 0.0, queue.reclaim_min_runtime or 0.0]
    for plugin in config.plugins:
        if plugin.name == NAME:
            rule = parse(plugin)
            runtimes += [rule.reclaim, rule.preempt]
    return max(runtimes)


def _seconds(plugin: PluginConfig, key: str) -> float:
    text = plugin.arguments.get(key, "")
    return max(0.0, seconds(text)) if text else 0.0


def _keeps_cores(protected: Callable[[Gang, Job], bool], scenario: Scenario) -> bool:
    for victim, tasks in scenario.victims():
        if victim.elastic() and protected(scenario.preemptor, victim) and _breaks_core(victim, tasks):
            return False
    return True


def _breaks_core(victim: Job, tasks: list[Task]) -> bool:
    leaving: dict[int, int] = {}
    for task in tasks:
        leaving[task.podset] = leaving.get(task.podset, 0) + 1
    return any(victim.minimums[leaf] > victim.used[leaf] - count for leaf, count in leaving.items())
