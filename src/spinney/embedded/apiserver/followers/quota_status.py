"""Keep the status of resource quotas: how much the objects of a namespace use."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.admission.quotas import TABLE, quotas_of, used
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.followers.follower import NextTurn
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.resources.quota import written
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Event, Item, load


class QuotaFollower:
    """Counts the usage of a namespace with quotas after every change in it."""

    tables: frozenset[str] | None = None

    def __init__(self, core: Core, kinds: Kinds) -> None:
        self._core = core
        self._kinds = kinds
        self._quotas = core.store.table(TABLE)
        self._next_turn = NextTurn(self._count)
        self._changed: set[str] = set()

    def follow(self, table: str, event: Event) -> None:
        """Note a write."""
        if not self._quotas.items:
            return
        namespace = event.new.namespace
        if not namespace or next(iter(self._quotas.range(namespace)), None) is None:
            return
        if event.version != self._core.store.version:
            # Objects restored from a journal were counted before.
            return
        self._changed.add(namespace)
        self._next_turn.schedule()

    def _count(self) -> None:
        changed, self._changed = self._changed, set()
        for namespace in sorted(changed):
            for item, quota in tuple(quotas_of(self._core, namespace)):
                usage = used(self._core, self._kinds, namespace, quota)
                amounts = {name: written(name, amount) for name, amount in usage.items()}
                self._write(item, {"hard": quota["hard"], "used": amounts})

    def _write(self, item: Item, status: Json) -> None:
        kind = self._kinds.of_table(TABLE)
        document = load(item)
        if kind is not None and document.get("status") != status:
            document["status"] = status
            self._core.store.put(TABLE, item.key, document, selectable_fields.values(kind, document))
