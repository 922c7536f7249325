"""The wanted PodGroup of a workload."""

from __future__ import annotations

from dataclasses import dataclass, field

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.kube.controllers.controller import Refusal

_MOST_MEMBERS = 2**31 - 1


class GroupingError(Refusal):
    """The workload cannot be grouped; the message becomes an event of the pod."""


def member_count(text: str) -> int | None:
    """The number of members in an annotation or an environment; None if it is none that a PodGroup can hold."""
    count = whole_number(text)
    return count if count is not None and count <= _MOST_MEMBERS else None


@dataclass(frozen=True)
class Topology:
    """A topology constraint: required and preferred level."""

    name: str = ""
    required: str = ""
    preferred: str = ""

    def wire(self) -> Json:
        """The constraint as a PodGroup writes it."""
        fields = (
            ("topology", self.name),
            ("requiredTopologyLevel", self.required),
            ("preferredTopologyLevel", self.preferred),
        )
        return {key: value for key, value in fields if value}


@dataclass(frozen=True)
class SubGroup:
    """A subgroup with a minimum of pods (leaf) or of subgroups (parent)."""

    name: str
    min_member: int | None = None
    min_subgroup: int | None = None
    parent: str = ""
    topology: Topology = Topology()

    def wire(self) -> Json:
        """The subgroup as a PodGroup writes it."""
        entry: Json = {"name": self.name}
        if self.min_member is not None:
            entry["minMember"] = self.min_member
        if self.min_subgroup is not None:
            entry["minSubGroup"] = self.min_subgroup
        if self.parent:
            entry["parent"] = self.parent
        if constraint := self.topology.wire():
            entry["topologyConstraint"] = constraint
        return entry


@dataclass(frozen=True)
class Grouping:
    """The PodGroup that a pod should be in."""

    name: str
    namespace: str
    owner: Json
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    queue: str = ""
    priority_class: str = ""
    preemptibility: str = ""
    preemption_delay: str = ""
    staleness_grace: str = ""
    min_member: int | None = 1
    min_subgroup: int | None = None
    subgroups: tuple[SubGroup, ...] = ()
    topology: Topology = Topology()
    # The leaf subgroup of the pod; empty where it is in none.
    pod_subgroup: str = ""

    def spec(self) -> Json:
        """The wanted PodGroup spec."""
        spec: Json = {"queue": self.queue, "priorityClassName": self.priority_class}
        optional = (
            ("minMember", self.min_member if self.min_subgroup is None else None),
            ("minSubGroup", self.min_subgroup),
            ("preemptibility", self.preemptibility or None),
            ("preemptionDelay", self.preemption_delay or None),
            ("stalenessGracePeriod", self.staleness_grace or None),
            ("topologyConstraint", self.topology.wire() or None),
            ("subGroups", [group.wire() for group in self.subgroups] or None),
        )
        spec.update({key: value for key, value in optional if value is not None})
        return {key: value for key, value in spec.items() if value != ""}
