"""The kinds that the server serves: built-in ones, and custom ones added at run time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spinney.embedded.apiserver.resources.kinds import Kind


class Kinds:
    """The kinds as they are now. Versions of one group stand in order of preference."""

    def __init__(self, built_in: Iterable[Kind]) -> None:
        self._served = {(kind.group, kind.version, kind.plural): kind for kind in built_in}
        # Changes with every change of the custom kinds; caches compare it.
        self.revision = 0
        self._by_table: dict[str, Kind] = {}
        self._by_table_revision = -1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that serves a path."""
        return self._served.get((group, version, plural))

    def knows(self, group: str, version: str) -> bool:
        """Whether a group is served at all; of custom resources, whether it is at this version."""
        of_group = [kind for kind in self._served.values() if kind.group == group]
        return any(kind.custom is None or kind.version == version for kind in of_group)

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind an object says it is."""
        for served in self._served.values():
            if served.kind == kind and served.api_version == api_version:
                return served
        return None

    def preferred(self, group: str, plural: str) -> Kind | None:
        """The first version that serves a resource."""
        return next((kind for kind in self if kind.group == group and kind.plural == plural), None)

    def of_table(self, table: str) -> Kind | None:
        """A kind whose objects are kept in a table, at the stored version if that is served."""
        if self._by_table_revision != self.revision:
            self._by_table = {}
            for kind in self:
                if kind.stored == kind.api_version or kind.table not in self._by_table:
                    self._by_table[kind.table] = kind
            self._by_table_revision = self.revision
        return self._by_table.get(table)

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._served.values()))

    def groups(self) -> dict[str, dict[str, list[Kind]]]:
        """Kinds by group and version."""
        by_group: dict[str, dict[str, list[Kind]]] = {}
        for kind in self._served.values():
            by_group.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        return by_group

    def replace_custom(self, name: str, kinds: list[Kind]) -> None:
        """Serve these versions of a custom resource (`plural.group`), and no others of it."""
        kept = {key: kind for key, kind in self._served.items() if kind.custom is None or kind.qualified != name}
        self._served = kept | {(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self.revision += 1
