"""Settings of a workload that cannot be used: they count as not set, and whoever wrote them is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.preemption import PREEMPTIBILITIES, why_unusable
from spinney.services.podgrouper.context import annotations_of, labels_of


def ignored_settings(sources: Iterable[Json], priority_class_exists: Callable[[str], bool]) -> list[str]:
    """A sentence for each label and annotation of a pod and its owners that is ignored."""
    ignored: dict[str, None] = {}
    for source in sources:
        texts = labels_of(source)
        preemptibility = texts.get(labels.PREEMPTIBILITY, "")
        if preemptibility and preemptibility not in PREEMPTIBILITIES:
            ignored[_label(labels.PREEMPTIBILITY, preemptibility, f"it must be {' or '.join(PREEMPTIBILITIES)}")] = None
        name = texts.get(labels.PRIORITY_CLASS, "")
        if name and not priority_class_exists(name):
            ignored[_label(labels.PRIORITY_CLASS, name, "no PriorityClass has this name")] = None
        for annotation in (labels.PREEMPTION_DELAY, labels.STALENESS_GRACE_PERIOD):
            text = annotations_of(source).get(annotation, "")
            if text and (why := why_unusable(annotation, text)):
                ignored[f"annotation {annotation} is ignored: {why}"] = None
    return list(ignored)


def _label(key: str, value: str, why: str) -> str:
    return f"label {key} is {value!r} and is ignored: {why}"
