"""Leases for leader election."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from spinney.api.meta import Object, Resource, Struct


class LeaseSpec(Struct, frozen=True):
    """The holder of a lease, and its times."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Object, frozen=True):
    """A lock that expires."""

    resource: ClassVar[Resource] = Resource("coordination.k8s.io/v1", "Lease", "leases")

    spec: LeaseSpec = LeaseSpec()
