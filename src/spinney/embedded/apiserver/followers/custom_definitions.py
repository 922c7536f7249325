"""Serve the kinds of CustomResourceDefinitions; delete all objects of a definition before the definition itself."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.followers.follower import NextTurn
from spinney.embedded.apiserver.resources.kinds import Kind, Subresource, subresource
from spinney.embedded.apiserver.resources.record import CUSTOM
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.schema.custom_resources import CLEANUP, TABLE, Custom
from spinney.embedded.apiserver.store.store import Event, load
from spinney.embedded.apiserver.write.deletion import delete_item, set_list, store_or_remove


class DefinitionFollower:
    """Serves the kinds of definitions, and deletes the objects of definitions that are being deleted."""

    tables: frozenset[str] | None = None

    def __init__(self, core: Core, kinds: Kinds) -> None:
        self._core = core
        self._kinds = kinds
        self._terminating: set[str] = set()
        self._next_turn = NextTurn(self._empty)

    def follow(self, table: str, event: Event) -> None:
        """Note a write: of a definition, or of an object that may have been the last of its kind."""
        if table == TABLE:
            self._serve(event)
        if event.deleted and self._terminating:
            self._next_turn.schedule()

    def _serve(self, event: Event) -> None:
        """Serve the versions that a definition has now."""
        name = event.new.name
        if event.deleted:
            self._terminating.discard(name)
            self._kinds.replace_custom(name, [])
            return
        definition = load(event.new)
        conditions = (definition.get("status") or {}).get("conditions") or ()
        served = any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)
        if event.old is None or load(event.old).get("spec") != definition.get("spec"):
            self._kinds.replace_custom(name, kinds_of(definition, event.version) if served else [])
        if definition["metadata"].get("deletionTimestamp") and name not in self._terminating:
            self._terminating.add(name)
            self._next_turn.schedule()

    def _empty(self) -> None:
        for name in sorted(self._terminating):
            plural, _, group = name.partition(".")
            table = f"{group}/{plural}"
            kind = self._kinds.of_table(table)
            if table in self._core.built_in:
                self._finish(name)
                continue
            for item in list(self._core.store.table(table).range("")):
                if kind is not None and not item.going:
                    delete_item(self._core, kind, item, {"propagationPolicy": "Background"})
            if self._core.store.table(table).items:
                self._report_progress(name)
            else:
                self._finish(name)

    def _report_progress(self, name: str) -> None:
        item = self._core.store.get(TABLE, name)
        if item is None:
            return
        document = load(item)
        pending = [entry for entry in document["status"]["conditions"] if entry["reason"] == "InstanceDeletionPending"]
        if not pending:
            return
        for entry in pending:
            entry["reason"] = "InstanceDeletionInProgress"
            entry["message"] = "CustomResource deletion is in progress"
        self._core.store.put(TABLE, item.key, document, item.fields)

    def _finish(self, name: str) -> None:
        item = self._core.store.get(TABLE, name)
        kind = self._kinds.of_table(TABLE)
        if item is None or kind is None:
            return
        document = load(item)
        metadata = document["metadata"]
        set_list(metadata, "finalizers", [entry for entry in metadata.get("finalizers") or () if entry != CLEANUP])
        store_or_remove(self._core, kind, item, document)


# In the order in which the server for custom resources lists them.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def kinds_of(definition: Json, since: int) -> list[Kind]:
    """The kinds that a definition serves, one per version, each with the storage version."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    custom = Custom(definition, since)
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    kinds: list[Kind] = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        name = version["name"]
        served = custom.versions[name]
        subs: dict[str, Subresource] = {}
        if served.status:
            subs["status"] = subresource("status", group, name, names["kind"])
        if served.scale is not None:
            subs["scale"] = subresource("scale", group, name, names["kind"])
        kind = Kind.of(
            group,
            name,
            names["kind"],
            names["plural"],
            spec["scope"] == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            singular=names.get("singular") or names["kind"].lower(),
            list_kind=names.get("listKind") or f"{names['kind']}List",
            subresources=subs,
            verbs=_VERBS,
            custom=custom,
            resource=CUSTOM,
        )
        kinds.append(replace(kind, stored=f"{group}/{stored}"))
    return sorted(kinds, key=lambda kind: _preference(kind.version))


def _preference(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: stable before beta before alpha, newer before older."""
    for rank, mark in ((1, "beta"), (2, "alpha")):
        before, _, after = version.removeprefix("v").partition(mark)
        major, minor = whole_number(before), whole_number(after)
        if major is not None and minor is not None:
            return rank, -major, -minor, ""
    number = whole_number(version.removeprefix("v")) if version.startswith("v") else None
    return (3, 0, 0, version) if number is None else (0, -number, 0, "")
