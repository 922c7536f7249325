"""Topology: domain names of a set become node label keys of its gangs, through the ClusterTopologyBinding it names."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet, TopologyConstraint
from spinney.api.meta import Json


@dataclass(frozen=True)
class Levels:
    """One binding's domains and their node label keys, broadest first; empty where there is no binding."""

    name: str = ""
    keys: tuple[tuple[str, str], ...] = ()

    def key(self, domain: str) -> str:
        """The node label key of a domain; empty where the binding does not know it."""
        return next((key for known, key in self.keys if known == domain), "")

    def constraint(self, asked: TopologyConstraint | None) -> Json | None:
        """A PodGang's constraint, in label keys; None where nothing of it can be said."""
        if asked is None:
            return None
        wanted = {"required": self.key(asked.required), "preferred": self.key(asked.preferred)}
        pack = {field: key for field, key in wanted.items() if key}
        return {"packConstraint": pack} if pack else None


NO_LEVELS = Levels()


def levels_of(binding: ClusterTopologyBinding | None) -> Levels:
    """The levels of a binding that may have vanished."""
    if binding is None:
        return NO_LEVELS
    return Levels(binding.name, tuple((level.domain, level.key) for level in binding.spec.levels))


def constraints(pcs: PodCliqueSet) -> list[TopologyConstraint]:
    """Every constraint of a set, wherever it stands."""
    template = pcs.spec.template
    found = [
        template.topology_constraint,
        *(group.topology_constraint for group in template.pod_clique_scaling_groups),
        *(clique.topology_constraint for clique in template.cliques),
    ]
    return [constraint for constraint in found if constraint is not None]


def topology_name(pcs: PodCliqueSet) -> str:
    """The one binding a set uses; admission holds it to one."""
    return next((found.topology_name for found in constraints(pcs) if found.topology_name), "")


def missing_domains(pcs: PodCliqueSet, levels: Levels) -> list[str]:
    """The domains that a set asks for and its binding does not have (any more)."""
    asked = [domain for found in constraints(pcs) for domain in (found.required, found.preferred) if domain]
    return [domain for domain in dict.fromkeys(asked) if not levels.key(domain)]
