"""Topology: a ClusterTopologyBinding turns the domain names of a set into the node label keys of its gangs."""

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
        """The node label key of a domain; empty where the binding lacks it."""
        return next((key for name, key in self.keys if name == domain), "")

    def constraint(self, constraint: TopologyConstraint | None) -> Json | None:
        """A PodGang's constraint, in label keys; None where the binding has none of its domains."""
        if constraint is None:
            return None
        wanted = {"required": self.key(constraint.required), "preferred": self.key(constraint.preferred)}
        pack = {field: key for field, key in wanted.items() if key}
        return {"packConstraint": pack} if pack else None


NO_LEVELS = Levels()


def levels_of(binding: ClusterTopologyBinding | None) -> Levels:
    """The levels of a binding; none where it is missing."""
    if binding is None:
        return NO_LEVELS
    return Levels(binding.name, tuple((level.domain, level.key) for level in binding.spec.levels))


def constraints(pcs: PodCliqueSet) -> list[TopologyConstraint]:
    """Every constraint of a set, at all levels."""
    template = pcs.spec.template
    constraints = [
        template.topology_constraint,
        *(group.topology_constraint for group in template.pod_clique_scaling_groups),
        *(clique.topology_constraint for clique in template.cliques),
    ]
    return [constraint for constraint in constraints if constraint is not None]


def topology_name(pcs: PodCliqueSet) -> str:
    """The binding that a set uses; admission allows only one."""
    return next((item.topology_name for item in constraints(pcs) if item.topology_name), "")


def missing_domains(pcs: PodCliqueSet, levels: Levels) -> list[str]:
    """The domains that a set asks for and its binding lacks."""
    domains = [domain for item in constraints(pcs) for domain in (item.required, item.preferred) if domain]
    return [domain for domain in dict.fromkeys(domains) if not levels.key(domain)]
