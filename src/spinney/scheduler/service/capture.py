"""List all objects of a snapshot from a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client
from spinney.kube.errors import Forbidden, NotFound
from spinney.scheduler.intake.snapshot import KINDS

_PAGE = "500"


@dataclass
class Captured:
    """The objects of a snapshot, and why those of some kinds are missing."""

    objects: dict[Resource, list[Json]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


async def capture(client: Client) -> Captured:
    """Every object of every kind that a snapshot holds."""
    captured = Captured()
    await asyncio.gather(*(_add(client, kind.resource, captured) for kind in KINDS.values()))
    return captured


async def _add(client: Client, resource: Resource, captured: Captured) -> None:
    captured.objects[resource] = []
    try:
        captured.objects[resource] = await _all(client, resource)
    except Forbidden as error:
        captured.refused.append(str(error))


async def _all(client: Client, resource: Resource) -> list[Json]:
    """Every object of a kind as plain data; none if the kind is not served."""
    items: list[Json] = []
    token = ""
    while True:
        query = [("limit", _PAGE)] + ([("continue", token)] if token else [])
        try:
            response = await client.call("GET", resource.path(), query)
        except NotFound:
            return items
        page = msgspec.json.decode(response.body)
        items += page.get("items") or []
        token = page.get("metadata", {}).get("continue", "")
        if not token:
            return items
