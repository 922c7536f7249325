"""Which queue a set names: on itself, or on its cliques, which must then agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.backends.interface import Problem

_SHOWN = 10


def unknown_queue(queue: str, existing: Collection[str], kind: str) -> str:
    """A sentence if a queue is named and not among those that exist; empty otherwise."""
    if not queue or queue in existing:
        return ""
    shown = ", ".join(sorted(existing)[:_SHOWN]) or "none"
    return f"there is no {kind} {queue!r} (there are: {shown}): create it, or name another one on the set"


class QueueKeys:
    """The labels or annotations by which a set names its queue; a gang carries the first as an annotation."""

    def __init__(self, *keys: str) -> None:
        self._keys = keys

    def conflicts(self, pcs: PodCliqueSet) -> tuple[Problem, ...]:
        """A problem if a set and its cliques name different queues."""
        named = self._named(pcs)
        if len(named) < 2:
            return ()
        conflict = "; ".join(f"{queue!r} on {', '.join(places)}" for queue, places in named.items())
        message = f"a gang is in one queue, found {conflict}; name one queue on the set"
        return (Problem(f"metadata.labels[{self._keys[0]}]", message),)

    def annotations(self, pcs: PodCliqueSet) -> dict[str, str]:
        """The annotation of a set's gangs; none if the set names no queue."""
        queue = next(iter(self._named(pcs)), "")
        return {self._keys[0]: queue} if queue else {}

    def labels(self, gang: PodGang) -> dict[str, str]:
        """The label of a gang's pods; none if the gang has no queue."""
        queue = self.of(gang)
        return {self._keys[0]: queue} if queue else {}

    def of(self, gang: PodGang) -> str:
        """The queue of a gang; empty if it has none."""
        return self._value(gang.metadata.annotations, gang.metadata.labels)

    def not_among(self, gang: PodGang, queues: Sequence[Json] | None, kind: str) -> str:
        """A sentence if the gang names a queue that does not exist; empty otherwise."""
        if queues is None:
            return ""
        return unknown_queue(self.of(gang), [queue["metadata"]["name"] for queue in queues], kind)

    def _named(self, pcs: PodCliqueSet) -> dict[str, list[str]]:
        """Every queue that is named, with the places that name it; the set itself comes first."""
        named: dict[str, list[str]] = {}
        own = self._value(pcs.metadata.labels, pcs.metadata.annotations)
        if own:
            named[own] = ["the set"]
        for clique in pcs.spec.template.cliques:
            queue = self._value(clique.labels, clique.annotations)
            if queue:
                named.setdefault(queue, []).append(f"clique {clique.name}")
        return named

    def _value(self, *places: Mapping[str, str]) -> str:
        return next((place[key] for key in self._keys for place in places if place.get(key)), "")
