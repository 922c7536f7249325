"""kai.scheduler: SchedulingShard, one scheduler of several."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from spinney.api.deployment import READY, DeploymentStatus, Plugin
from spinney.api.kaiconfig import VERSION
from spinney.api.meta import Object, Resource, Struct
from spinney.api.quantity import Quantity
from spinney.api.schema import REQUIRED, Column, Definition, schema


class Action(Struct, frozen=True):
    """An action: enabled or not, and its priority."""

    enabled: bool | None = None
    priority: int | None = None


class PlacementStrategy(Struct, frozen=True):
    """Whether jobs are packed or spread."""

    gpu: str = ""
    cpu: str = ""


class MinRuntime(Struct, frozen=True):
    """How long a job runs before it may be evicted."""

    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""


class UsageParams(Struct, frozen=True):
    """The time window of usage."""

    half_life_period: str = ""
    window_size: Annotated[
        str,
        schema(pattern="^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"),
    ] = ""
    window_type: str = ""
    tumbling_window_start_time: datetime | None = None
    cron_string: str = ""
    fetch_interval: str = ""
    staleness_period: str = ""
    wait_timeout: str = ""
    extra_params: dict[str, str] = {}


class UsageDb(Struct, frozen=True):
    """The source of past usage."""

    client_type: Annotated[str, REQUIRED] = ""
    connection_string: str = ""
    connection_string_env_var: str = ""
    usage_params: UsageParams | None = None


class SearchBudgets(Struct, frozen=True):
    """How long a search for victims may take."""

    max_action_search_duration: dict[str, str] = {}
    max_job_search_duration: str = ""
    min_job_search_duration: str = ""
    max_generator_search_duration: dict[str, str] = {}


class SchedulingShardSpec(Struct, frozen=True):
    """One scheduler: its nodes, its plugins, its actions."""

    args: dict[str, str] = {}
    go_mem_limit_ratio: Annotated[float | None, schema(minimum=0, exclusiveMinimum=True, maximum=1)] = None
    go_mem_limit: Quantity | None = None
    placement_strategy: PlacementStrategy | None = None
    partition_label_value: str = ""
    queue_depth_per_action: dict[str, int] = {}
    min_runtime: MinRuntime | None = None
    k_value: float | None = None
    usage_db_config: UsageDb | None = msgspec.field(default=None, name="usageDBConfig")
    scenario_search_budgets: SearchBudgets | None = None
    plugins: dict[str, Plugin] = {}
    actions: dict[str, Action] = {}


class SchedulingShard(Object, frozen=True):
    """One scheduler of several."""

    resource: ClassVar[Resource] = Resource(VERSION, "SchedulingShard", "schedulingshards", namespaced=False)
    crd: ClassVar[Definition] = Definition(columns=(Column("Partition", ".spec.partitionLabelValue", "string"), READY))

    spec: SchedulingShardSpec = SchedulingShardSpec()
    status: DeploymentStatus = DeploymentStatus()
