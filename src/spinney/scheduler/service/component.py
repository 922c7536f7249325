"""`spinney run scheduler`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from dataclasses import replace

from spinney.api.duration import prometheus_seconds
from spinney.api.kaishard import UsageDb, UsageParams
from spinney.api.noderesourcetopology import NodeResourceTopology
from spinney.api.numbers import whole_number
from spinney.api.resource import ResourceClaim
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import Clock, LoopClock
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.scheduler.config import ConfigError
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.service.debug_pages import DebugPages
from spinney.scheduler.service.decision_log import DecisionLog
from spinney.scheduler.service.loop import Scheduler, think_in_thread, think_inline
from spinney.scheduler.service.prometheus_usage import PrometheusUsage, UsageQuery, metrics_of
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.usage_window import window_of
from spinney.scheduler.share.usage import UsageRecord

_READ = ("get", "list", "watch")
_LAST_PORT = 65535
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


async def run(runtime: Runtime, config: object = None) -> None:
    """Schedule until cancelled."""
    # Virtual time knows no threads: its clock follows the loop, and so does the plan.
    think = think_inline if isinstance(runtime.clock, LoopClock) else think_in_thread
    file = config if isinstance(config, SchedulerFile) else SchedulerFile()
    shard = Shard(file.scheduler_name, file.node_pool_label_key, file.partition_label_value)
    usage = usage_source(file.usage_db_config, runtime.clock) if file.usage_db_config is not None else None
    devices = await Discovery(runtime.client).serves(ResourceClaim.resource.api_version)
    settings = from_file(file)
    aligns = any(plugin.name == "numa" for plugin in settings.plugins)
    zones = aligns and await Discovery(runtime.client).serves(NodeResourceTopology.resource.api_version)
    scheduler = Scheduler(
        runtime,
        shard,
        settings,
        think,
        stand_in=file.stand_in,
        devices=devices,
        zones=zones,
        usage=usage,
        decision_log=DecisionLog(file.decision_log) if file.decision_log is not None else None,
    )
    port = _port(file.args.get("plugin-server-port", ""))
    if not port or think is think_inline:
        await scheduler.run()
        return
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(DebugPages(runtime.client, file, settings, lambda: scheduler.turns).serve(port))
        tasks.create_task(scheduler.run())


def _port(text: str) -> int:
    """The port of the debug pages; 0 if none is configured."""
    if not text:
        return 0
    port = whole_number(text)
    if port is None or port > _LAST_PORT:
        raise ConfigError(f"args.plugin-server-port is {text!r}: it must be a number from 0 to {_LAST_PORT}")
    return port


def usage_source(settings: UsageDb, clock: Clock) -> UsageRecord | PrometheusUsage:
    """The source of recent usage: the configured Prometheus, else our own record."""
    parameters = settings.usage_params or UsageParams()
    half_life = prometheus_seconds(parameters.half_life_period) if parameters.half_life_period else None
    window = window_of(parameters)
    address = settings.connection_string or os.environ.get(settings.connection_string_env_var, "")
    if settings.client_type != "prometheus" or not address:
        return UsageRecord(half_life)
    allocated, capacity = metrics_of(parameters.extra_params)
    query = UsageQuery(
        address,
        window=window,
        half_life_seconds=half_life,
        every_seconds=prometheus_seconds(parameters.fetch_interval or "1m"),
        timeout_seconds=prometheus_seconds(parameters.wait_timeout or "1m"),
        allocated=allocated,
        capacity=capacity,
    )
    return PrometheusUsage(query, clock)


def lease_name(file: SchedulerFile) -> str:
    """The name of the shard's lease, as upstream names it; invalid characters of a pool's name are replaced."""
    pool = file.partition_label_value
    if pool and not _OBJECT_NAME.fullmatch(pool):
        spelled = re.sub(r"[^a-z0-9.-]", "-", pool.lower())
        pool = f"{spelled}-{hashlib.sha256(pool.encode()).hexdigest()[:8]}"
    return "-".join(filter(None, (file.scheduler_name, pool)))


# Where it stands in for kube-scheduler: it binds pods itself, and holds the Lease that kube-scheduler would.
_STANDING_IN = (
    Rule(("scheduling.k8s.io",), ("workloads",), _READ),
    Rule(("",), ("pods/binding",), ("create",)),
    Rule(("coordination.k8s.io",), ("leases",), ("get", "create", "patch")),
)


def _configured(file: SchedulerFile | None) -> Component:
    """With the rights that its file makes necessary."""
    if file is None or not file.stand_in:
        return COMPONENT
    return replace(COMPONENT, rules=(*COMPONENT.rules, *_STANDING_IN))


COMPONENT = Component(
    name="scheduler",
    summary="Decides which gangs run where, and which have to make room.",
    run=run,
    settings=SchedulerFile,
    lease=lease_name,
    configured=_configured,
    # The record of use and decisions.
    namespace_rules=(Rule(("",), ("configmaps",), ("get", "create", "patch")),),
    rules=(
        Rule(("",), ("pods", "nodes", "namespaces"), _READ),
        Rule(("",), ("configmaps", "persistentvolumes", "persistentvolumeclaims"), _READ),
        Rule(("storage.k8s.io",), ("storageclasses", "csinodes", "volumeattachments"), _READ),
        # For snapshots only.
        Rule(("storage.k8s.io",), ("csidrivers", "csistoragecapacities"), ("list",)),
        Rule(("resource.k8s.io",), ("resourceclaims", "resourceslices", "deviceclasses"), _READ),
        # Only with the plugin that aligns pods to NUMA zones.
        Rule(("topology.node.k8s.io",), ("noderesourcetopologies",), _READ),
        Rule(("policy",), ("poddisruptionbudgets",), _READ),
        Rule(("",), ("pods/status",), ("patch",)),
        Rule(("",), ("pods/eviction",), ("create",)),
        Rule(("",), ("events",), ("create", "patch")),
        Rule(("scheduling.k8s.io",), ("priorityclasses",), _READ),
        Rule(("kai.scheduler",), ("topologies",), _READ),
        Rule(("scheduling.run.ai",), ("podgroups",), (*_READ, "patch")),
        Rule(("scheduling.run.ai",), ("podgroups/status",), ("patch",)),
        Rule(("scheduling.run.ai",), ("queues",), _READ),
        Rule(("scheduling.run.ai",), ("bindrequests",), (*_READ, "create", "delete")),
    ),
)
