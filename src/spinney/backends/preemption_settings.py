"""When a gang may be preempted, and may preempt: labels and annotations of a set, which KAI keeps in its PodGroup."""

from __future__ import annotations

from spinney.api import duration, labels
from spinney.api.meta import Json, ObjectMeta
from spinney.backends.interface import Problem

_PREEMPTIBILITIES = ("preemptible", "non-preemptible")
_DURATIONS = (("preemptionDelay", labels.PREEMPTION_DELAY), ("stalenessGracePeriod", labels.STALENESS_GRACE_PERIOD))


def settings(metadata: ObjectMeta) -> Json:
    """The members of a PodGroup's spec; None where nothing usable is said."""
    preemptibility = metadata.labels.get(labels.PREEMPTIBILITY)
    return {
        "preemptibility": preemptibility if preemptibility in _PREEMPTIBILITIES else None,
        **{member: _usable(metadata, annotation) for member, annotation in _DURATIONS},
    }


def problems(metadata: ObjectMeta) -> list[Problem]:
    """What is said and cannot be used."""
    refused = []
    preemptibility = metadata.labels.get(labels.PREEMPTIBILITY)
    if preemptibility is not None and preemptibility not in _PREEMPTIBILITIES:
        allowed = " or ".join(_PREEMPTIBILITIES)
        refused.append(Problem(f"metadata.labels[{labels.PREEMPTIBILITY}]", f"is {preemptibility!r}; write {allowed}"))
    for _, annotation in _DURATIONS:
        text = metadata.annotations.get(annotation)
        if text is not None and (why := _why_unusable(annotation, text)):
            refused.append(Problem(f"metadata.annotations[{annotation}]", why))
    return refused


def _usable(metadata: ObjectMeta, annotation: str) -> str | None:
    text = metadata.annotations.get(annotation)
    return None if text is None or _why_unusable(annotation, text) else text


def _why_unusable(annotation: str, text: str) -> str:
    try:
        negative = duration.parse(text) < 0
    except duration.DurationError as error:
        return str(error)
    # A negative grace period means never.
    return f"is {text}; it must be 0s or more" if negative and annotation == labels.PREEMPTION_DELAY else ""
