"""What a backend is: the pure half that the operator loads, and that its controller runs on.

A backend is any object with these members, registered under the entry point group `spinney.backends`. Nothing in it
does I/O: what it must know of the cluster is handed in.
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
    """Why a set is refused: the field, and what to do. A set may opt in to losing what is `waivable`."""

    field: str
    message: str
    waivable: bool = False


@dataclass(frozen=True)
class Translation:
    """A gang in the words of one scheduler: its objects in the order of creation, and what did not fit."""

    objects: tuple[Wanted, ...] = ()
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Readiness:
    """Whether the scheduler's objects let a gang start, and why not; the message carries the scheduler's own words."""

    ready: bool
    reason: str
    message: str = ""


@dataclass(frozen=True)
class Cluster:
    """What a backend may know of the cluster when it translates: what is served, and its own topology objects."""

    served: Served
    topology: Sequence[Json] = field(default_factory=tuple)


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
        """Every resource it may write or look at; what of them is served is told back to it."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The RBAC rules that its controller needs for its own resources, and for what else it reads or deletes."""

    @property
    def crds(self) -> tuple[Json, ...]:
        """The CustomResourceDefinitions of its resources, for a cluster where its scheduler has not installed them."""

    @property
    def lease(self) -> str:
        """The Lease that its scheduler renews while it runs, in any namespace; empty where it has none."""

    def claims(self, scheduler_name: str) -> bool:
        """Whether pods that name this scheduler are its own. The empty name is nobody's: it means the default."""

    def scheduler_name(self, requested: str) -> str:
        """The `schedulerName` its pods carry, where the set asks for `requested` (which may be another's)."""

    def capabilities(self, served: Served) -> Capabilities:
        """What it can express on a cluster that serves this."""

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """What is wrong with a set for this scheduler; asked at admission."""

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """What a PodGang must carry so that it can be translated without its set; `pod_specs` is by pod group name."""

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod as its scheduler wants it, asked just before creation; the gate is there, labels are final."""

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """The scheduler's objects for a gang."""

    def ready(self, gang: PodGang, found: Sequence[Json]) -> Readiness:
        """Whether the gang may start, given its objects as they are now, in the order of `translate`."""


@runtime_checkable
class TopologyAware(Protocol):
    """A backend whose scheduler has topology objects of its own, which are written or only checked."""

    @property
    def topology_resource(self) -> Resource:
        """Where those objects are served."""

    @property
    def topology_scheduler(self) -> str:
        """The name a ClusterTopologyBinding calls this scheduler by."""

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """The object to write for a binding, or None where someone else writes it."""

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, found: Sequence[Json]) -> str:
        """What in the scheduler's objects contradicts a binding; empty when in sync."""


@runtime_checkable
class Retrying(Protocol):
    """A backend whose scheduler gives up on a gang for good, so that it must be tried again under a new identity.

    Its `rules` must let it delete pods.
    """

    def spent(self, gang: PodGang, pods: Sequence[Pod]) -> bool:
        """Whether the attempt that the gang's annotation counts is over."""

    def outdated(self, gang: PodGang, pods: Sequence[Pod]) -> list[Pod]:
        """The pods that belong to an earlier attempt and must be made anew."""
