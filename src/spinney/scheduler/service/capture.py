"""List all objects of a snapshot from a cluster."""

from __future__ import annotations

import msgspec

from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client
from spinney.kube.errors import Forbidden, NotFound
from spinney.scheduler.intake.snapshot import KINDS

_PAGE = "500"


async def capture(client: Client) -> dict[Resource, list[Json]]:
    """Every object of every kind that a snapshot holds."""
    return {kind.resource: await _all(client, kind.resource) for kind in KINDS.values()}


async def _all(client: Client, resource: Resource) -> list[Json]:
    """Every object of a kind as plain data; none if the kind is not served or forbidden."""
    items: list[Json] = []
    token = ""
    while True:
        query = [("limit", _PAGE)] + ([("continue", token)] if token else [])
        try:
            response = await client.call("GET", resource.path(), query)
        except (NotFound, Forbidden):
            return items
        page = msgspec.json.decode(response.body)
        items += page.get("items") or []
        token = page.get("metadata", {}).get("continue", "")
        if not token:
            return items
