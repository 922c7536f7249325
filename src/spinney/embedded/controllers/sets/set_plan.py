"""What controllers of sets of pods have in common: the shape of a plan, what a status tells anew, how both are done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from spinney.api.core import Pod
from spinney.api.meta import Json, Object, Struct
from spinney.api.owners import controller_of
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, NotFound

BY_CONTROLLER = "controller-uid"


@dataclass
class SetPlan:
    """The wanted changes: pods to make and to delete, what to tell, and when to look again."""

    create: list[Json] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    wake: float | None = None


def controller_uid(each: Object) -> tuple[str, ...]:
    """The key under which objects are indexed: their controller's UID."""
    owner = controller_of(each.metadata)
    return (owner.uid,) if owner else ()


def soonest(waits: Iterable[float | None]) -> float | None:
    """The shortest of the waits that are not over; None where nobody waits."""
    return min((wait for wait in waits if wait), default=None)


def told_anew(known: Struct, **wanted: Any) -> Json:
    """The members of a status that are not as wanted, under their names on the wire."""
    names = {member.name: member.encode_name for member in msgspec.structs.fields(known)}
    return {names[name]: value for name, value in wanted.items() if getattr(known, name) != value}


async def create_once(client: Client, kind: type[Object], body: Json, namespace: str) -> bool:
    """Create an object, unless one of that name is there; says whether it was made."""
    try:
        await client.create(kind, body, namespace)
    except AlreadyExists:
        return False
    return True


async def delete_once(client: Client, kind: type[Object], namespace: str, name: str, uid: str = "") -> bool:
    """Delete an object; says whether it was there."""
    try:
        await client.delete(kind, (namespace, name), uid=uid)
    except NotFound:
        return False
    return True


async def report(client: Client, owner: Object, status: Json) -> None:
    """Write what changed in the status of a set."""
    if status:
        patch = {"metadata": {"uid": owner.uid}, "status": status}
        await client.patch(type(owner), owner.key, patch, subresource="status")
