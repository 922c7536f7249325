"""Why a gang waits, as data: what blocks it, by how much, and what would be enough. `texts` puts it into words."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api.missing import Missing
from spinney.scheduler.state.refusal import Refusal
from spinney.scheduler.state.specs import Constraint
from spinney.scheduler.state.tasks import Triple


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A queue would hold more than its limit; raising the limit by `short` would be enough."""

    queue: str
    resource: int
    limit: float
    held: float
    wanted: Triple

    @property
    def short(self) -> float:
        """How much the limit is too low."""
        return self.held + self.wanted[self.resource] - self.limit


@dataclass(frozen=True, slots=True)
class OverQuota:
    """What may not be evicted would go beyond a queue's quota; raising the quota by `short` would be enough."""

    queue: str
    resource: int
    quota: float
    held: float
    wanted: Triple

    @property
    def short(self) -> float:
        """How much the quota is too low."""
        return self.held + self.wanted[self.resource] - self.quota


NodeRefusal = Refusal | Missing | OverLimit | OverQuota


@dataclass(frozen=True, slots=True)
class UnknownTopology:
    """A gang names a topology, or a level of it, that does not exist."""

    topology: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class NoDomain:
    """No domain of the required level holds the group."""

    job: str
    constraint: Constraint
    group: str
    tasks: int
    # How many tasks the best domain holds; -1 where tasks are too unlike to be counted. No name: there is no domain.
    best: int = -1
    domain: str = ""
    # How many tasks the largest domain would hold if nothing else ran there.
    most: int = -1
    # The domain above, or "the cluster", where even all of it is too small.
    short: str = ""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A task found no node: how many nodes refused it and why, and how far the gang got."""

    task: str
    group: str
    found: int
    required: int
    gang: bool
    subgroups: bool
    # Each reason with the number of nodes that have it; a queue refuses where a share of a GPU costs it too much.
    refusals: tuple[tuple[NodeRefusal, int], ...]
    # What one more task needs on a single node, and the memory (MiB) that it asks of a GPU instead of a part.
    needed: Triple = (0.0, 0.0, 0.0)
    gpu_memory: int = 0
    # Whether it asks for more than any node has, even an empty one.
    too_large: bool = False
    # Whether it chooses its nodes, by a selector or by affinity.
    selective: bool = False


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The gang may not have others evicted before a moment."""

    delay: float
    until: float


@dataclass(frozen=True, slots=True)
class NoQueue:
    """The gang's queue does not exist, or one above it, or it holds other queues."""

    queue: str
    # The queue above that is not there, or not in the shard.
    missing: str = ""
    has_children: bool = False


@dataclass(frozen=True, slots=True)
class NotReady:
    """The gang waits for tasks of its own: so many exist and are not gated, of so many needed."""

    ready: int
    required: int
    gated: int


@dataclass(frozen=True, slots=True)
class NotFound:
    """The search for victims was given up after so many scenarios."""

    action: str
    steps: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """So many nodes are kept for the gang since a moment; it starts once they have room for all of it."""

    nodes: int
    since: float


@dataclass(frozen=True, slots=True)
class QueueKept:
    """What is left of a queue's limit or quota is kept for a gang that has waited longer."""

    queue: str
    resource: int
    bound: float
    held: float
    wanted: Triple


@dataclass(frozen=True, slots=True)
class LeftAside:
    """A plan failed while it looked at the gang, which is left out since: a fault of the scheduler, not of the gang."""

    error: str


Problem = (
    OverLimit
    | OverQuota
    | UnknownTopology
    | NoDomain
    | NoRoom
    | HeldBack
    | NoQueue
    | NotReady
    | NotFound
    | Reserved
    | QueueKept
    | LeftAside
)
