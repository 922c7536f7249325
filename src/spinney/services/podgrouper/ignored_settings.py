"""Settings of a workload that cannot be used: they count as not set, and whoever wrote them is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spinney.api import labels
from spinney.api.duration import DurationError, parse
from spinney.api.meta import Json
from spinney.services.podgrouper.context import annotations_of, labels_of
from spinney.services.podgrouper.defaults import PREEMPTIBILITIES


def ignored_settings(sources: Iterable[Json], priority_class_exists: Callable[[str], bool]) -> list[str]:
    """A sentence for each label and annotation of a pod and its owners that is ignored."""
    found: dict[str, None] = {}
    for source in sources:
        texts = labels_of(source)
        preemptibility = texts.get(labels.PREEMPTIBILITY, "")
        if preemptibility and preemptibility not in PREEMPTIBILITIES:
            found[_label(labels.PREEMPTIBILITY, preemptibility, f"it must be {' or '.join(PREEMPTIBILITIES)}")] = None
        name = texts.get(labels.PRIORITY_CLASS, "")
        if name and not priority_class_exists(name):
            found[_label(labels.PRIORITY_CLASS, name, "no PriorityClass has this name")] = None
        for annotation in (labels.PREEMPTION_DELAY, labels.STALENESS_GRACE_PERIOD):
            text = annotations_of(source).get(annotation, "")
            if text and (why := _why_unusable(annotation, text)):
                found[f"annotation {annotation} is ignored: {why}"] = None
    return list(found)


def _label(key: str, value: str, why: str) -> str:
    return f"label {key} is {value!r} and is ignored: {why}"


def _why_unusable(annotation: str, text: str) -> str:
    try:
        negative = parse(text) < 0
    except DurationError as error:
        return str(error)
    # A negative grace period means never.
    return f"{text} is below 0" if negative and annotation == labels.PREEMPTION_DELAY else ""
