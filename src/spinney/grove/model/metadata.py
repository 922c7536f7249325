"""Labels and annotations of managed objects."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.grove.model.names import short

# Selects managed objects, for caches of kinds that others use too.
MANAGED = f"{labels.MANAGED_BY}={labels.GROVE_OPERATOR}"


def managed(pcs: str, name: str, component: str) -> dict[str, str]:
    """The labels of every managed object: its manager, its set, its name and its role."""
    return {
        labels.MANAGED_BY: labels.GROVE_OPERATOR,
        labels.PART_OF: pcs,
        labels.NAME: short(name),
        labels.COMPONENT: component,
    }


def is_part_of(item: Object, pcs: PodCliqueSet) -> bool:
    """Whether an object carries the label of a set in its namespace."""
    return item.namespace == pcs.namespace and item.metadata.labels.get(labels.PART_OF) == pcs.name


def metadata_patch(stored: Object, wanted_labels: Mapping[str, str], annotations: Mapping[str, str]) -> Json:
    """The labels and annotations that a stored object lacks or has with another value; others stay."""
    patch: Json = {}
    if changed := _changed(stored.metadata.labels, wanted_labels):
        patch["labels"] = changed
    if changed := _changed(stored.metadata.annotations, annotations):
        patch["annotations"] = changed
    return patch


def _changed(stored: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if stored.get(key) != value}


def selector(**wanted: str) -> str:
    """A label selector in the form that `kubectl` and autoscalers read."""
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def set_selector(pcs: PodCliqueSet) -> str:
    """The selector of a set's pods."""
    return selector(**{labels.MANAGED_BY: labels.GROVE_OPERATOR, labels.PART_OF: pcs.name})
