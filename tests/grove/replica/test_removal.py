"""What goes with a deleted set is planned without comparing everything with everything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from spinney.api import owners
from spinney.api.core import Pod
from spinney.api.grove import PodClique
from spinney.api.meta import ObjectMeta, OwnerReference
from spinney.grove.model.changes import Delete
from spinney.grove.model.view import Leftovers
from spinney.grove.replica import removal

GONE = datetime(2026, 5, 4, tzinfo=UTC)


def owned(kind: type[Any], name: str, owner: str, gone: datetime | None = None) -> Any:
    """An object with a controller."""
    reference = OwnerReference(api_version="v1", kind="X", name=owner, uid=owner, controller=True)
    metadata = ObjectMeta(name=name, namespace="t", uid=name, owner_references=[reference], deletion_timestamp=gone)
    return kind(metadata=metadata)


def test_a_deleted_set_of_20000_replicas_stopped_everything(monkeypatch: Any) -> None:
    """Each object of a deleted replica is looked at a few times, however many owners there are."""
    looks = 0

    def counted(metadata: ObjectMeta) -> OwnerReference | None:
        nonlocal looks
        looks += 1
        return next(iter(metadata.owner_references), None)

    monkeypatch.setattr(owners, "controller_of", counted)
    monkeypatch.setattr(removal, "controller_of", counted)
    cliques = [owned(PodClique, f"c{number}", "group", GONE) for number in range(300)]
    pods = [owned(Pod, f"p{number}", f"c{number % 300}") for number in range(900)]

    first, *_ = removal.plan_orphaned_replica(Leftovers(pods=pods, cliques=cliques))

    assert {change.stored.name for change in first.changes if isinstance(change, Delete)} == {p.name for p in pods}
    assert looks < 3 * (len(cliques) + len(pods))
