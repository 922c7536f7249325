"""Which pods a gang names: those that exist, and those about to be created, whose names are chosen here.

A gang is written before its pods, with their names already in it: it is complete from its first write, its backend
starts at once, and its generation does not move while pods appear.
"""

from __future__ import annotations

from typing import Any

from spinney.api.labels import TOPOLOGY_NAME
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang, PodGangSpec
from spinney.backends.registry import Choice
from spinney.grove.model import gangs
from spinney.grove.model.layout import Clique, Gang
from spinney.grove.model.view import View
from spinney.grove.status.gangs import references
from spinney.kube.chance import Chance

# Members of a gang's spec that may be absent, and then must be said to be.
_OPTIONAL = ("topologyConstraint", "topologyConstraintGroupConfigs", "priorityClassName", "reuseReservationRef")


class Names:
    """Pod names that were chosen and have not been seen on a pod yet."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._chosen: set[tuple[str, str]] = set()

    def choose(self, namespace: str, clique: str) -> str:
        """A new name for a pod of a clique."""
        name = f"{clique}-{self._chance.suffix()}"
        self._chosen.add((namespace, name))
        return name

    def is_waiting(self, namespace: str, name: str) -> bool:
        """Whether a pod of this name is still to come; one that came and went is not."""
        return (namespace, name) in self._chosen

    def seen(self, namespace: str, name: str) -> None:
        """A pod of this name exists."""
        self._chosen.discard((namespace, name))


def gang_body(view: View, gang: Gang, choice: Choice, annotations: dict[str, str], names: Names) -> Json:
    """The gang as it should be stored."""
    stored = view.gangs.get(gang.name)
    wanted = {clique.name: _pod_names(view, clique, stored, names) for clique in gang.cliques}
    metadata = gangs.gang_metadata(view.layout, gang, choice.backend.name, choice.scheduler_name, view.levels)
    metadata["annotations"].update(annotations)
    # While a replica is updated, the gang may take the nodes that its own old pods leave.
    replaces = gang.name if view.updating else ""
    return {"metadata": metadata, "spec": gangs.gang_spec(view.layout, gang, wanted, view.levels, replaces)}


def _pod_names(view: View, clique: Clique, stored: PodGang | None, names: Names) -> list[str]:
    namespace = view.pcs.namespace
    existing = [pod.name for pod in view.staying(clique)]
    for name in existing:
        names.seen(namespace, name)
    count = view.wanted(clique)
    if len(existing) >= count:
        return existing
    known = references(stored).get(clique.name, ()) if stored is not None else ()
    waiting = [name for name in known if name not in existing and names.is_waiting(namespace, name)]
    chosen = (existing + waiting)[: max(count, len(existing))]
    return chosen + [names.choose(namespace, clique.name) for _ in range(count - len(chosen))]


def gang_patch(stored: PodGang, body: Json) -> Json:
    """What a stored gang must change; empty where it is as it should be."""
    patch: Json = {}
    wanted = body["spec"]
    if convert(PodGangSpec, wanted) != stored.spec:
        patch["spec"] = {**dict.fromkeys(_OPTIONAL), **wanted}
    metadata = _metadata_patch(stored, body["metadata"])
    if metadata:
        patch["metadata"] = metadata
    return patch


def _metadata_patch(stored: PodGang, wanted: Json) -> Json:
    patch: dict[str, Any] = {}
    labels = {key: value for key, value in wanted["labels"].items() if stored.metadata.labels.get(key) != value}
    if labels:
        patch["labels"] = labels
    found = stored.metadata.annotations
    annotations: dict[str, str | None] = {k: v for k, v in wanted["annotations"].items() if found.get(k) != v}
    if TOPOLOGY_NAME in found and TOPOLOGY_NAME not in wanted["annotations"]:
        annotations[TOPOLOGY_NAME] = None
    if annotations:
        patch["annotations"] = annotations
    if not stored.metadata.owner_references:
        patch["ownerReferences"] = wanted["ownerReferences"]
    return patch
