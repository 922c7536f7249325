"""Give new namespaces a default service account; delete all objects of a namespace before the namespace itself."""

from __future__ import annotations

from collections import Counter

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.followers.follower import NextTurn
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Event, Item, load
from spinney.embedded.apiserver.write.deletion import delete_item, set_list, store_or_remove

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
# Objects deleted in one turn of the loop: thousands of them must not keep others waiting.
_TURN = 32
_HELD = "Some content in the namespace has finalizers remaining: "
_NOT_HELD = "All content-preserving finalizers finished"


class NamespaceFollower:
    """Gives new namespaces a service account, and deletes the objects of those that are being deleted."""

    tables: frozenset[str] | None = None

    def __init__(self, core: Core, kinds: Kinds) -> None:
        self._core = core
        self._kinds = kinds
        # The objects that are left in each namespace, and at how many of them to look again.
        self._left: Counter[str] = Counter()
        self._look_at: dict[str, int] = {}
        self._next_turn = NextTurn(self._empty)

    def follow(self, table: str, event: Event) -> None:
        """Note a write."""
        if table == "/namespaces":
            self._namespace(event)
        elif event.deleted and event.new.namespace in self._look_at:
            self._left[event.new.namespace] -= 1
            if self._left[event.new.namespace] <= self._look_at[event.new.namespace]:
                self._next_turn.schedule()

    def _namespace(self, event: Event) -> None:
        if event.deleted:
            self._look_at.pop(event.new.name, None)
            del self._left[event.new.name]
        elif event.new.going:
            self._look_at.setdefault(event.new.name, 0)
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
        for name in sorted(self._look_at):
            content = self._content(name)
            deletable = [(kind, item) for kind, item in content if not item.going]
            for kind, item in deletable[:_TURN]:
                delete_item(self._core, kind, item, {"propagationPolicy": "Background"})
            if deletable:
                self._next_turn.schedule()
            elif content:
                # To look again at each of them would take quadratic time.
                self._left[name], self._look_at[name] = len(content), len(content) // 2
                self._report_waiting(name, content)
            else:
                self._finish(name)

    def _content(self, namespace: str) -> list[tuple[Kind, Item]]:
        """Every object in a namespace."""
        return [
            (kind, item)
            for name, table in self._core.store.tables.items()
            if (kind := self._kinds.of_table(name)) is not None and kind.namespaced
            for item in table.range(namespace)
        ]

    def _report_waiting(self, name: str, left: list[tuple[Kind, Item]]) -> None:
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
        set_list(spec, "finalizers", [entry for entry in spec.get("finalizers") or () if entry != "kubernetes"])
        store_or_remove(self._core, kind, item, document)


def _remaining(left: list[tuple[Kind, Item]]) -> list[tuple[str, bool, str, str]]:
    """The conditions of a namespace that is being deleted: type, whether it holds, reason and message."""
    resources = Counter(f"{kind.plural}.{kind.group}" for kind, _ in left)
    counts = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
    finalizers = Counter(name for _, item in left for name in item.finalizers)
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
