"""Label selectors and tolerations on plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spinney.scheduler.state.specs import Match, Taint, Toleration, meets


def matches_all(terms: Iterable[Match], labels: Mapping[str, str], name: str = "") -> bool:
    """Whether labels meet every requirement; an empty list matches nothing, as in a node selector term."""
    terms = tuple(terms)
    return bool(terms) and all(meets(term, labels, name) for term in terms)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any toleration accepts a taint."""
    for toleration in tolerations:
        if toleration.effect and toleration.effect != taint.effect:
            continue
        if toleration.key and toleration.key != taint.key:
            continue
        if toleration.operator == "Exists" or (toleration.key and toleration.value == taint.value):
            return True
    return False
