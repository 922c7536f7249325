"""Namespaces: a default service account at birth, and an orderly end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from spinney.embedded import fields
from spinney.embedded.conversion import load
from spinney.embedded.deletion import delete_item, finished, remove
from spinney.embedded.store import Event

if TYPE_CHECKING:
    from spinney.embedded.server import ApiServer


class NamespaceKeeper:
    """Gives new namespaces what every namespace has, and empties those that are being deleted."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._terminating: set[str] = set()
        self._scheduled = False

    def follow(self, table: str, event: Event) -> None:
        """Note a write."""
        if table == "/namespaces":
            self._namespace(event)
        elif event.deleted and event.new.namespace in self._terminating:
            self._later()

    def _namespace(self, event: Event) -> None:
        if event.deleted:
            self._terminating.discard(event.new.name)
        elif b'"deletionTimestamp"' in event.new.body:
            self._terminating.add(event.new.name)
            self._later()
        elif event.old is None and event.version == self._server.store.version:
            self._server.add_default_account(event.new.name)

    def _later(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._empty)

    def _empty(self) -> None:
        self._scheduled = False
        for name in sorted(self._terminating):
            if self._delete_content(name) == 0:
                self._finish(name)

    def _delete_content(self, namespace: str) -> int:
        """Delete everything in a namespace; says how many objects still wait for someone."""
        waiting = 0
        for name, table in tuple(self._server.store.tables.items()):
            kind = self._server.kind_of_table(name)
            if kind is None or not kind.namespaced:
                continue
            for item in list(table.range(namespace)):
                if b'"deletionTimestamp"' in item.body:
                    waiting += 1
                    continue
                gone, _ = delete_item(self._server, kind, item, {"propagationPolicy": "Background"})
                waiting += not gone
        return waiting

    def _finish(self, name: str) -> None:
        item = self._server.store.get("/namespaces", name)
        kind = self._server.kind_of_table("/namespaces")
        if item is None or kind is None:
            return
        document = load(item)
        spec = document.get("spec") or {}
        spec["finalizers"] = [entry for entry in spec.get("finalizers") or () if entry != "kubernetes"]
        if not spec["finalizers"]:
            del spec["finalizers"]
        if finished(document):
            remove(self._server, kind, item, document)
        elif document != load(item):
            self._server.store.put("/namespaces", name, document, fields.values(kind, document))
