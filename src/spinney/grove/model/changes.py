"""The changes that a plan asks for: plain data, applied by the executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.grove.model.resource_sharing import Claim, Owner


@dataclass(frozen=True)
class Create:
    """Create an object, or take the existing one of that name if it has the same controller."""

    kind: type[Object]
    body: Json
    # The clique on which a failure is recorded.
    clique: PodClique | None = None


@dataclass(frozen=True)
class CreateClaims:
    """Create ResourceClaims of a set replica from their templates, which the executor reads."""

    pcs: PodCliqueSet
    index: int
    claims: tuple[tuple[Claim, Owner], ...]


@dataclass(frozen=True)
class Confirm:
    """Fail if this object is gone or its spec has changed since it was read: caches may be late.

    What is created for a deleted owner would be deleted at once, and a newer spec may need what an older one deletes.
    """

    stored: Object


@dataclass(frozen=True)
class Patch:
    """Merge a patch into an object; nothing happens where it is gone.

    `guarded` fails where someone wrote the object since it was read.
    """

    stored: Object
    patch: Json
    guarded: bool = False


@dataclass(frozen=True)
class PatchStatus:
    """Merge a patch into an object's status; `guarded` fails where someone wrote the object since it was read."""

    stored: Object
    patch: Json
    guarded: bool = False


@dataclass(frozen=True)
class RemoveGates:
    """Remove scheduling gates from this pod, each by its name, and confine it to some nodes."""

    pod: Pod
    gates: tuple[str, ...]
    # Labels that its node must have.
    node_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RemoveFinalizer:
    """Remove a finalizer of the operator from this object."""

    stored: Object
    finalizer: str


@dataclass(frozen=True)
class Delete:
    """Delete this object by UID, its finalizer first; `unchanged` only if nobody wrote it since it was read."""

    stored: Object
    finalizer: str = ""
    unchanged: bool = False


@dataclass(frozen=True)
class RecordEvent:
    """Record an event about an object."""

    about: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Change = Create | CreateClaims | Confirm | Patch | PatchStatus | RemoveGates | RemoveFinalizer | Delete | RecordEvent


@dataclass(frozen=True)
class Postponable:
    """Marks a step that may wait while the gates of other replicas come off."""

    # Whether a pod of the replica has lost the operator's gate, and whether one has a node: what the wait depends on.
    ungated: bool
    scheduled: bool


@dataclass(frozen=True)
class Step:
    """Changes that are made together; the next step follows when all of them are done."""

    changes: tuple[Change, ...] = ()
    postponable: Postponable | None = None
    # When to plan again although nothing changed.
    look_again: datetime | None = None
