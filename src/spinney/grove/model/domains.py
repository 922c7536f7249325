"""Where the pods of a gang are, compared with the topology that it requires, whichever scheduler placed them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spinney.api.core import Node, Pod
from spinney.api.podgang import PodGang, TopologyConstraint
from spinney.grove.model.gang_members import Member

_NO_DOMAIN = "no domain"
_WHOLE = "the gang"


@dataclass(frozen=True)
class Placement:
    """The domains of one node label that a gang, or a part of it, must share, with the number of pods in each."""

    subject: str
    key: str
    domains: Mapping[str, int]

    @property
    def is_broken(self) -> bool:
        """Whether the pods are in more than one domain, or in none."""
        return len(self.domains) > 1 or _NO_DOMAIN in self.domains

    def __str__(self) -> str:
        """The domains, the one with most pods first."""
        return ", ".join(f"{name} ({count})" for name, count in Counter(self.domains).most_common())


def requires_topology(gang: PodGang) -> bool:
    """Whether a gang, or a part of it, must be in one domain."""
    return bool(required_keys(gang))


def required_placements(gang: PodGang, members: Sequence[Member], nodes: Mapping[str, Node]) -> list[Placement]:
    """The placement of everything in a gang that must be in one domain and has pods on nodes."""
    by_name = {member.name: member for member in members}
    placements = []
    for subject, key, names in _requirements(gang):
        pods = [pod for name in names if name in by_name for pod in by_name[name].active]
        domains = _domains(pods, key, nodes)
        if domains:
            placements.append(Placement(subject, key, domains))
    return placements


def required_keys(gang: PodGang) -> tuple[str, ...]:
    """The node labels of the domains that a gang, or a part of it, must share."""
    return tuple(dict.fromkeys(key for _, key, _ in _requirements(gang)))


def shared_domain(gang: PodGang, members: Sequence[Member], nodes: Mapping[str, Node]) -> dict[str, str]:
    """The node label that pods of a gang must have because the gang as a whole is there; empty if it is nowhere."""
    selector: dict[str, str] = {}
    for placement in required_placements(gang, members, nodes):
        if placement.subject == _WHOLE and not placement.is_broken:
            selector[placement.key] = next(iter(placement.domains))
    return selector


def _requirements(gang: PodGang) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """What must be in one domain: its name in a sentence, the node label, and its pod groups."""
    spec = gang.spec
    every = tuple(group.name for group in spec.podgroups)
    if key := _required(spec.topology_constraint):
        yield _WHOLE, key, every
    for config in spec.topology_constraint_group_configs:
        if key := _required(config.topology_constraint):
            yield f"group {config.name}", key, config.pod_group_names
    for group in spec.podgroups:
        if key := _required(group.topology_constraint):
            yield (_WHOLE if len(every) == 1 else group.name), key, (group.name,)


def _required(constraint: TopologyConstraint | None) -> str:
    return constraint.required if constraint is not None else ""


def _domains(pods: Iterable[Pod], key: str, nodes: Mapping[str, Node]) -> Counter[str]:
    on = (nodes[pod.spec.node_name] for pod in pods if pod.spec.node_name in nodes)
    return Counter(node.metadata.labels.get(key) or _NO_DOMAIN for node in on)
