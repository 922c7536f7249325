"""Minimum run time: a gang that just started is left alone for a while."""

from __future__ import annotations

from spinney.api.duration import seconds
from spinney.scheduler.config import ConfigError, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scenario
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.tasks import Task

METHODS = ("lca", "queue")


def install(cycle: Cycle, plugin: PluginConfig) -> None:
    """Filter protected victims, and refuse scenarios that take a protected elastic gang below its minimum."""
    rule = _MinRuntime(cycle, plugin)
    hooks = cycle.hooks
    if rule.off:
        return
    hooks.reclaim_filters.append(lambda gang, victim: victim.elastic() or not rule.reclaim_protected(gang, victim))
    hooks.preempt_filters.append(lambda gang, victim: victim.elastic() or not rule.preempt_protected(gang, victim))
    hooks.min_runtimes.append(rule.runtime)
    hooks.safe_until.append(rule.safe_until)
    hooks.reclaim_checks.append(lambda scenario: _keeps_cores(scenario, rule.reclaim_protected))
    hooks.preempt_checks.append(lambda scenario: _keeps_cores(scenario, rule.preempt_protected))


class _MinRuntime:
    def __init__(self, cycle: Cycle, plugin: PluginConfig) -> None:
        self.now = cycle.now
        self.queues = cycle.queues
        self.reclaim_default = _seconds(plugin, "defaultReclaimMinRuntime")
        self.preempt_default = _seconds(plugin, "defaultPreemptMinRuntime")
        self.method = plugin.arguments.get("reclaimResolveMethod") or "lca"
        if self.method not in METHODS:
            raise ConfigError(f"plugin minruntime: reclaimResolveMethod {self.method!r} is unknown; use lca or queue")
        self.off = not (self.reclaim_default or self.preempt_default) and not any(
            spec.reclaim_min_runtime or spec.preempt_min_runtime for spec in self.queues.specs
        )

    def runtime(self, gang: Gang, victim: Job) -> float:
        """How long a victim is left alone by a gang, of its own queue or of another."""
        if gang.job.queue == victim.queue:
            return self._preempt_runtime(victim)
        return self._reclaim_runtime(gang.job.queue, victim.queue)

    def safe_until(self, gang: Gang, victim: Job) -> float:
        """When a victim that is left alone by a gang no longer will be; 0 if it is not."""
        runtime = self.runtime(gang, victim)
        return (victim.last_start or 0.0) + runtime if self._young(victim, runtime) else 0.0

    def reclaim_protected(self, gang: Gang, victim: Job) -> bool:
        if self.off:
            return False
        return self._young(victim, self._reclaim_runtime(gang.job.queue, victim.queue))

    def preempt_protected(self, _: Gang, victim: Job) -> bool:
        return not self.off and self._young(victim, self._preempt_runtime(victim))

    def _preempt_runtime(self, victim: Job) -> float:
        for queue in self.queues.path[victim.queue]:
            runtime = self.queues.specs[queue].preempt_min_runtime
            if runtime is not None:
                return runtime
        return self.preempt_default

    def _young(self, victim: Job, runtime: float) -> bool:
        return victim.last_start is not None and self.now < victim.last_start + runtime

    def _reclaim_runtime(self, reclaimer: int, victim: int) -> float:
        path = self.queues.path[victim]
        if self.method == "lca":
            top = self.queues.path[reclaimer][-1]
            if top != path[-1]:
                runtime = self.queues.specs[path[-1]].reclaim_min_runtime
                return self.reclaim_default if runtime is None else runtime
            path = path[path.index(self.queues.levelled(reclaimer, victim)[1]) :]
        for queue in path:
            runtime = self.queues.specs[queue].reclaim_min_runtime
            if runtime is not None:
                return runtime
        return self.reclaim_default


def _keeps_cores(scenario: Scenario, protected: object) -> bool:
    assert callable(protected)
    for victim, tasks in scenario.victims():
        if victim.elastic() and protected(scenario.preemptor, victim) and _breaks_core(victim, tasks):
            return False
    return True


def _breaks_core(victim: Job, tasks: list[Task]) -> bool:
    leaving: dict[int, int] = {}
    for task in tasks:
        leaving[task.podset] = leaving.get(task.podset, 0) + 1
    return any(victim.minimums[leaf] > victim.used[leaf] - count for leaf, count in leaving.items())


def _seconds(plugin: PluginConfig, key: str) -> float:
    text = plugin.arguments.get(key, "")
    return max(0.0, seconds(text)) if text else 0.0
