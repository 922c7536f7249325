"""Give new namespaces a default service account; delete all objects of a namespace before the namespace itself."""

from __future__ import annotations

from collections import Counter

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.followers.follower import NextTurn
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Event, Item, load
from spinney.embedded.apiserver.write.deletion import delete_item, is_removable, remove

_NOTHING_FAILED = (
    ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        False,
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        False,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)
_HELD = "Some content in the namespace has finalizers remaining: "
_NOT_HELD = "All content-preserving finalizers finished"


class NamespaceFollower:
    """Gives new namespaces a service account, and deletes the objects of those that are being deleted."""

    def __init__(self, core: Core, kinds: Kinds) -> None:
        self._core = core
        self._kinds = kinds
        self._terminating: set[str] = set()
        self._next_turn = NextTurn(self._empty)

    def follow(self, table: str, event: Event) -> None:
        """Note a write."""
        if table == "/namespaces":
            self._namespace(event)
        elif event.deleted and event.new.namespace in self._terminating:
            self._next_turn.schedule()

    def _namespace(self, event: Event) -> None:
        if event.deleted:
            self._terminating.discard(event.new.name)
        elif event.new.going:
            self._terminating.add(event.new.name)
            self._next_turn.schedule()
        elif event.old is None and event.version == self._core.store.version:
            self._add_default_account(event.new.name)

    def _add_default_account(self, namespace: str) -> None:
        """Give a namespace its default service account."""
        core, kind = self._core, self._kinds.of_table("/serviceaccounts")
        if kind is None or core.store.get(kind.table, f"{namespace}/default") is not None:
            return
        metadata = {
            "name": "default",
            "namespace": namespace,
            "uid": core.chance.uid(),
            "creationTimestamp": core.timestamp(),
        }
        document = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        core.store.put(kind.table, f"{namespace}/default", document, {})

    def _empty(self) -> None:
        for name in sorted(self._terminating):
            left = self._delete_content(name)
            if left:
                self._report_waiting(name, left)
            else:
                self._finish(name)

    def _delete_content(self, namespace: str) -> dict[str, list[Item]]:
        """Delete everything in a namespace; return the objects that still have finalizers, by resource."""
        waiting: dict[str, list[Item]] = {}
        for name, table in tuple(self._core.store.tables.items()):
            kind = self._kinds.of_table(name)
            if kind is None or not kind.namespaced:
                continue
            for item in list(table.range(namespace)):
                gone, last = False, item
                if not item.going:
                    gone, last = delete_item(self._core, kind, item, {"propagationPolicy": "Background"})
                if not gone:
                    waiting.setdefault(f"{kind.plural}.{kind.group}", []).append(last)
        return waiting

    def _report_waiting(self, name: str, left: dict[str, list[Item]]) -> None:
        """Write into the namespace's status what it waits for."""
        item = self._core.store.get("/namespaces", name)
        if item is None:
            return
        document = load(item)
        status = document.setdefault("status", {})
        before = {entry["type"]: entry for entry in status.get("conditions") or ()}
        conditions = [_condition(self._core.timestamp(), before, state) for state in _remaining(left)]
        if conditions != status.get("conditions"):
            status["conditions"] = conditions
            self._core.store.put("/namespaces", name, document, item.fields)

    def _finish(self, name: str) -> None:
        item = self._core.store.get("/namespaces", name)
        kind = self._kinds.of_table("/namespaces")
        if item is None or kind is None:
            return
        document = load(item)
        spec = document.get("spec") or {}
        spec["finalizers"] = [entry for entry in spec.get("finalizers") or () if entry != "kubernetes"]
        if not spec["finalizers"]:
            del spec["finalizers"]
        if is_removable(document):
            remove(self._core, kind, item, document)
        elif document != load(item):
            self._core.store.put("/namespaces", name, document, selectable_fields.values(kind, document))


def _remaining(left: dict[str, list[Item]]) -> list[tuple[str, bool, str, str]]:
    """The conditions of a namespace that is being deleted: type, whether it holds, reason and message."""
    counts = ", ".join(f"{resource} has {len(items)} resource instances" for resource, items in sorted(left.items()))
    finalizers = Counter(
        name for items in left.values() for item in items for name in load(item)["metadata"].get("finalizers") or ()
    )
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    return [
        *_NOTHING_FAILED,
        ("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {counts}"),
        (
            ("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", _HELD + held)
            if held
            else ("NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers", _NOT_HELD)
        ),
    ]


def _condition(now: str, before: Json, state: tuple[str, bool, str, str]) -> Json:
    kind, holds, reason, message = state
    status = "True" if holds else "False"
    previous = before.get(kind) or {}
    since = previous["lastTransitionTime"] if previous.get("status") == status else now
    return {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
