"""Trees of subgroups: the fixed shape of gangs."""

from __future__ import annotations

from dataclasses import dataclass, field

from spinney.scheduler.state.specs import DEFAULT_GROUP, Constraint, GroupSpec


@dataclass(slots=True)
class SetNode:
    """A set of subgroups in a tree."""

    name: str
    constraint: Constraint | None
    parent: int
    sets: list[int] = field(default_factory=list)
    podsets: list[int] = field(default_factory=list)


@dataclass(slots=True)
class PodSet:
    """A leaf of a tree: tasks that are alike."""

    name: str
    constraint: Constraint | None
    parent: int


class Tree:
    """The fixed shape of a gang; many jobs share one."""

    __slots__ = ("by_name", "constrained", "minimums", "podsets", "set_minimums", "sets", "simple", "users")

    def __init__(self, spec: GroupSpec) -> None:
        self.sets: list[SetNode] = []
        self.podsets: list[PodSet] = []
        self.minimums: list[int] = []
        self.set_minimums: list[int | None] = []
        self._add(spec, -1)
        self.by_name = {podset.name: index for index, podset in enumerate(self.podsets)}
        # One set with one leaf: what nearly every job is.
        self.simple = len(self.sets) == 1 and len(self.podsets) == 1
        # How many jobs share it.
        self.users = 0
        self.constrained = any(node.constraint for node in self.sets) or any(leaf.constraint for leaf in self.podsets)

    def _add(self, spec: GroupSpec, parent: int) -> None:
        index = len(self.sets)
        self.sets.append(SetNode(spec.name, spec.constraint, parent))
        self.set_minimums.append(spec.minimum)
        if parent >= 0:
            self.sets[parent].sets.append(index)
        for member in spec.members:
            if member.members:
                self._add(member, index)
            else:
                self.sets[index].podsets.append(len(self.podsets))
                self.podsets.append(PodSet(member.name, member.constraint, index))
                self.minimums.append(member.minimum or 0)

    def podset_of(self, group: str) -> int | None:
        """The leaf that a task's subgroup name means."""
        return self.by_name.get(group or DEFAULT_GROUP)

    def podsets_under(self, index: int) -> list[int]:
        """Every leaf below a set."""
        node = self.sets[index]
        leaves = list(node.podsets)
        for child in node.sets:
            leaves += self.podsets_under(child)
        return leaves
