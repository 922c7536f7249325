"""Nodes that tasks left a short while ago: a gang that is being updated prefers the nodes of its own old pods.

Every departure is recorded, because the reference to a gang may be seen only after its pods are gone. Only departures
of gangs that some job refers to are used. The log has no clock: its owner sets the time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from spinney.api import labels
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import TaskSpec

KEPT_SECONDS = 300.0
# The most departures in memory, and in the saved record; the oldest are dropped first.
_MOST = 10_000
_MOST_WRITTEN = 2000
# The key in a shard's record.
FREED_KEY = "freed"


class Departure(NamedTuple):
    """A task that left a node."""

    gang: str
    node: str
    task: str


# Departures with when they happened, the oldest first.
Departures = tuple[tuple[Departure, float], ...]


def gang_of(task: TaskSpec) -> str:
    """Return the name that references use for a task's gang: its PodGang, which may be deleted, else its PodGroup."""
    name = task.labels.get(labels.PODGANG, "")
    return f"{task.namespace}/{name}" if name else task.job


class DepartureLog:
    """The departures of the last five minutes, the oldest first."""

    def __init__(self) -> None:
        # Gangs that are replaced, by another gang or by themselves; by the job that refers to them.
        self.references: dict[str, str] = {}
        self._moment = 0.0
        self._left: OrderedDict[Departure, float] = OrderedDict()

    def set_time(self, moment: float) -> None:
        """Set the time of the changes that follow, and forget departures that are too old."""
        self._moment = moment
        while self._left and moment >= next(iter(self._left.values())) + KEPT_SECONDS:
            self._left.popitem(last=False)

    def task_changed(self, old: TaskSpec | None, new: TaskSpec | None) -> None:
        """Record whether a changed task left its node, is deleted, or took a node."""
        before, after = _node(old), _node(new)
        if before != after:
            if old is not None and before:
                self._note(Departure(gang_of(old), before, old.uid))
            if new is not None and after:
                self._take(new)
        elif old is not None and old.node and _holds(old) and not _holds(new):
            departure = Departure(gang_of(old), old.node, old.uid)
            if departure in self._left:
                self._note(departure)

    def _note(self, departure: Departure) -> None:
        self._left[departure] = self._moment
        self._left.move_to_end(departure)
        if len(self._left) > _MOST:
            self._left.popitem(last=False)

    def _take(self, task: TaskSpec) -> None:
        """Forget one departure from the node that a task took."""
        gang = self.references.get(task.job)
        if gang is None:
            self._left.pop(Departure(gang_of(task), task.node, task.uid), None)
            return
        for departure in self._left:
            if departure.gang == gang and departure.node == task.node:
                del self._left[departure]
                return

    def current(self, now: float) -> Iterator[tuple[Departure, float]]:
        """Yield departures of gangs that are referred to, each with the time at which it expires."""
        gangs = frozenset(self.references.values())
        if not gangs:
            return
        for departure, since in self._left.items():
            if departure.gang in gangs and now < since + KEPT_SECONDS:
                yield departure, since + KEPT_SECONDS

    def nodes_left_by(self, gang: str) -> dict[str, float]:
        """Return the nodes that a gang left, each with the time until which it is preferred."""
        return {departure.node: until for departure, until in self.current(self._moment) if departure.gang == gang}

    def remembered(self, now: float) -> Departures:
        """Return the latest departures that a restarted scheduler needs."""
        departures = [(departure, until - KEPT_SECONDS) for departure, until in self.current(now)]
        return tuple(departures[-_MOST_WRITTEN:])

    def replace(self, departures: Departures) -> None:
        """Know these departures and no others."""
        self._left = OrderedDict(departures)

    def restore(self, departures: Departures) -> None:
        """Add the departures that an earlier scheduler saved; call it once running tasks are in the state."""
        self._left = OrderedDict(sorted([*departures, *self._left.items()], key=lambda entry: entry[1]))


def _node(task: TaskSpec | None) -> str:
    """Return the node that a task is on; nothing for a task that leaves."""
    return task.node if task is not None and task.job and task.status & st.ACTIVE else ""


def _holds(task: TaskSpec | None) -> bool:
    return task is not None and bool(task.status & st.USED)
