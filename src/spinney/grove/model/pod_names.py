"""Names of pods: those still to be created, and those already used, which are never used again.

A gang is the record of which pods there are to be. A name that it references and whose pod nobody has seen is still to
come, whoever chose it: an operator that creates it once more finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from spinney.api.meta import Key


class PodNames:
    """Makes pod names, and remembers which of the referenced ones pods have carried."""

    def __init__(self, new_name: Callable[[str], str]) -> None:
        """`new_name` makes an unused pod name from a clique's name."""
        self.new = new_name
        # By clique.
        self._used: dict[Key, frozenset[str]] = {}

    def to_come(self, clique: Key, referenced: Sequence[str], seen: AbstractSet[str]) -> list[str]:
        """The referenced names that no pod has carried yet, given the names of all pods there are now."""
        before = self._used.get(clique, frozenset())
        used = frozenset(name for name in referenced if name in seen or name in before)
        if used:
            self._used[clique] = used
        else:
            self._used.pop(clique, None)
        return [name for name in referenced if name not in used]

    def give_up(self, clique: Key, name: str) -> None:
        """Note that a name cannot be used, since an object of somebody else has it."""
        self._used[clique] = self._used.get(clique, frozenset()) | {name}
