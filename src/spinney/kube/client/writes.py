"""The writes of a client: counters for write budgets, and versions that caches must catch up with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import msgspec

from spinney.api.meta import Resource

_recorded: ContextVar[list[Write] | None] = ContextVar("recorded_writes", default=None)


class Write(msgspec.Struct, frozen=True, gc=False):
    """A write that the server accepted, or (`lost`) one without a response, which may or may not have happened."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str = ""
    resource_version: str = ""
    uid: str = ""
    labels: Mapping[str, str] = {}
    lost: bool = False


@dataclass
class Writes:
    """Counts the writes of one client: one component's budget."""

    by_object: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    by_verb: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def note(self, write: Write) -> None:
        """Count a write, and add it to the recording of this context."""
        resource = write.resource
        self.by_object[resource.kind, write.namespace, write.name] += 1
        self.by_verb[write.verb, resource.kind, write.subresource] += 1
        recorded = _recorded.get()
        if recorded is not None:
            recorded.append(write)

    def total(self, *, without: tuple[str, ...] = ("Lease",)) -> int:
        """The number of writes, without those of some kinds."""
        return sum(count for (kind, _, _), count in self.by_object.items() if kind not in without)

    def of(self, kind: str, name: str = "", namespace: str = "") -> int:
        """How many writes went to a kind, or to one object of it."""
        if name:
            return self.by_object[kind, namespace, name]
        return sum(count for (written, _, _), count in self.by_object.items() if written == kind)

    def clear(self) -> None:
        """Start counting from zero."""
        self.by_object.clear()
        self.by_verb.clear()


@contextmanager
def recording() -> Iterator[list[Write]]:
    """Collect the writes made in this context, by tasks started in it too."""
    writes: list[Write] = []
    token = _recorded.set(writes)
    try:
        yield writes
    finally:
        _recorded.reset(token)
