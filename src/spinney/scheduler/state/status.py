"""What a task is doing, as bits, and the groups of statuses that decisions are made on."""

from __future__ import annotations

PENDING = 1
GATED = 2
ALLOCATED = 4
PIPELINED = 8
BINDING = 16
BOUND = 32
RUNNING = 64
RELEASING = 128
SUCCEEDED = 256
FAILED = 512
UNKNOWN = 1024
DELETED = 2048
STUCK = 4096

# Tasks that take room on a node.
USED = ALLOCATED | PIPELINED | BINDING | BOUND | RUNNING | RELEASING | STUCK
# Tasks that count as present in their gang.
ACTIVE = ALLOCATED | PIPELINED | BINDING | BOUND | RUNNING
# Tasks that count against their queue when the cycle starts.
CHARGED = ALLOCATED | BOUND | BINDING | RUNNING
ALIVE = ACTIVE | PENDING | GATED

NAMES = {
    PENDING: "Pending",
    GATED: "Gated",
    ALLOCATED: "Allocated",
    PIPELINED: "Pipelined",
    BINDING: "Binding",
    BOUND: "Bound",
    RUNNING: "Running",
    RELEASING: "Releasing",
    SUCCEEDED: "Succeeded",
    FAILED: "Failed",
    UNKNOWN: "Unknown",
    DELETED: "Deleted",
    STUCK: "StuckInReleasing",
}
VALUES = {name: value for value, name in NAMES.items()}
