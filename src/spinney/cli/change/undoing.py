"""Changes that can be taken back: each leaves the patch that undoes it on the object."""

from __future__ import annotations

import json
from typing import Any

from spinney.api.labels import UNDO
from spinney.api.meta import Json, Key, Resource
from spinney.kube.client.client import Client
from spinney.kube.errors import Forbidden


async def change(client: Client, resource: Resource, key: Key, patch: Json, *, dry_run: bool) -> bool:
    """Patch an object and note how to undo it; False if it is as wanted already."""
    live = await client.get(resource, key)
    back = reverse(patch, live)
    if back == patch:
        return False
    note = {"metadata": {"annotations": {UNDO: json.dumps(back)}}}
    await client.patch(resource, key, {**patch, **note}, dry_run=dry_run)
    return True


async def undo(client: Client, resource: Resource, key: Key, *, dry_run: bool) -> Json | None:
    """Take the last change back; returns the patch, None if there is nothing to undo. A second undo does it again."""
    live = await client.get(resource, key)
    text = (live["metadata"].get("annotations") or {}).get(UNDO)
    if not text:
        return None
    patch: Json = json.loads(text)
    await change(client, resource, key, patch, dry_run=dry_run)
    return patch


async def forget(client: Client, resource: Resource, key: Key) -> None:
    """Drop the note of the last change after one that cannot be undone: undo would revert an earlier change."""
    try:
        live = await client.get(resource, key)
        if UNDO in (live["metadata"].get("annotations") or {}):
            await client.patch(resource, key, {"metadata": {"annotations": {UNDO: None}}})
    except Forbidden:
        # A user who may not patch the object cannot undo anything either.
        return


def reverse(patch: Json, live: Json) -> Json:
    """The merge patch that brings every member of a patch back to what an object has now."""
    back: dict[str, Any] = {}
    for name, value in patch.items():
        current = live.get(name) if isinstance(live, dict) else None
        back[name] = reverse(value, current or {}) if isinstance(value, dict) else current
    return back
