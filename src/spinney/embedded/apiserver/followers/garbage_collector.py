"""The garbage collector: delete objects whose owners were deleted, by the deletion's propagation policy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal
from spinney.embedded.apiserver.followers.follower import NextTurn
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Event, Item, load
from spinney.embedded.apiserver.write import managed_fields
from spinney.embedded.apiserver.write.deletion import delete_item, set_list, store_or_remove
from spinney.embedded.apiserver.write.managed_fields import Writer

Place = tuple[str, str]  # table, key
# Objects handled in one turn of the loop: thousands of dependents must not keep others waiting.
_TURN = 32


class GarbageCollector:
    """Follows every write, and deletes, orphans or releases objects in the next turn of the loop."""

    tables: frozenset[str] | None = None

    def __init__(self, core: Core, kinds: Kinds) -> None:
        self._core = core
        self._kinds = kinds
        self._by_uid: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        # Deleted owners whose dependents still exist.
        self._deleted_owners: set[str] = set()
        # An ordered set of what to look at: objects, and the UIDs of owners.
        self._queue: dict[Place | str, None] = {}
        self._left_in_turn = 0
        self._next_turn = NextTurn(self._drain)

    def follow(self, table: str, event: Event) -> None:
        """Note a write."""
        place, item = (table, event.new.key), event.new
        if event.old is not None:
            for owner in event.old.owners:
                self._dependents.get(owner, {}).pop(place, None)
        if event.deleted:
            self._by_uid.pop(item.uid, None)
            for owner in item.owners:
                # An owner that is gone has been asked for its dependents, and waits for the last one.
                if owner in self._by_uid or not self._dependents.get(owner):
                    self._later(owner)
            if item.uid in self._dependents:
                self._deleted_owners.add(item.uid)
                self._later(item.uid)
            return
        self._by_uid[item.uid] = place
        for owner in item.owners:
            self._dependents.setdefault(owner, {})[place] = None
        if item.owners and (event.old is None or event.old.owners != item.owners):
            self._later(place)
        if item.going and item.finalizers:
            self._later(item.uid)

    def _later(self, work: Place | str) -> None:
        self._queue[work] = None
        self._next_turn.schedule()

    def _drain(self) -> None:
        self._left_in_turn = _TURN
        while self._queue and self._left_in_turn > 0:
            self._left_in_turn -= 1
            work = next(iter(self._queue))
            del self._queue[work]
            if isinstance(work, str):
                self._owner(work)
            else:
                self._dependent(work)
        if self._queue:
            self._next_turn.schedule()

    def _owner(self, uid: str) -> None:
        """Process the dependents of an owner that is deleted or being deleted, then the owner itself."""
        place = self._by_uid.get(uid)
        if place is None:
            for dependent in self._dependents.get(uid, ()):
                self._later(dependent)
            if not self._dependents.get(uid):
                self._dependents.pop(uid, None)
                self._deleted_owners.discard(uid)
            return
        item = self._core.store.get(*place)
        if item is None or not item.going:
            return
        if "orphan" in item.finalizers:
            self._orphan(uid, place)
        elif "foregroundDeletion" in item.finalizers:
            self._foreground(uid, place)

    def _orphan(self, uid: str, owner: Place) -> None:
        dependents = [place for place in self._dependents_of(uid) if self._kinds.of_table(place[0]) is not None]
        for dependent in self._part(dependents):
            self._drop_owners(dependent, {uid})
        if len(dependents) > _TURN:
            self._later(uid)
        else:
            self._drop_finalizer(owner, "orphan")

    def _foreground(self, uid: str, owner: Place) -> None:
        waiting = [dependent for dependent in self._dependents_of(uid) if not self._is_going(dependent)]
        for dependent in self._part(waiting):
            item = self._core.store.get(*dependent)
            if item is None:
                continue
            if self._has_other_owner(item, uid):
                self._drop_owners(dependent, {uid})
            else:
                self._delete(dependent, item, "Foreground")
        if len(waiting) > _TURN:
            self._later(uid)
        elif not any(self._blocks(dependent, uid) for dependent in self._dependents_of(uid)):
            self._drop_finalizer(owner, "foregroundDeletion")

    def _dependents_of(self, uid: str) -> list[Place]:
        return [place for place in self._dependents.get(uid, ()) if self._is_in_reach(place, uid)]

    def _is_in_reach(self, place: Place, owner: str) -> bool:
        """Whether an owner that exists may be one: whoever writes an object may name the UID of any other.

        As in Kubernetes, an owner in another namespace counts as missing.
        """
        namespace, _, _ = place[1].rpartition("/")
        above, _, _ = self._by_uid[owner][1].rpartition("/")
        return not namespace or not above or namespace == above

    def _part(self, dependents: list[Place]) -> list[Place]:
        """The dependents for this turn."""
        part = list(islice(dependents, _TURN))
        self._left_in_turn -= len(part)
        return part

    def _is_going(self, place: Place) -> bool:
        item = self._core.store.get(*place)
        return item is None or item.going

    def _blocks(self, place: Place, uid: str) -> bool:
        item = self._core.store.get(*place)
        if item is None:
            return False
        owners = load(item)["metadata"].get("ownerReferences") or ()
        return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)

    def _has_other_owner(self, item: Item, uid: str) -> bool:
        return any(owner != uid and self._exists(owner) for owner in item.owners)

    def _exists(self, uid: str) -> bool:
        place = self._by_uid.get(uid)
        item = self._core.store.get(*place) if place is not None else None
        return item is not None and "foregroundDeletion" not in item.finalizers

    def _dependent(self, place: Place) -> None:
        """Delete an object without existing owners; otherwise drop its references to missing owners.

        Of an owner whose kind is not served nobody can tell, unless it was seen to go.
        """
        item = self._core.store.get(*place)
        if item is None or not item.owners:
            return
        missing = {owner for owner in item.owners if owner not in self._by_uid or not self._is_in_reach(place, owner)}
        if not missing or not self._kinds_are_served(item, missing - self._deleted_owners):
            return
        if len(missing) < len(set(item.owners)):
            self._drop_owners(place, missing)
            return
        if not item.going:
            self._delete(place, item, "Background")

    def _kinds_are_served(self, item: Item, owners: set[str]) -> bool:
        references = load(item)["metadata"].get("ownerReferences") or () if owners else ()
        owner_references = [reference for reference in references if reference.get("uid") in owners]
        return all(
            self._kinds.by_kind(reference["apiVersion"], reference["kind"]) is not None
            for reference in owner_references
        )

    def _delete(self, place: Place, item: Item, policy: str) -> None:
        kind = self._kinds.of_table(place[0])
        if kind is None:
            return
        finalizers = load(item)["metadata"].get("finalizers") or ()
        if policy == "Background" and "orphan" in finalizers:
            policy = "Orphan"
        elif policy == "Background" and "foregroundDeletion" in finalizers:
            policy = "Foreground"
        try:
            delete_item(self._core, kind, item, {"propagationPolicy": policy, "preconditions": {"uid": item.uid}})
        except Refusal:
            return

    def _drop_owners(self, place: Place, owners: set[str]) -> None:
        def change(metadata: Json) -> None:
            kept = [owner for owner in metadata.get("ownerReferences") or () if owner.get("uid") not in owners]
            set_list(metadata, "ownerReferences", kept)

        self._change(place, change)

    def _drop_finalizer(self, place: Place, finalizer: str) -> None:
        def change(metadata: Json) -> None:
            set_list(metadata, "finalizers", [name for name in metadata.get("finalizers") or () if name != finalizer])

        self._change(place, change)

    def _change(self, place: Place, change: Callable[[Json], None]) -> None:
        table, key = place
        item = self._core.store.get(table, key)
        kind = self._kinds.of_table(table)
        if item is None or kind is None:
            return
        old = load(item)
        document = {**old, "metadata": dict(old["metadata"])}
        change(document["metadata"])
        if kind.stored == kind.api_version:
            writer = Writer("kube-controller-manager", "", self._core.timestamp())
            managed_fields.record_update(kind, old, document, writer)
        store_or_remove(self._core, kind, item, document)
