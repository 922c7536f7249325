"""Notes on PodGroups of what the scheduler must remember."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from spinney.api.kai import PodGroup
from spinney.api.labels import LAST_EVICTION
from spinney.api.times import rfc3339_micro
from spinney.scheduler.service.component import COMPONENT
from spinney.scheduler.service.group_notes import GroupNotes
from tests.services.stage import broken, stage
from tests.virtual_time import virtual


@virtual
async def test_a_refused_note_of_an_earlier_eviction_replaced_the_note_of_the_last() -> None:
    """What is written again is the last eviction."""
    async with stage((COMPONENT, None)) as world:
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
        runtime = world.host.runtimes[COMPONENT.name]
        groups = runtime.caches.of(PodGroup)
        await asyncio.sleep(1)
        notes = GroupNotes(runtime.client, groups, lambda: None)
        world.transport.fault = lambda request: broken() if request.method == "PATCH" else None
        await notes.evicted(["default/g"], 100.0)
        world.transport.fault = lambda request: None
        await notes.evicted(["default/g"], 200.0)
        await notes.write_missing()
        group = await world.client.get(PodGroup, ("default", "g"))
        assert group.metadata.annotations[LAST_EVICTION] == rfc3339_micro(datetime.fromtimestamp(200.0, UTC))
