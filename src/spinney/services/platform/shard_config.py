"""The configuration file of a shard's scheduler: the shard's settings over upstream's defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from spinney.api import duration, labels
from spinney.api.deployment import Plugin
from spinney.api.kaiconfig import ConfigSpec, Global
from spinney.api.kaishard import Action, SchedulingShard, SchedulingShardSpec, UsageDb
from spinney.api.schedulerfile import (
    ACTION_PRIORITIES,
    ARGUMENTS,
    OPTIONAL_PLUGINS,
    PLUGIN_PRIORITIES,
    PluginEntry,
    SchedulerFile,
    Tier,
    known_plugins,
)

NAMESPACE = "kai-scheduler"
_STRATEGIES = ("binpack", "spread")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


class ShardError(ValueError):
    """An invalid shard; the message goes into its condition."""


def check_pool(shard: SchedulingShard, shards: Iterable[SchedulingShard]) -> None:
    """Raise `ShardError` if the pool is no valid label value, or an older shard serves it."""
    value = shard.spec.partition_label_value
    if not _LABEL_VALUE.fullmatch(value):
        raise ShardError(
            f"spec.partitionLabelValue is {value!r}, which no node can have as a label; it must be up to 63 letters, "
            "digits, '-', '_' and '.', and begin and end with a letter or digit"
        )
    holder = min((other for other in (*shards, shard) if other.spec.partition_label_value == value), key=_age)
    if holder.name != shard.name:
        pool = f"node pool {value!r}" if value else "the nodes outside of any pool"
        raise ShardError(
            f"spec.partitionLabelValue: SchedulingShard {holder.name} serves {pool} already; name another pool here, "
            "or delete one of the two"
        )


def _age(shard: SchedulingShard) -> tuple[str, str]:
    return str(shard.metadata.creation_timestamp), shard.name


def plan_file(shard: SchedulingShard, config: ConfigSpec) -> SchedulerFile:
    """The file of a shard's scheduler; raises `ShardError` with the allowed values."""
    spec = shard.spec
    common = config.global_ or Global()
    actions = _actions(spec)
    _known("spec.queueDepthPerAction: action", spec.queue_depth_per_action, actions)
    _known("spec.args: flag", spec.args, ARGUMENTS)
    return SchedulerFile(
        actions=", ".join(actions),
        tiers=(Tier(plugins=_plugins(spec)),),
        queue_depth_per_action=spec.queue_depth_per_action,
        usage_db_config=_usage(spec.usage_db_config, config),
        scenario_search_budgets=spec.scenario_search_budgets,
        shard=shard.name,
        scheduler_name=common.scheduler_name or labels.KAI_SCHEDULER,
        node_pool_label_key=common.node_pool_label_key or labels.NODE_POOL,
        partition_label_value=spec.partition_label_value,
        args=spec.args,
    )


def _usage(database: UsageDb | None, config: ConfigSpec) -> UsageDb | None:
    """The usage database; by default Config's Prometheus."""
    prometheus = config.prometheus
    if database is None or database.connection_string or database.connection_string_env_var:
        return database
    if database.client_type != "prometheus" or prometheus is None or not prometheus.enabled:
        return database
    inside = f"http://usage-prometheus.{config.namespace or NAMESPACE}.svc.cluster.local:9090"
    return msgspec.structs.replace(database, connection_string=prometheus.external_prometheus_url or inside)


def _strategies(spec: SchedulingShardSpec) -> tuple[str, str]:
    wanted = spec.placement_strategy
    strategies = (wanted.gpu or "binpack", wanted.cpu or "binpack") if wanted else ("binpack", "binpack")
    _known("spec.placementStrategy:", strategies, _STRATEGIES)
    return strategies


def _actions(spec: SchedulingShardSpec) -> list[str]:
    _known("spec.actions: action", spec.actions, ACTION_PRIORITIES)
    # Consolidation makes sense only with binpacking.
    off = {"consolidation"} if "spread" in _strategies(spec) else set()
    return _ordered(ACTION_PRIORITIES, spec.actions, off)


def _plugins(spec: SchedulingShardSpec) -> tuple[PluginEntry, ...]:
    plugins = known_plugins()
    _known("spec.plugins: plugin", spec.plugins, plugins)
    gpu, cpu = _strategies(spec)
    off = {"gpupack", "gpusharingorder"} if gpu == "spread" else {"gpuspread"}
    priorities = {**dict.fromkeys(plugins, 0), **PLUGIN_PRIORITIES}
    off |= {*OPTIONAL_PLUGINS, *(plugins - set(PLUGIN_PRIORITIES))}
    arguments = _default_arguments(spec, gpu, cpu)
    return tuple(
        PluginEntry(name=name, arguments=_arguments(spec.plugins.get(name), arguments.get(name, {})))
        for name in _ordered(priorities, spec.plugins, off)
    )


def _default_arguments(spec: SchedulingShardSpec, gpu: str, cpu: str) -> dict[str, dict[str, str]]:
    arguments: dict[str, dict[str, str]] = {"nodeplacement": {"gpu": gpu, "cpu": cpu}}
    if spec.k_value is not None:
        arguments["proportion"] = {"kValue": f"{spec.k_value:g}"}
    if spec.min_runtime is not None:
        wanted = {
            "defaultPreemptMinRuntime": spec.min_runtime.preempt_min_runtime,
            "defaultReclaimMinRuntime": spec.min_runtime.reclaim_min_runtime,
        }
        arguments["minruntime"] = {key: _duration(key, text) for key, text in wanted.items() if text}
    return arguments


def _duration(name: str, text: str) -> str:
    try:
        duration.seconds(text)
    except ValueError as error:
        raise ShardError(f"spec.minRuntime, {name}: {error}") from None
    return text


def _arguments(plugin: Plugin | None, default: Mapping[str, str]) -> dict[str, str]:
    """A plugin's arguments, which replace all defaults, as upstream does."""
    return dict(plugin.arguments if plugin is not None and plugin.arguments else default)


def _ordered(
    priorities: Mapping[str, int], overrides: Mapping[str, Plugin] | Mapping[str, Action], off: set[str]
) -> list[str]:
    """The enabled names by descending priority, then by name."""
    chosen: dict[str, int] = {}
    for name, default in priorities.items():
        override = overrides.get(name)
        enabled = override.enabled if override is not None else None
        # To name an optional plugin is to switch it on.
        if not (enabled if enabled is not None else name not in off or (override is not None and default == 0)):
            continue
        chosen[name] = override.priority if override is not None and override.priority is not None else default
    return sorted(chosen, key=lambda name: (-chosen[name], name))


def _known(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    unknown = sorted(set(names) - set(allowed))
    if unknown:
        raise ShardError(f"{what} {', '.join(unknown)} is unknown; known are {', '.join(sorted(allowed))}")
