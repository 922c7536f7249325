"""Watches against a model: from any version on, nothing is missing, doubled or out of order, or the watch says 410."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from spinney.embedded.apiserver.store.store import Store, TooOld

TABLE = "/configmaps"
WINDOW = 6
KEYS = st.sampled_from(["a", "b", "c"])


class Watching(RuleBasedStateMachine):
    """Writes to a store whose history is short; the model remembers everything."""

    versions = Bundle("versions")

    @initialize()
    def start(self) -> None:
        """An empty store; a listener is a watch from the beginning."""
        self.store = Store(window=WINDOW)
        self.compacted = 0
        self.listened: list[int] = []
        # Every write: its version, key, and whether it deleted; and the content after each version.
        self.log: list[tuple[int, str, bool]] = []
        self.states: dict[int, dict[str, int]] = {self.store.version: {}}
        self.store.table(TABLE).listeners.append(lambda event: self.listened.append(event.version))

    @rule(target=versions, key=KEYS, label=st.sampled_from(["", "1", "2"]))
    def put(self, key: str, label: str) -> int:
        """Create or change an object."""
        document = {"metadata": {"name": key, "uid": f"uid-{key}", "labels": {"x": label}}}
        item = self.store.put(TABLE, key, document, {})
        return self._remember(item.version, key, deleted=False)

    @rule(target=versions, key=KEYS)
    def delete(self, key: str) -> int:
        """Delete an object, if it is there."""
        item = self.store.get(TABLE, key)
        if item is None:
            return self.store.version
        gone = self.store.delete(TABLE, key, {"metadata": {"name": key, "uid": item.uid}})
        return self._remember(gone.version, key, deleted=True)

    @rule(version=versions)
    def resume(self, version: int) -> None:
        """A watch from a version gets every write after it, in order; or 410, and only if some were forgotten."""
        try:
            events = self.store.table(TABLE).since(version)
        except TooOld:
            assert self._forgotten(version)
            return
        wanted = [entry for entry in self.log if entry[0] > version]
        assert [(event.version, event.new.key, event.deleted) for event in events] == wanted

    @rule(version=versions)
    def look_back(self, version: int) -> None:
        """A list at a version is what was there then; or 410."""
        try:
            past = self.store.table(TABLE).at(version)
        except TooOld:
            assert self._forgotten(version)
            return
        assert {key: item.version for key, item in past.items()} == self.states[version]

    @rule()
    def compact(self) -> None:
        """Drop the history: older watches are told so, the newest goes on."""
        self.store.forget()
        self.compacted = self.store.version
        assert self.store.table(TABLE).since(self.store.version) == []

    def _forgotten(self, version: int) -> bool:
        return version < self.compacted or sum(entry[0] > version for entry in self.log) > WINDOW

    @invariant()
    def nothing_was_missed(self) -> None:
        """The live watch saw every write once, in order; keys are sorted; content equals the model's."""
        if not hasattr(self, "store"):
            return
        assert self.listened == [version for version, _, _ in self.log]
        table = self.store.table(TABLE)
        assert table.keys == sorted(table.items)
        assert {key: item.version for key, item in table.items.items()} == self.states[self.store.version]

    def _remember(self, version: int, key: str, *, deleted: bool) -> int:
        content = dict(self.states[max(self.states)])
        if deleted:
            content.pop(key)
        else:
            content[key] = version
        self.states[version] = content
        self.log.append((version, key, deleted))
        return version


TestWatching = Watching.TestCase
TestWatching.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
