"""Why a gang waits, as data: what blocks it, by how much, and what would be enough."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.scheduler.specs import Constraint
from spinney.scheduler.tasks import Triple


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A queue would hold more than its limit."""

    queue: str
    resource: int
    limit: float
    held: float
    wanted: Triple


@dataclass(frozen=True, slots=True)
class OverQuota:
    """What may not be evicted would go beyond a queue's quota."""

    queue: str
    resource: int
    quota: float
    held: float
    wanted: Triple


@dataclass(frozen=True, slots=True)
class UnknownTopology:
    """A gang names a topology, or a level of it, that does not exist."""

    topology: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class NoDomain:
    """No domain of the required level holds the group."""

    constraint: Constraint
    group: str
    tasks: int
