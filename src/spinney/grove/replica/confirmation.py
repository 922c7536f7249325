"""What is read again before pods are created or deleted: the caches may be late, and another operator may act, too.

A write that follows from an outdated wish does harm that is seen: pods of an owner that is gone vanish at once and come
again, and a replica that somebody has just asked for is taken away. So the objects that say what is to be are confirmed
first. What this plan itself has written needs no confirmation, so a set that is created costs no request more.
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


def confirmed(steps: Iterable[Step], *wishes: Object) -> Iterator[Step]:
    """The steps, with a look at what they follow from ahead of the first that changes something."""
    looked = False
    for step in steps:
        if step.changes and not looked:
            looked = True
            yield Step(tuple(map(Confirm, wishes)))
        yield step


def cached_versions(view: View) -> Versions:
    """The cliques and gangs as they were read."""
    return frozenset((item.uid, item.metadata.resource_version) for item in _owners_and_records(view))


def before_creation(view: View, cached: Versions, changes: Iterable[Change]) -> Step:
    """Look at the cliques and gangs of pods to be created, unless this plan has written them."""
    bodies = [change.body["metadata"] for change in changes if isinstance(change, Create)]
    names = {body["labels"][label] for body in bodies for label in (labels.PODCLIQUE, labels.PODGANG)}
    wishes = [item for item in _owners_and_records(view) if item.name in names]
    return Step(tuple(Confirm(item) for item in wishes if (item.uid, item.metadata.resource_version) in cached))


def before_scale_in(view: View, changes: Iterable[Change]) -> Step:
    """Look at the cliques of pods to be deleted."""
    pods = [change.stored for change in changes if isinstance(change, Delete) and isinstance(change.stored, Pod)]
    owners = {owner.uid for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    return Step(tuple(Confirm(clique) for clique in view.cliques.values() if clique.uid in owners))


def _owners_and_records(view: View) -> list[Object]:
    return [*view.cliques.values(), *view.gangs.values()]
