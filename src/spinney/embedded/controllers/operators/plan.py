"""What a stand-in operator decides: children to create, change and delete, and the status of their owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spinney.api.apps import StatefulSet
from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Json, Object, Resource
from spinney.api.owners import controller_reference
from spinney.api.times import rfc3339
from spinney.api.untyped import Untyped, untyped

# A stand-in builds all children of an object at once, in memory.
MOST_CHILDREN = 2000

RayCluster = untyped(Resource("ray.io/v1", "RayCluster", "rayclusters"))


@dataclass(frozen=True)
class Child:
    """An object that an owner should have."""

    kind: type[Object]
    body: Json

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True)
class Children:
    """What an owner controls now, by kind."""

    pods: Sequence[Pod] = ()
    jobs: Sequence[Job] = ()
    sets: Sequence[StatefulSet] = ()
    clusters: Sequence[Untyped] = ()

    def all(self) -> list[Object]:
        """Every child."""
        return [*self.pods, *self.jobs, *self.sets, *self.clusters]


@dataclass
class OperatorPlan:
    """What an owner needs next."""

    # The children that should exist; those that do already are left as they are.
    wanted: list[Child] = field(default_factory=list)
    patch: list[tuple[Object, Json]] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    # The fields of the status that the operator owns.
    status: Json = field(default_factory=dict)


def unwanted(children: Iterable[Object], wanted: Iterable[Child]) -> list[Object]:
    """Children that are no longer wanted."""
    names = {(child.kind.resource.kind, child.name) for child in wanted}
    return [child for child in children if (type(child).resource.kind, child.name) not in names]


def with_condition(conditions: Sequence[Json], type_: str, status: str, reason: str, now: datetime) -> list[Json]:
    """Conditions with one of them set; one that says the same already keeps its time."""
    existing = next((condition for condition in conditions if condition.get("type") == type_), None)
    if existing is not None and (existing.get("status"), existing.get("reason")) == (status, reason):
        return list(conditions)
    fresh = {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": rfc3339(now)}
    return [*(condition for condition in conditions if condition.get("type") != type_), fresh]


def has_condition(status: Json, *types: str) -> bool:
    """Whether one of these conditions is True."""
    conditions = status.get("conditions") or ()
    return any(condition.get("type") in types and condition.get("status") == "True" for condition in conditions)


def child_metadata(owner: Object, name: str, **more: Json) -> Json:
    """The metadata of a child that its owner controls."""
    return {"name": name, "namespace": owner.namespace, "ownerReferences": [controller_reference(owner)], **more}


def labelled(body: Json, labels: Mapping[str, str]) -> Json:
    """An object with more labels."""
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def count(value: Any, default: int) -> int:
    """A number of replicas, or its default where none is said."""
    return int(value) if value is not None else default


def check_size(children: int) -> None:
    """Refuse an object with more children than a stand-in can build."""
    if children > MOST_CHILDREN:
        raise ValueError(f"{children} pods or jobs; a stand-in creates at most {MOST_CHILDREN} for one object")


def exit_code(pod: Pod) -> int:
    """The largest exit code of a pod's containers."""
    ends = (status.state.terminated for status in pod.status.container_statuses)
    return max((end.exit_code for end in ends if end is not None), default=0)


def restarts(pods: Iterable[Pod]) -> int:
    """How often containers of these pods were started again."""
    return sum(status.restart_count for pod in pods for status in pod.status.container_statuses)
