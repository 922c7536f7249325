"""Why a node does not take a task, as data; `why.texts` puts it into words."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Code(StrEnum):
    """What stands between a task and a node."""

    # The node takes no pods. The subject of NODE_PRESSURE is the node's condition.
    NODE_DELETED = "NodeDeleted"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NOT_READY = "NodeNotReady"
    NODE_PRESSURE = "NodePressure"
    # The node does not take this pod. The subject is a taint's key (the detail its value), the kind of
    # worker, or a resource claim.
    TAINT = "Taint"
    NODE_AFFINITY = "NodeAffinity"
    POD_AFFINITY = "PodAffinity"
    WORKER_KIND = "WorkerKind"
    VOLUME_AFFINITY = "VolumeAffinity"
    VOLUME_COUNT = "VolumeCount"
    POD_SLOTS = "PodSlots"
    RESERVED = "Reserved"
    NUMA = "Numa"
    DEVICES = "Devices"
    CLAIM_CONSUMERS = "ClaimConsumers"
    GPU_MEMORY_UNKNOWN = "GpuMemoryUnknown"
    SHARED_ON_CLAIMED_GPUS = "SharedOnClaimedGpus"
    MIG_ON_PLAIN_NODE = "MigOnPlainNode"
    MIG_SINGLE = "MigSingle"
    MIG_MIXED = "MigMixed"
    MIG_BY_ANNOTATION = "MigByAnnotation"
    MIG_BY_ANNOTATION_ON_NODE = "MigByAnnotationOnNode"
    # Too little is free. The subject is a resource or a MIG profile.
    RESOURCE = "Resource"
    MIG_PROFILE = "MigProfile"
    GPU_MEMORY = "GpuMemory"
    # A plugin of another package; the subject is its own sentence.
    OTHER = "Other"


class Refusal(NamedTuple):
    """One reason of a node to refuse a task."""

    code: Code
    subject: str = ""
    detail: str = ""
