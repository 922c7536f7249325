"""Stories: what a user does and sees, the same for every scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.schedulers.place import Place

Tell = Callable[[Place], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """One story; `alone` is one that stops what the others need."""

    name: str
    title: str
    tell: Tell
    alone: bool = False


STORIES: dict[str, Story] = {}


def story(title: str, *, alone: bool = False) -> Callable[[Tell], Tell]:
    """Add a story under the name of its function."""

    def added(tell: Tell) -> Tell:
        name = tell.__name__
        STORIES[name] = Story(name, title, tell, alone)
        return tell

    return added
