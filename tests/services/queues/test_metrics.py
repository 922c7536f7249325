"""Queues as metrics: names, units and labels that KAI's users query."""

from __future__ import annotations

from spinney.api.kai import Queue
from spinney.api.meta import Json, convert
from spinney.services.queues.metrics import QueueMetrics, QueueSettings, values


def queue(**spec: Json) -> Queue:
    """A queue with some usage."""
    allocated = {"nvidia.com/gpu": "2500m", "cpu": "1500m", "memory": "1Gi"}
    return convert(
        Queue,
        {
            "metadata": {"name": "team", "labels": {"tier": "gold"}},
            "spec": {"displayName": "Team", "resources": spec},
            "status": {"allocated": allocated},
        },
    )


def test_units() -> None:
    """GPUs in devices, CPU in cores, memory in bytes; unlimited stays -1."""
    samples = values(queue(gpu={"quota": 4}, cpu={"quota": 2000}, memory={"quota": -1}))
    assert samples == {
        "queue_info": 1,
        "queue_deserved_gpus": 4,
        "queue_quota_cpu_cores": 2,
        "queue_quota_memory_bytes": -1,
        "queue_allocated_gpus": 2.5,
        "queue_allocated_cpu_cores": 1.5,
        "queue_allocated_memory_bytes": 2**30,
    }


def test_labels() -> None:
    """Names of the queue, and its own labels where they are mapped."""
    settings = QueueSettings(metric_labels={"tier": "tier", "cost": "cost"}, metric_defaults={"cost": "none"})
    families = {family.name: family for family in QueueMetrics([queue()], settings).collect()}  # type: ignore[arg-type]  # a list is read like a cache
    sample = families["kai_queue_allocated_gpus"].samples[0]
    assert sample.labels == {
        "queue_name": "team",
        "queue_metadata_name": "team",
        "queue_display_name": "Team",
        "tier": "gold",
        "cost": "none",
    }
