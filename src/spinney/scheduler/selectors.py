"""Label selectors and tolerations on plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spinney.scheduler.specs import Match, Taint, Toleration

# A selector on the node's own name rather than on a label.
NODE_NAME = "metadata.name"


def matches(match: Match, labels: Mapping[str, str], name: str = "") -> bool:
    """Whether labels meet one requirement."""
    value = name if match.key == NODE_NAME else labels.get(match.key)
    if match.operator == "In":
        return value in match.values
    if match.operator == "NotIn":
        return value not in match.values
    if match.operator == "Exists":
        return value is not None
    if match.operator == "DoesNotExist":
        return value is None
    return _compare(match, value)


def _compare(match: Match, value: str | None) -> bool:
    try:
        left, right = int(value or ""), int(match.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if match.operator == "Gt" else left < right


def matches_all(terms: Iterable[Match], labels: Mapping[str, str], name: str = "") -> bool:
    """Whether labels meet every requirement; an empty list matches nothing, as in a node selector term."""
    terms = tuple(terms)
    return bool(terms) and all(matches(term, labels, name) for term in terms)


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
