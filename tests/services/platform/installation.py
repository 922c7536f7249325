"""A platform on an embedded cluster, and what its conditions say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from spinney.api.conditions import find
from spinney.api.kai import Config, SchedulingShard
from spinney.api.meta import Json
from spinney.app.components import load
from tests.services.stage import Stage, stage

NAMESPACE = "kai-scheduler"


@asynccontextmanager
async def platform(spec: Json | None = None, **shards: Json) -> AsyncIterator[Stage]:
    """The operator with a Config and the default shard."""
    before: list[Any] = [(Config.resource, {"metadata": {"name": "kai-config"}, "spec": spec or {}}, "")]
    for name, shard in {"default": {}, **shards}.items():
        before.append((SchedulingShard.resource, {"metadata": {"name": name}, "spec": shard}, ""))
    async with stage((load("platform"), None), before=before) as held:
        await asyncio.sleep(1)
        yield held


async def said(held: Stage, of: type[Config] | type[SchedulingShard], name: str, kind: str) -> tuple[str, str]:
    """Status and message of a condition."""
    condition = find((await held.client.get(of, name)).status.conditions, kind)
    assert condition is not None
    return condition.status, condition.message
