"""Confirm objects before pods are created or deleted for them: caches may be late, and another operator may act, too.

A write that follows from an outdated spec does visible harm. Pods of a deleted owner are deleted at once and created
again, and a replica that somebody has just asked for is deleted. So the objects whose specs a write follows from are
read again first. What this plan itself has written needs no confirmation: creating a set costs no additional request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Object
from spinney.api.owners import controller_of
from spinney.grove.model.changes import Change, Confirm, Create, Delete, Step
from spinney.grove.model.view import View

Versions = frozenset[tuple[str, str]]


def confirmed(steps: Iterable[Step], *sources: Object) -> Iterator[Step]:
    """The steps; ahead of the first change, the objects that they follow from are confirmed."""
    confirmed = False
    for step in steps:
        if step.changes and not confirmed:
            confirmed = True
            yield Step(tuple(map(Confirm, sources)))
        yield step


def cached_versions(view: View) -> Versions:
    """The cliques and gangs as they were read."""
    return frozenset((item.uid, item.metadata.resource_version) for item in _owners_and_gangs(view))


def before_creation(view: View, cached: Versions, changes: Iterable[Change]) -> Step:
    """Confirm the cliques and gangs of pods to be created, unless this plan has written them."""
    bodies = [change.body["metadata"] for change in changes if isinstance(change, Create)]
    names = {body["labels"][label] for body in bodies for label in (labels.PODCLIQUE, labels.PODGANG)}
    sources = [item for item in _owners_and_gangs(view) if item.name in names]
    return Step(tuple(Confirm(item) for item in sources if (item.uid, item.metadata.resource_version) in cached))


def before_scale_in(view: View, changes: Iterable[Change]) -> Step:
    """Confirm the cliques of pods to be deleted."""
    pods = [change.stored for change in changes if isinstance(change, Delete) and isinstance(change.stored, Pod)]
    owners = {owner.uid for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    return Step(tuple(Confirm(clique) for clique in view.cliques.values() if clique.uid in owners))


def _owners_and_gangs(view: View) -> list[Object]:
    return [*view.cliques.values(), *view.gangs.values()]
