"""What a workload says about its preemption, by labels and annotations: which values can be used."""

from __future__ import annotations

from spinney.api import duration, labels

PREEMPTIBILITIES = ("preemptible", "non-preemptible")


def why_unusable(annotation: str, text: str) -> str:
    """Why the duration in an annotation cannot be used; empty if it can."""
    try:
        negative = duration.parse(text) < 0
    except duration.DurationError as error:
        return str(error)
    # A negative grace period means never.
    return f"{text} is below 0s; write 0s or more" if negative and annotation == labels.PREEMPTION_DELAY else ""
