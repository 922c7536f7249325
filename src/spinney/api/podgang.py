"""scheduler.grove.io: the PodGang, the description of a gang that every backend translates."""

from __future__ import annotations

from typing import Annotated, ClassVar

from spinney.api.meta import Conditions, Object, Resource, Struct
from spinney.api.schema import AGE, REQUIRED, Column, Definition, Int32

VERSION = "scheduler.grove.io/v1alpha1"


class NamespacedName(Struct, frozen=True):
    """An object by namespace and name."""

    namespace: Annotated[str, REQUIRED] = ""
    name: Annotated[str, REQUIRED] = ""


class PackConstraint(Struct, frozen=True):
    """Node label keys whose domain pods must, or should, share."""

    required: str = ""
    preferred: str = ""


class TopologyConstraint(Struct, frozen=True):
    """The topology constraint of one level of a gang."""

    pack_constraint: PackConstraint | None = None

    @property
    def required(self) -> str:
        """The node label key that must be shared, or empty."""
        return self.pack_constraint.required if self.pack_constraint else ""

    @property
    def preferred(self) -> str:
        """The node label key that should be shared, or empty."""
        return self.pack_constraint.preferred if self.pack_constraint else ""


class PodGroup(Struct, frozen=True):
    """The pods of one clique in a gang, and the minimum that the gang needs."""

    name: Annotated[str, REQUIRED] = ""
    pod_references: Annotated[tuple[NamespacedName, ...], REQUIRED] = ()
    min_replicas: Annotated[Int32, REQUIRED] = 0
    topology_constraint: TopologyConstraint | None = None


class TopologyConstraintGroupConfig(Struct, frozen=True):
    """Some of the pod groups, packed together."""

    name: Annotated[str, REQUIRED] = ""
    pod_group_names: Annotated[tuple[str, ...], REQUIRED] = ()
    topology_constraint: TopologyConstraint | None = None


class PodGangSpec(Struct, frozen=True):
    """The pod groups of a gang and their constraints."""

    podgroups: Annotated[tuple[PodGroup, ...], REQUIRED] = ()
    topology_constraint: TopologyConstraint | None = None
    topology_constraint_group_configs: tuple[TopologyConstraintGroupConfig, ...] = ()
    priority_class_name: str = ""
    reuse_reservation_ref: NamespacedName | None = None


class PodGangStatus(Struct, frozen=True):
    """The status of a gang."""

    phase: Annotated[str, REQUIRED] = ""
    conditions: Conditions = ()
    placement_score: float | None = None


class PodGang(Object, frozen=True):
    """Pods that are placed together or not at all."""

    resource: ClassVar[Resource] = Resource(VERSION, "PodGang", "podgangs")
    crd: ClassVar[Definition] = Definition(
        short_names=("pg",),
        columns=(
            Column("Phase", ".status.phase", "string"),
            Column("Scheduled", '.status.conditions[?(@.type=="Scheduled")].status', "string"),
            Column("Reason", '.status.conditions[?(@.type=="Scheduled")].reason', "string"),
            Column("Score", ".status.placementScore", "number", wide=True),
            Column("Message", '.status.conditions[?(@.type=="Scheduled")].message', "string", wide=True),
            AGE,
        ),
    )

    spec: Annotated[PodGangSpec, REQUIRED] = PodGangSpec()
    status: PodGangStatus = PodGangStatus()
