"""Which queue a set names: on itself, or on its cliques, which must then agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spinney.api.grove import PodCliqueSet
from spinney.backends.interface import Problem


def queue_of(pcs: PodCliqueSet, keys: Iterable[str]) -> str:
    """The queue by the first of some label or annotation names that is set; empty where none is."""
    return next(iter(_named(pcs, tuple(keys))), "")


def queue_conflicts(pcs: PodCliqueSet, keys: Iterable[str]) -> tuple[Problem, ...]:
    """A problem where a set and its cliques name different queues: a gang is in one queue."""
    keys = tuple(keys)
    named = _named(pcs, keys)
    if len(named) < 2:
        return ()
    conflict = "; ".join(f"{queue!r} on {', '.join(places)}" for queue, places in named.items())
    message = f"a gang is in one queue, found {conflict}; name one queue on the set"
    return (Problem(f"metadata.labels[{keys[0]}]", message),)


def _named(pcs: PodCliqueSet, keys: tuple[str, ...]) -> dict[str, list[str]]:
    """Every queue that is named, with the places that name it; the set itself comes first."""
    named: dict[str, list[str]] = {}
    own = _value(keys, pcs.metadata.labels, pcs.metadata.annotations)
    if own:
        named[own] = ["the set"]
    for clique in pcs.spec.template.cliques:
        queue = _value(keys, clique.labels, clique.annotations)
        if queue:
            named.setdefault(queue, []).append(f"clique {clique.name}")
    return named


def _value(keys: tuple[str, ...], *places: Mapping[str, str]) -> str:
    return next((place[key] for key in keys for place in places if place.get(key)), "")
