"""Label selectors on plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spinney.scheduler.state.specs import Match, meets


def matches_all(terms: Iterable[Match], labels: Mapping[str, str], name: str = "") -> bool:
    """Whether labels meet every requirement; an empty list matches nothing, as in a node selector term."""
    terms = tuple(terms)
    return bool(terms) and all(meets(term, labels, name) for term in terms)
