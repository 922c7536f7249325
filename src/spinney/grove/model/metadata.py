"""Labels and annotations of managed objects."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_reference
from spinney.grove.model.layout import Layout
from spinney.grove.model.names import short

# Selects managed objects, for caches of kinds that others use too.
MANAGED = f"{labels.MANAGED_BY}={labels.GROVE_OPERATOR}"


def managed(pcs: str, name: str, component: str) -> dict[str, str]:
    """The labels of every managed object: its manager, its set, its name and its role."""
    return {
        labels.MANAGED_BY: labels.GROVE_OPERATOR,
        labels.PART_OF: pcs,
        # The name of a role has colons, which label values must not.
        labels.NAME: short(name.replace(":", ".")),
        labels.COMPONENT: component,
    }


def set_metadata(pcs: PodCliqueSet, name: str, component: str) -> Json:
    """The metadata of a new object that a set controls."""
    return {
        "name": name,
        "namespace": pcs.namespace,
        "labels": managed(pcs.name, name, component),
        "ownerReferences": [controller_reference(pcs)],
    }


def replica_metadata(layout: Layout, name: str, component: str) -> Json:
    """The metadata of a new object of a set replica that the set controls."""
    metadata = set_metadata(layout.pcs, name, component)
    metadata["labels"][labels.SET_REPLICA_INDEX] = str(layout.index)
    return metadata


def is_part_of(item: Object, pcs: PodCliqueSet) -> bool:
    """Whether an object carries the label of a set in its namespace."""
    return item.namespace == pcs.namespace and item.metadata.labels.get(labels.PART_OF) == pcs.name


def is_paused(pcs: PodCliqueSet) -> bool:
    """Whether the operator leaves a set alone, for example while another operator still owns it."""
    return pcs.metadata.annotations.get(labels.PAUSED) == "true"


def name_of(stored: Object) -> Json:
    """The metadata that is wanted of a stored object: it is the one of this name, whatever others wrote there."""
    return {"name": stored.name, "namespace": stored.namespace}


def selector(**wanted: str) -> str:
    """A label selector in the form that `kubectl` and autoscalers read."""
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def set_selector(pcs: PodCliqueSet) -> str:
    """The selector of a set's pods."""
    return selector(**{labels.MANAGED_BY: labels.GROVE_OPERATOR, labels.PART_OF: pcs.name})
