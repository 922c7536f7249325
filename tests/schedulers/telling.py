"""Tells the stories to one scheduler: side by side, then those that need the cluster alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spinney.api.core import Node
from spinney.api.grove import PodCliqueSet
from spinney.kube.errors import NotFound
from spinney.testing.schedulers.entries import Entry
from tests.schedulers.place import Place
from tests.schedulers.stage import Stage, staged
from tests.schedulers.stories import STORIES
from tests.schedulers.story import Story, Tell
from tests.schedulers.table import CANNOT, Otherwise

# More at once would only wait for each other on a small machine.
_AT_ONCE = 6
_SECONDS = 900.0


@dataclass(frozen=True)
class Outcome:
    """How a story ended."""

    error: BaseException | None
    seconds: float


async def tell(entry: Entry, folder: Path, names: Iterable[str]) -> dict[str, Outcome]:
    """The outcome of each story."""
    stories = [STORIES[name] for name in STORIES if name in set(names)]
    outcomes: dict[str, Outcome] = {}
    places = asyncio.Semaphore(_AT_ONCE)

    async def told(stage: Stage, story: Story) -> None:
        async with places:
            outcomes[story.name] = await _tell_one(stage, story)

    async with staged(entry, folder) as stage:
        await asyncio.gather(*(told(stage, story) for story in stories if not story.alone))
        for story in (story for story in stories if story.alone):
            outcomes[story.name] = await _tell_one(stage, story)
    return outcomes


async def _tell_one(stage: Stage, story: Story) -> Outcome:
    began = time.monotonic()
    error: BaseException | None = None
    place = await stage.place(story.name.replace("_", "-"))
    try:
        async with asyncio.timeout(_SECONDS):
            await _tell_of(stage.entry, story)(place)
    except (Exception, TimeoutError) as failure:
        failure.add_note(stage.tail())
        error = failure
    try:
        await _clear(place)
    except AssertionError as failure:
        error = error or failure
    return Outcome(error, time.monotonic() - began)


def _tell_of(entry: Entry, story: Story) -> Tell:
    """The story, or how it ends with this scheduler instead."""
    instead = CANNOT.get((entry.name, story.name))
    return instead.tell if isinstance(instead, Otherwise) else story.tell


async def _clear(place: Place) -> None:
    """Delete what the story left, so that it holds back no other; nodes go once no pod is left on them."""
    for left in (await place.client.list(PodCliqueSet, place.namespace)).items:
        with suppress(NotFound):
            await place.client.delete(PodCliqueSet, left.key)
    await place.until("its pods are gone", lambda: not place.pods())
    for name in place.node_names:
        with suppress(NotFound):
            await place.client.delete(Node, name)
