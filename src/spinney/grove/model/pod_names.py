"""Names of pods to come: chosen when their gang is written, remembered until the pod is seen."""

from __future__ import annotations

from collections.abc import Callable


class PodNames:
    """Pod names that were chosen and that no pod has carried yet."""

    def __init__(self, new_name: Callable[[str], str]) -> None:
        """`new_name` makes an unused pod name from a clique's name."""
        self._new_name = new_name
        self._pending: set[tuple[str, str]] = set()

    def choose(self, namespace: str, clique: str) -> str:
        """Choose a name for a new pod of a clique."""
        name = self._new_name(clique)
        self._pending.add((namespace, name))
        return name

    def is_pending(self, namespace: str, name: str) -> bool:
        """Whether a pod of this name is still to come; one that came and went is not."""
        return (namespace, name) in self._pending

    def seen(self, namespace: str, name: str) -> None:
        """Note that a pod of this name exists."""
        self._pending.discard((namespace, name))
