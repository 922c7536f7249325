"""The labels that every managed object carries."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.grove.model.names import short

# What caches of kinds that others use too are restricted to.
MANAGED = f"{labels.MANAGED_BY}={labels.GROVE_OPERATOR}"


def managed(pcs: str, name: str, component: str) -> dict[str, str]:
    """Who manages an object, for which set, as what."""
    return {
        labels.MANAGED_BY: labels.GROVE_OPERATOR,
        labels.PART_OF: pcs,
        labels.NAME: short(name),
        labels.COMPONENT: component,
    }


def selector(**wanted: str) -> str:
    """A label selector in the form that `kubectl` and autoscalers read."""
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def set_selector(pcs: PodCliqueSet) -> str:
    """Selects the pods of a set."""
    return selector(**{labels.MANAGED_BY: labels.GROVE_OPERATOR, labels.PART_OF: pcs.name})
