"""When a gang may be preempted, and may preempt: labels and annotations of a set, which KAI keeps in its PodGroup."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Json, ObjectMeta
from spinney.api.preemption import PREEMPTIBILITIES, why_unusable
from spinney.backends.interface import Problem

_DURATIONS = (("preemptionDelay", labels.PREEMPTION_DELAY), ("stalenessGracePeriod", labels.STALENESS_GRACE_PERIOD))


def settings(metadata: ObjectMeta) -> Json:
    """The members of a PodGroup's spec; None where nothing usable is said."""
    preemptibility = metadata.labels.get(labels.PREEMPTIBILITY)
    return {
        "preemptibility": preemptibility if preemptibility in PREEMPTIBILITIES else None,
        **{member: _usable(metadata, annotation) for member, annotation in _DURATIONS},
    }


def problems(metadata: ObjectMeta) -> list[Problem]:
    """What is said and cannot be used."""
    refused = []
    preemptibility = metadata.labels.get(labels.PREEMPTIBILITY)
    if preemptibility is not None and preemptibility not in PREEMPTIBILITIES:
        allowed = " or ".join(PREEMPTIBILITIES)
        refused.append(Problem(f"metadata.labels[{labels.PREEMPTIBILITY}]", f"is {preemptibility!r}; write {allowed}"))
    for _, annotation in _DURATIONS:
        text = metadata.annotations.get(annotation)
        if text is not None and (why := why_unusable(annotation, text)):
            refused.append(Problem(f"metadata.annotations[{annotation}]", why))
    return refused


def _usable(metadata: ObjectMeta, annotation: str) -> str | None:
    text = metadata.annotations.get(annotation)
    return None if text is None or why_unusable(annotation, text) else text
