"""The life of CustomResourceDefinitions: names are accepted or clash, kinds are served, and their objects go first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.schema.custom_resources import TABLE, kinds_of
from spinney.embedded.apiserver.store.conversion import load
from spinney.embedded.apiserver.store.store import Event
from spinney.embedded.apiserver.write.deletion import CLEANUP, delete_item, finished, remove

if TYPE_CHECKING:
    from spinney.embedded.apiserver.calls import Call
    from spinney.embedded.apiserver.server import ApiServer

_NAMES = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)


def new_status(server: ApiServer, document: Json, old: Json) -> Json:
    """The status of a definition; what it asks for is accepted at once, unless a name is taken."""
    spec, now = document["spec"], server.timestamp()
    stored = [version.get("name", "") for version in spec.get("versions") or () if version.get("storage")]
    known = old.get("storedVersions") or []
    status: Json = {"conditions": old.get("conditions") or [], "acceptedNames": old.get("acceptedNames") or {}}
    status["storedVersions"] = [*known, *(name for name in stored if name not in known)]
    clash = _clash(server, document)
    accepted = clash is None
    reason, message = clash or ("NoConflicts", "no conflicts found")
    if accepted:
        status["acceptedNames"] = spec.get("names") or {}
    conditions = [_condition("NamesAccepted", accepted, reason, message, now)]
    if accepted:
        told = ("InitialNamesAccepted", "the initial names have been accepted")
        conditions.append(_condition("Established", True, *told, now))
    else:
        conditions.append(_condition("Established", False, "NotAccepted", "not all names are accepted", now))
    before = {(entry["type"], entry["status"]): entry for entry in status["conditions"]}
    status["conditions"] = [before.get((entry["type"], entry["status"]), entry) for entry in conditions]
    return status


def _condition(kind: str, holds: bool, reason: str, message: str, now: str) -> Json:
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}


def _clash(server: ApiServer, document: Json) -> tuple[str, str] | None:
    """The last of a definition's names that another one of its group has already."""
    spec = document["spec"]
    names = spec.get("names") or {}
    found: tuple[str, str] | None = None
    for item in server.store.table(TABLE).range(""):
        other = load(item)
        if item.name == document["metadata"].get("name") or other["spec"]["group"] != spec.get("group"):
            continue
        taken = (other.get("status") or {}).get("acceptedNames") or {}
        for key, reason in _NAMES:
            value = names.get(key)
            if value and value == taken.get(key):
                found = (reason, f'"{value}" is already in use')
    return found


class DefinitionKeeper:
    """Serves what definitions say, and empties those that are being deleted."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._terminating: set[str] = set()

    def follow(self, event: Event) -> None:
        """Serve what the definition says now."""
        name = event.new.name
        if event.deleted:
            self._terminating.discard(name)
            self._server.kinds.replace_custom(name, [])
            return
        definition = load(event.new)
        conditions = (definition.get("status") or {}).get("conditions") or ()
        served = any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)
        if event.old is None or load(event.old).get("spec") != definition.get("spec"):
            self._server.kinds.replace_custom(name, kinds_of(definition, event.version) if served else [])
        if definition["metadata"].get("deletionTimestamp") and name not in self._terminating:
            self._terminating.add(name)
            asyncio.get_running_loop().call_soon(self._empty)

    def check_creation(self, call: Call) -> None:
        """Refuse a new object of a kind that is on its way out."""
        if call.kind.custom is not None and call.kind.qualified in self._terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(call.kind, call.name, why)

    def object_gone(self, table: str) -> None:
        """Note that a custom object went, which may have been the last of its kind."""
        if self._terminating:
            asyncio.get_running_loop().call_soon(self._empty)

    def _empty(self) -> None:
        for name in sorted(self._terminating):
            plural, _, group = name.partition(".")
            table = f"{group}/{plural}"
            kind = self._server.kind_of_table(table)
            left = 0
            for item in list(self._server.store.table(table).range("")):
                gone = (
                    not item.going
                    and kind is not None
                    and delete_item(self._server, kind, item, {"propagationPolicy": "Background"})[0]
                )
                left += not gone
            if left:
                self._say_progress(name)
            else:
                self._finish(name)

    def _say_progress(self, name: str) -> None:
        item = self._server.store.get(TABLE, name)
        if item is None or b'"InstanceDeletionPending"' not in item.body:
            return
        document = load(item)
        for entry in document["status"]["conditions"]:
            if entry["reason"] == "InstanceDeletionPending":
                entry["reason"] = "InstanceDeletionInProgress"
                entry["message"] = "CustomResource deletion is in progress"
        self._server.store.put(TABLE, item.key, document, item.fields)

    def _finish(self, name: str) -> None:
        item = self._server.store.get(TABLE, name)
        kind = self._server.kind_of_table(TABLE)
        if item is None or kind is None:
            return
        document = load(item)
        metadata = document["metadata"]
        metadata["finalizers"] = [entry for entry in metadata.get("finalizers") or () if entry != CLEANUP]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        if finished(document):
            remove(self._server, kind, item, document)
        elif document != load(item):
            self._server.store.put(TABLE, item.key, document, selectable_fields.values(kind, document))
