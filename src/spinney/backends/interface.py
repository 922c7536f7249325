"""What a backend is: the half without I/O, which the operator and the backend's controller use.

A backend is any object with these members, registered under the entry point group `spinney.backends`. What it needs to
know of the cluster is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.capabilities import Capabilities, Loss
from spinney.backends.served import Served
from spinney.kube.desired import Wanted
from spinney.kube.runtime import Rule


@dataclass(frozen=True)
class Problem:
    """Why a set is refused: the field, and what to do. A set may allow the downgrade of what is `waivable`."""

    field: str
    message: str
    waivable: bool = False


@dataclass(frozen=True)
class Translation:
    """A gang as one scheduler's objects, in order of creation, and what they cannot express."""

    objects: tuple[Wanted, ...] = ()
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Readiness:
    """Whether a gang may start, and why not; the message repeats what the scheduler says."""

    ready: bool
    reason: str
    message: str = ""


@dataclass(frozen=True)
class Setting:
    """An object, in any namespace, in which a scheduler's own configuration is kept."""

    resource: Resource
    name: str


@dataclass(frozen=True)
class Cluster:
    """What a backend knows of the cluster when it translates. None means that it was not looked up."""

    served: Served
    # Its scheduler's topology objects.
    topology: Sequence[Json] | None = None
    # Its scheduler's queues.
    queues: Sequence[Json] | None = None
    # Its scheduler's configuration: those of its `settings` that exist and may be read.
    settings: Mapping[Setting, Json] = field(default_factory=dict)
    # The living pods of the gang.
    pods: Sequence[Pod] | None = None


class Backend(Protocol):
    """One scheduler."""

    @property
    def name(self) -> str:
        """The value of the label `grove.io/scheduler-backend`."""

    @property
    def gate(self) -> str:
        """The scheduling gate that its pods are created with."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource that it writes or reads; `served` tells which of them the cluster has."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The RBAC rules that its controller needs for its own resources, and for what else it reads or deletes."""

    @property
    def crds(self) -> tuple[Json, ...]:
        """The CustomResourceDefinitions of its resources, for a cluster where its scheduler has not installed them."""

    @property
    def lease(self) -> str:
        """The name of the Lease that its scheduler renews, in any namespace; empty if it has none."""

    def claims(self, scheduler_name: str) -> bool:
        """Whether it takes pods with this `schedulerName`. An empty name is replaced by the default before."""

    def scheduler_name(self, requested: str) -> str:
        """The `schedulerName` of its pods if the set names `requested`, which may be another scheduler's."""

    def capabilities(self, served: Served) -> Capabilities:
        """What it can express on a cluster that serves this."""

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """What this scheduler cannot do of a set; called at admission."""

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """Annotations that a PodGang needs to be translated without its set; `pod_specs` is by pod group name."""

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod as its scheduler needs it; called just before creation, with its gate and final labels."""

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """The scheduler's objects for a gang."""

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Whether the gang may start, given its live objects in the order of `translate`."""


@runtime_checkable
class TopologyAware(Protocol):
    """A backend whose scheduler has its own topology objects, which the backend writes or only checks."""

    @property
    def topology_resource(self) -> Resource:
        """Where those objects are served."""

    @property
    def topology_scheduler(self) -> str:
        """The name of this scheduler in a ClusterTopologyBinding."""

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """The object to write for a binding, or None if someone else writes it."""

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, topologies: Sequence[Json]) -> str:
        """How the scheduler's objects differ from a binding; empty when in sync."""


@runtime_checkable
class Queued(Protocol):
    """A backend whose scheduler has queues that must exist before a gang can be in them."""

    @property
    def queue_resource(self) -> Resource | None:
        """Where they are served, one of `resources`; None if they are not objects."""

    def missing_queue(self, gang: PodGang, cluster: Cluster) -> str:
        """Why the gang's queue takes no gangs, and what to do; empty if it does, or if nobody can tell."""


@runtime_checkable
class Configured(Protocol):
    """A backend that can tell from the cluster whether its scheduler is set up for what gangs may ask for."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The objects to read for it; its `rules` must allow this."""

    def setup_problems(self, cluster: Cluster) -> tuple[str, ...]:
        """What is missing or switched off, each with how to set it up."""


@runtime_checkable
class Remembering(Protocol):
    """A backend that leaves gangs as they are which an earlier version of it has written."""

    def remembered(self, gang: PodGang, objects: Sequence[Json]) -> dict[str, str]:
        """The annotations by which the gang keeps the form that its existing objects have."""


@runtime_checkable
class Reserving(Protocol):
    """A backend whose scheduler holds the room of a gang with placeholder pods, which say why the gang waits."""

    def reservation(self, gang: PodGang) -> str:
        """The name that the gang's placeholders share; unique in its namespace."""

    def reserved_by(self, pod: Pod) -> str:
        """The name of the reservation that a placeholder belongs to; empty for any other pod."""


@runtime_checkable
class Retrying(Protocol):
    """A backend whose scheduler gives up on a gang for good, so that it must be tried again under a new identity.

    Its `rules` must let it delete pods.
    """

    def spent(self, gang: PodGang, pods: Sequence[Pod]) -> bool:
        """Whether the attempt that the gang's annotation counts is over."""

    def outdated(self, gang: PodGang, pods: Sequence[Pod]) -> list[Pod]:
        """The pods of an earlier attempt, which must be created again."""
