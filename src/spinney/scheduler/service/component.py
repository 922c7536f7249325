"""`spinney run scheduler`."""

from __future__ import annotations

from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.clock import LoopClock
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.scheduler.file import from_file
from spinney.scheduler.service.feed import Shard
from spinney.scheduler.service.loop import Scheduler, think_in_thread, think_inline

_READ = ("get", "list", "watch")


async def run(runtime: Runtime, config: object = None) -> None:
    """Schedule until cancelled."""
    # Virtual time knows no threads: its clock follows the loop, and so does the plan.
    think = think_inline if isinstance(runtime.clock, LoopClock) else think_in_thread
    file = config if isinstance(config, SchedulerFile) else SchedulerFile()
    shard = Shard(file.scheduler_name, file.node_pool_label_key, file.partition_label_value)
    await Scheduler(runtime, shard, from_file(file), think, stand_in=file.stand_in).run()


def lease_name(file: SchedulerFile) -> str:
    """One per shard, named as upstream's."""
    return "-".join(filter(None, (file.scheduler_name, file.partition_label_value)))


COMPONENT = Component(
    name="scheduler",
    summary="Decides which gangs run where, and which have to make room.",
    run=run,
    settings=SchedulerFile,
    lease=lease_name,
    rules=(
        Rule(("",), ("pods", "nodes", "configmaps", "persistentvolumes", "persistentvolumeclaims"), _READ),
        Rule(("storage.k8s.io",), ("storageclasses",), _READ),
        Rule(("policy",), ("poddisruptionbudgets",), _READ),
        Rule(("",), ("pods/status",), ("patch",)),
        Rule(("",), ("pods/eviction",), ("create",)),
        Rule(("",), ("events",), ("create", "patch")),
        Rule(("scheduling.k8s.io",), ("priorityclasses",), _READ),
        Rule(("kai.scheduler",), ("topologies",), _READ),
        Rule(("scheduling.run.ai",), ("podgroups",), (*_READ, "patch")),
        Rule(("scheduling.run.ai",), ("podgroups/status",), ("patch",)),
        Rule(("scheduling.run.ai",), ("queues",), _READ),
        # Only where it stands in for kube-scheduler.
        Rule(("scheduling.k8s.io",), ("workloads",), _READ),
        Rule(("",), ("pods/binding",), ("create",)),
        Rule(("coordination.k8s.io",), ("leases",), ("get", "create", "update", "patch")),
        Rule(("scheduling.run.ai",), ("bindrequests",), (*_READ, "create", "delete")),
    ),
)
