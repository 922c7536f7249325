"""What a scheduler can express of a gang, as data for admission, conditions and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Feature(StrEnum):
    """One thing that a gang can ask for; the value is how a sentence names it."""

    TOGETHER = "all roles together or none"
    GROUP_MINIMUM = "a minimum for each role"
    ZERO_MINIMUM = "roles without a minimum"
    MUTABLE_MINIMUM = "minimums that change later"
    GANG_REQUIRED = "required topology for the gang"
    GANG_PREFERRED = "preferred topology for the gang"
    CONFIG_REQUIRED = "required topology for a group of roles"
    CONFIG_PREFERRED = "preferred topology for a group of roles"
    GROUP_REQUIRED = "required topology for a role"
    GROUP_PREFERRED = "preferred topology for a role"
    PRIORITY = "a priority for the gang"
    QUEUE = "a queue"
    REUSE = "taking over the place of the gang it replaces"


# What a gang can do without; an administrator's rules may choose its queue.
PREFERENCES = frozenset({Feature.GANG_PREFERRED, Feature.CONFIG_PREFERRED, Feature.GROUP_PREFERRED, Feature.QUEUE})


@dataclass(frozen=True)
class Capabilities:
    """What one scheduler can express, in the API version that a cluster serves."""

    # The API version that is written; empty where the cluster serves none that would do.
    api: str
    features: frozenset[Feature]
    # Pods beyond the minimum stay gated until the gang is bound: they could take the resources of the minimum.
    surplus_held: bool = False
    # Half-placed gangs can block each other forever: only gangs that cannot do so are released together.
    in_turn: bool = False
    # Pods beyond the minimum are placed without the gang's topology: they are released to its domain's nodes only.
    surplus_outside: bool = False
    # Gated pods count as present: its objects keep the gang back until every gate is off.
    counts_gated: bool = False
    # Where the scheduler reports on a gang.
    status: str = "pods"
    # What a reader should know before choosing it.
    remarks: tuple[str, ...] = ()

    def has(self, feature: Feature) -> bool:
        """Whether a feature is expressible."""
        return feature in self.features


@dataclass(frozen=True)
class Loss:
    """Something a gang asks for and its scheduler cannot express, or not as this cluster is set up."""

    feature: Feature
    # The field that asks, in the object that was looked at.
    field: str
    asked: str
    # What the cluster lacks for it, and how to set it up; empty if the scheduler cannot do it at all.
    missing: str = ""

    @property
    def bearable(self) -> bool:
        """Whether the gang is placed all the same: it can do without what the cluster is not set up for."""
        return bool(self.missing) and self.feature in PREFERENCES

    def reason(self, backend: str, api: str) -> str:
        """What is lost and with whom, for an error that names the field itself."""
        target = f"{backend} ({api})" if api else backend
        if self.missing:
            return f"{self.asked!r} asks for {self.feature.value}, and {target} is not set up for it: {self.missing}"
        return f"{self.asked!r} asks for {self.feature.value}, which {target} cannot express"

    def sentence(self, backend: str, api: str) -> str:
        """The same with the field, for a condition."""
        return f"{self.field}: {self.reason(backend, api)}"
