"""The scheduler's configuration file: upstream's format, with what upstream passes as flags beside it."""

from __future__ import annotations

from importlib.metadata import entry_points

import msgspec

from spinney.api import labels
from spinney.api.kaishard import SearchBudgets, UsageDb
from spinney.api.meta import Struct

PLUGIN_ENTRY_POINTS = "spinney.scheduler.plugins"

# Upstream's defaults; a higher priority comes first.
PLUGIN_PRIORITIES: dict[str, int] = {
    "predicates": 1900,
    "proportion": 1800,
    "priority": 1700,
    "nodeavailability": 1600,
    "resourcetype": 1500,
    "podaffinity": 1400,
    "elastic": 1300,
    "kubeflow": 1200,
    "ray": 1100,
    "subgrouporder": 1000,
    "taskorder": 900,
    "nominatednode": 800,
    "dynamicresources": 700,
    "minruntime": 600,
    "topology": 500,
    "snapshot": 400,
    "sg-nodelocalgreedy": 360,
    "sg-multinodegang": 350,
    "gpupack": 300,
    "gpuspread": 300,
    "nodeplacement": 200,
    "gpusharingorder": 100,
}
# Known, and off unless a shard switches them on.
OPTIONAL_PLUGINS = ("numa", "reflectjoborder", "fragmentation")
ACTION_PRIORITIES: dict[str, int] = {
    "allocate": 500,
    "consolidation": 400,
    "reclaim": 300,
    "preempt": 200,
    "stalegangeviction": 100,
}
# Upstream's flags, and three of ours first; those that mean something to us are read by `scheduler.intake.config_file`.
ARGUMENTS = frozenset(
    (
        "reservation-delay",
        "max-reservations",
        "rehome-victims-anywhere",
        "scheduler-name",
        "namespace",
        "metrics-namespace",
        "resource-reservation-app-label",
        "restrict-node-scheduling",
        "nodepool-label-key",
        "partition-label-value",
        "queue-label-key",
        "scheduler-conf",
        "schedule-period",
        "leader-elect",
        "leader-elect-lease-duration",
        "leader-elect-renew-deadline",
        "leader-elect-retry-period",
        "listen-address",
        "plugin-server-port",
        "enable-profiler",
        "profiler-port",
        "pyroscope-address",
        "pyroscope-mutex-profiler-rate",
        "pyroscope-block-profiler-rate",
        "v",
        "log-json",
        "max-consolidation-preemptees",
        "qps",
        "burst",
        "detailed-fit-errors",
        "update-pod-eviction-condition",
        "schedule-csi-storage",
        "use-scheduling-signatures",
        "full-hierarchy-fairness",
        "allow-consolidating-reclaim",
        "num-of-status-recording-workers",
        "default-staleness-grace-period",
        "stuck-in-releasing-threshold",
        "cpu-worker-node-label-key",
        "gpu-worker-node-label-key",
        "mig-worker-node-label-key",
        "feature-gates",
    )
)


class PluginEntry(Struct, frozen=True):
    """An enabled plugin."""

    name: str = ""
    arguments: dict[str, str] = {}


class Tier(Struct, frozen=True):
    """A tier of plugins, called in order."""

    plugins: tuple[PluginEntry, ...] = ()


class DecisionLogSettings(Struct, frozen=True):
    """Where the input and the output of every cycle are kept: at most so many bytes in so many files."""

    folder: str
    bytes: int = 256 << 20
    files: int = 4


class SchedulerFile(Struct, frozen=True):
    """What one scheduler does, for which nodes; without a word on actions or plugins upstream's defaults hold."""

    actions: str = ""
    tiers: tuple[Tier, ...] = ()
    queue_depth_per_action: dict[str, int] = {}
    usage_db_config: UsageDb | None = msgspec.field(default=None, name="usageDBConfig")
    scenario_search_budgets: SearchBudgets | None = None
    shard: str = ""
    scheduler_name: str = labels.KAI_SCHEDULER
    node_pool_label_key: str = labels.NODE_POOL
    partition_label_value: str = ""
    args: dict[str, str] = {}
    # Serve the pods of kube-scheduler as well, where none runs.
    stand_in: bool = False
    # Keep what every cycle saw and decided; nothing is kept without it.
    decision_log: DecisionLogSettings | None = None


def known_plugins() -> frozenset[str]:
    """The names that a plugin may have: ours, and those of installed packages."""
    others = (point.name for point in entry_points(group=PLUGIN_ENTRY_POINTS))
    return frozenset((*PLUGIN_PRIORITIES, *OPTIONAL_PLUGINS, *others))
