"""Which cliques, scaling groups and gangs one replica of a set consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from spinney.api.grove import PodCliqueSet, PodCliqueTemplate, ScalingGroupConfig
from spinney.grove.model import names


@dataclass(frozen=True)
class Clique:
    """One clique of one set replica: standalone, or in one replica of a scaling group."""

    name: str
    template: PodCliqueTemplate
    gang: str
    # The base gang that must be placed first; empty for members of the base gang itself.
    base_gang: str = ""
    group: str = ""
    group_name: str = ""
    group_index: int = 0
    # What it is scaled to, where it exists.
    replicas: int | None = None

    @property
    def declared_minimum(self) -> int:
        """minAvailable as the template has it."""
        spec = self.template.spec
        return spec.min_available if spec.min_available is not None else spec.replicas

    @property
    def min_available(self) -> int:
        """How many pods the gang needs: never more than the clique is scaled to."""
        return self.declared_minimum if self.replicas is None else min(self.declared_minimum, self.replicas)


@dataclass(frozen=True)
class Group:
    """One scaling group of one set replica, with the replicas it has now."""

    name: str
    config: ScalingGroupConfig
    replicas: int

    @property
    def in_base(self) -> int:
        """How many of its replicas belong to the base gang."""
        return min(self.config.min_available, self.replicas)


@dataclass(frozen=True)
class Gang:
    """Cliques that are placed together: the base gang, or one scaling-group replica beyond minAvailable."""

    name: str
    cliques: tuple[Clique, ...]
    base: str = ""
    group: Group | None = None


@dataclass(frozen=True)
class Layout:
    """One set replica, expanded."""

    pcs: PodCliqueSet
    index: int
    groups: tuple[Group, ...]
    gangs: tuple[Gang, ...]

    @property
    def base_gang(self) -> Gang:
        """The gang of all minimums of the replica."""
        return self.gangs[0]

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """Every clique, base gang first."""
        return tuple(clique for gang in self.gangs for clique in gang.cliques)

    def members(self, group: Group) -> Iterator[Clique]:
        """The cliques of a scaling group, replica by replica."""
        return (clique for clique in self.cliques if clique.group == group.name)


def lay_out(pcs: PodCliqueSet, index: int, scaled_to: Mapping[str, int]) -> Layout:
    """The replica as it should be; `scaled_to` has the replicas of stored scaling groups and cliques, by name."""
    template = pcs.spec.template
    by_name = {clique.name: clique for clique in template.cliques}
    base = names.replica(pcs.name, index)
    grouped = {member for config in template.pod_clique_scaling_groups for member in config.clique_names}
    in_base = [
        Clique(name, clique, base, replicas=scaled_to.get(name))
        for clique in template.cliques
        for name in [names.clique(pcs.name, index, clique.name)]
        if clique.name not in grouped
    ]
    groups: list[Group] = []
    scaled: list[Gang] = []
    for config in template.pod_clique_scaling_groups:
        name = names.group(pcs.name, index, config.name)
        group = Group(name, config, scaled_to.get(name, config.replicas))
        groups.append(group)
        for replica in range(group.replicas):
            gang = base if replica < group.in_base else names.scaled_gang(name, replica, config.min_available)
            cliques = tuple(
                Clique(
                    name=member_name,
                    template=by_name[member],
                    gang=gang,
                    base_gang="" if gang == base else base,
                    group=name,
                    group_name=config.name,
                    group_index=replica,
                    replicas=scaled_to.get(member_name),
                )
                for member in config.clique_names
                for member_name in [names.member(name, replica, member)]
                if member in by_name
            )
            if gang == base:
                in_base += cliques
            else:
                scaled.append(Gang(gang, cliques, base, group))
    return Layout(pcs, index, tuple(groups), (Gang(base, tuple(in_base)), *scaled))


class NamesClash(Exception):
    """Two parts of one replica would have the same name; admission refuses such a set."""


def check_names(layout: Layout) -> None:
    """Raise where two cliques, or two gangs, would have one name: each would overwrite the other again and again."""
    for kind, items in (("PodCliques", layout.cliques), ("PodGangs", layout.gangs)):
        for name, count in Counter(item.name for item in items).items():
            if count > 1:
                where = f"{layout.pcs.namespace}/{layout.pcs.name}"
                raise NamesClash(f"two {kind} of PodCliqueSet {where} would be called {name}; rename a clique or group")
