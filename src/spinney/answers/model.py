"""The types of all answers: what `-o json` prints and what the dashboard serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")

Phase = Literal["Waiting", "Starting", "Running", "Suspended", "Succeeded", "Failed", "Terminating"]
Sureness = Literal["exact", "estimate", "guess", "unknown"]
Step = Literal["created", "gated", "released", "decided", "bound", "ready"]
# Times are RFC 3339 in UTC.
Time = str
# Topology level (a node label key) → the domain's value.
Domain = dict[str, str]


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all answers: immutable, camel case on the wire, every field always present."""


class Amounts(Answer, frozen=True):
    """GPUs, cores and bytes; None is unlimited."""

    gpu: float | None = 0.0
    cpu: float | None = 0.0
    memory: float | None = 0.0


class Reason(Answer, frozen=True):
    """The dominant blocker in one sentence, what to do about it, and how much of each resource is missing."""

    code: str
    text: str
    advice: Sequence[str] = ()
    missing: dict[str, float] = {}


class WorkloadRef(Answer, frozen=True):
    """The object that a user created: a Job, a PodCliqueSet, a bare pod."""

    kind: str
    api_version: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


class ExpectedStart(Answer, frozen=True):
    """When a waiting workload is expected to start, and how sure that is."""

    at: Time | None
    sureness: Sureness
    text: str


class Workload(Answer, frozen=True):
    """One workload: what it asks for, how far it is, and why it waits."""

    ref: WorkloadRef
    uid: str
    queue: str
    # None where the PriorityClass that counts may not be read.
    priority: int | None
    priority_class: str
    # The backend's name, or the scheduler's where no backend claims it.
    scheduler: str
    phase: Phase
    placed: int
    # None where its gangs may not be read.
    minimum: int | None
    total: int
    ready: int
    # None where pods ask for memory of GPUs, and nodes may not be read.
    gpus: float | None
    created: Time
    started: Time | None = None
    # Place in line of its queue, from 1.
    line: int | None = None
    expected_start: ExpectedStart | None = None
    why: Reason | None = None
    gangs: Sequence[str] = ()
    # True where the reader may not read the workload itself.
    hidden: bool = False


class PodGpus(Answer, frozen=True):
    """GPUs of a pod: whole ones, or a fraction or memory of each, and the devices it got."""

    count: float = 0.0
    fraction: float | None = None
    # MiB of each device.
    memory: int | None = None
    indices: Sequence[int] = ()


class PodRow(Answer, frozen=True):
    """One pod of a workload."""

    namespace: str
    name: str
    phase: str
    node: str | None
    domain: Domain
    gpus: PodGpus
    ready: bool
    reason: Reason | None
    created: Time
    bound: Time | None = None


class Group(Answer, frozen=True):
    """A part of a workload with a minimum of its own: a gang, a scaling group, a clique, a subgroup."""

    kind: str
    name: str
    # None where its gang may not be read.
    minimum: int | None
    total: int
    ready: int
    starts_after: Sequence[str] = ()
    groups: Sequence[Group] = ()
    pods: Sequence[PodRow] = ()
    # What its own object says about it, such as the phase of a gang; empty if nothing.
    phase: str = ""
    detail: str = ""


class Event(Answer, frozen=True):
    """An event about an object."""

    at: Time
    type: str
    reason: str
    text: str
    object: str
    # The namespace of the object; empty for cluster-scoped kinds.
    namespace: str = ""


class TimelineStep(Answer, frozen=True):
    """When the last of so many pods reached a step."""

    step: Step
    at: Time
    pods: int


class WorkloadTree(Answer, frozen=True):
    """A workload with its groups, pods and history."""

    workload: Workload
    groups: Sequence[Group] = ()
    events: Sequence[Event] = ()
    timeline: Sequence[TimelineStep] = ()


class Queue(Answer, frozen=True):
    """A queue with everything below it."""

    name: str
    parent: str | None
    depth: int
    priority: int
    quota: Amounts
    limit: Amounts
    fair_share: Amounts
    allocated: Amounts
    borrowed: Amounts
    # What its pending pods ask for.
    requested: Amounts
    waiting: int = 0
    running: int = 0
    problem: str | None = None


class Sharer(Answer, frozen=True):
    """A pod that has a GPU, or a part of one."""

    namespace: str
    pod: str
    workload: WorkloadRef | None
    queue: str
    fraction: float


class Gpu(Answer, frozen=True):
    """One device of a node."""

    index: int
    sharers: Sequence[Sharer] = ()
    used: float = 0.0
    # The pod that holds a shared device for its sharers.
    reservation: str | None = None


class Node(Answer, frozen=True):
    """A node, what is on it, and what is wrong with it."""

    name: str
    ready: bool
    cordoned: bool
    domain: Domain
    gpus: Sequence[Gpu]
    allocatable: Amounts
    allocated: Amounts
    pods: int
    problem: str | None = None


class TopologyDomain(Answer, frozen=True):
    """A rack, a block, a zone: its nodes and GPUs."""

    level: str
    name: str
    parent: str | None
    nodes: int
    gpus: float
    free: float


class Topology(Answer, frozen=True):
    """Levels of the cluster from the widest to the narrowest, and their domains."""

    levels: Sequence[str] = ()
    domains: Sequence[TopologyDomain] = ()


class Explanation(Answer, frozen=True):
    """The explanation of one subject: the blocker first, then numbers, advice, line and expected start."""

    # As `kind/name`.
    subject: str
    # The reason why it waits; None where nothing does.
    why: Reason | None = None
    # Whether the advice was tried in the scheduler and lets it run.
    advice_tried: bool = False
    sentences: Sequence[str] = ()
    workload: Workload | None = None


class Eviction(Answer, frozen=True):
    """An evicted pod: for which workload, by which right, and what it cost."""

    at: Time
    pod: str
    workload: WorkloadRef | None
    queue: str
    by_workload: WorkloadRef | None
    by_queue: str | None
    # reclaim, preempt, consolidate, stale-gang, gang-termination, or another scheduler's word.
    right: str
    text: str
    gpus: float = 0.0
    gpu_hours_lost: float | None = None
    # How many other gangs could have given way by the same right; None where the scheduler did not say.
    alternatives: int | None = None


class CapacityPart(Answer, frozen=True):
    """GPUs that are idle for one reason."""

    reason: str
    gpus: float
    nodes: int
    text: str


class CapacityShare(Answer, frozen=True):
    """The same for one rack or one queue."""

    name: str
    total: float
    used: float
    idle: float
    by_reason: Sequence[CapacityPart] = ()


class Capacity(Answer, frozen=True):
    """Idle GPUs by the reason why no pod uses them."""

    total: float
    used: float
    idle: float
    by_reason: Sequence[CapacityPart] = ()
    by_rack: Sequence[CapacityShare] = ()
    by_queue: Sequence[CapacityShare] = ()


class GpuTotals(Answer, frozen=True):
    """GPUs of the cluster, and those that pending pods ask for."""

    total: float
    used: float
    idle: float
    waiting: float


class Overview(Answer, frozen=True):
    """The cluster at a glance."""

    at: Time
    gpus: GpuTotals
    capacity: Capacity
    queues: Sequence[Queue]
    workloads: dict[str, int]
    evictions: Sequence[Eviction]
    events: Sequence[Event]


class Placement(Answer, frozen=True):
    """A workload that would start, where and when, and when it would have started otherwise."""

    workload: WorkloadRef
    nodes: Sequence[str]
    queue: str = ""
    pods: int = 0
    pods_by_node: dict[str, int] = {}
    gpus: float = 0.0
    expected_start: ExpectedStart | None = None
    # Without the changes; None for a workload that they create.
    before: ExpectedStart | None = None


class Displacement(Answer, frozen=True):
    """A pod that would be evicted or moved, for which workload and by which right."""

    pod: str
    workload: WorkloadRef | None
    # The workload that it makes room for.
    beneficiary: WorkloadRef | None = msgspec.field(default=None, name="for")
    node: str | None = None
    # Where it would go; None for one that waits, or does not come back.
    to: str | None = None
    # reclaim, preempt, consolidate, stale-gang, drain or node-removed.
    right: str = ""
    text: str = ""
    gpus: float = 0.0


class ShareChange(Answer, frozen=True):
    """The fair share and the allocation of a queue before and after."""

    queue: str
    before: Amounts
    after: Amounts
    allocated_before: Amounts = Amounts()
    allocated_after: Amounts = Amounts()


class StillWaiting(Answer, frozen=True):
    """A workload that would wait, why, and its expected start with and without the changes."""

    workload: WorkloadRef
    why: Reason
    expected_start: ExpectedStart | None = None
    before: ExpectedStart | None = None
    # True if it runs now, or would start now, without the changes.
    worse: bool = False


class WhatIf(Answer, frozen=True):
    """What would be different if something changed."""

    changes: Sequence[str]
    starts: Sequence[Placement] = ()
    evicted: Sequence[Displacement] = ()
    moved: Sequence[Displacement] = ()
    shares: Sequence[ShareChange] = ()
    still_waiting: Sequence[StillWaiting] = ()
    # What the answer rests on, since only the cluster itself knows.
    assumed: Sequence[str] = ()
    text: str = ""


class LevelGain(Answer, frozen=True):
    """GPUs of the largest gang that fits in one domain of a level, before and after."""

    level: str
    before: float
    after: float


class Defrag(Answer, frozen=True):
    """Pods to move together, and what that gains."""

    moves: Sequence[Displacement] = ()
    # Idle GPUs on nodes that are used in part.
    stranded_before: float = 0.0
    stranded_after: float = 0.0
    levels: Sequence[LevelGain] = ()
    # Why nodes that are used in part stay so, with their number.
    kept: dict[str, int] = {}
    text: str = ""


class Unread(Answer, frozen=True):
    """A kind that could not be read, and why."""

    kind: str
    text: str


class Listing(Answer, Generic[T], frozen=True):
    """A list of answers, with what could not be read for it."""

    at: Time
    items: Sequence[T]
    partial: Sequence[Unread] = ()
