"""A cluster as answers see it: plain collections of typed objects, and what the scheduler would do next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeVar

from spinney.answers.gpus import node_gpus
from spinney.answers.model import Unread, WorkloadRef
from spinney.api import labels
from spinney.api.core import Event, Node, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import BindRequest, PodGroup, Queue, Topology
from spinney.api.meta import Key, Object, Resource
from spinney.api.podgang import PodGang
from spinney.api.requests import pod_requests
from spinney.api.scheduling import PriorityClass
from spinney.api.times import rfc3339_micro
from spinney.api.untyped import Untyped
from spinney.scheduler.config import Config
from spinney.scheduler.intake.cluster_objects import node_spec
from spinney.scheduler.intake.pod_tasks import gpu_request
from spinney.scheduler.plan import Plan
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import GpuRequest, TaskSpec

T = TypeVar("T", bound=Object)


class Picture(Protocol):
    """Everything that a state was made of."""

    def tasks_of(self, pods: Iterable[Pod], objects: Mapping[Resource, Sequence[Any]]) -> list[TaskSpec]:
        """What pods that are not there yet would be to the scheduler, beside objects that come with them."""

    def volume_nodes(self, pods: Iterable[Pod]) -> dict[str, frozenset[str]]:
        """The nodes that the volumes of placed pods would keep their successors to, by UID of the pod."""


@dataclass(frozen=True)
class Schedule:
    """The scheduler's state of a shard, and the plan of its next cycle."""

    state: State
    plan: Plan
    config: Config = field(default_factory=Config)
    scheduler_name: str = labels.KAI_SCHEDULER
    picture: Picture | None = None

    @cached_property
    def decided(self) -> Mapping[str, frozenset[str]]:
        """What the plan does with each gang that it does something with: bind, wait or evict."""
        kinds: dict[str, set[str]] = defaultdict(set)
        for decision in self.plan.decisions:
            kinds[decision.job].add(decision.kind)
        return {key: frozenset(done) for key, done in kinds.items()}


@dataclass(frozen=True)
class Owner:
    """A workload and its object; None where that may not be read, or is gone."""

    ref: WorkloadRef
    uid: str
    object: Object | None = None


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What was read of a cluster at a moment; `partial` names what could not be."""

    now: datetime
    pods: Collection[Pod] = ()
    nodes: Collection[Node] = ()
    queues: Collection[Queue] = ()
    groups: Collection[PodGroup] = ()
    gangs: Collection[PodGang] = ()
    sets: Collection[PodCliqueSet] = ()
    cliques: Collection[PodClique] = ()
    # Workloads of all other kinds, and what stands between them and their pods.
    owners: Collection[Untyped] = ()
    classes: Collection[PriorityClass] = ()
    topologies: Collection[Topology] = ()
    bind_requests: Collection[BindRequest] = ()
    # What claims of new pods are made from: storage classes, free volumes, and templates of resource claims.
    claim_sources: Collection[Object] = ()
    events: Collection[Event] = ()
    # None where too little may be read to plan.
    schedule: Schedule | None = None
    partial: Sequence[Unread] = ()
    # The namespace that was read where not all may be; empty for all.
    namespace: str = ""

    @cached_property
    def node_of(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def gpu_memory_of(self) -> Mapping[str, int]:
        """The memory of each of a node's GPUs in MiB, by node."""
        return {node.name: node_spec(node).gpu_memory for node in self.nodes}

    @cached_property
    def group_of(self) -> Mapping[Key, PodGroup]:
        """PodGroups by namespace and name."""
        return _by_key(self.groups)

    @cached_property
    def gang_of(self) -> Mapping[Key, PodGang]:
        """PodGangs by namespace and name."""
        return _by_key(self.gangs)

    @cached_property
    def set_of(self) -> Mapping[Key, PodCliqueSet]:
        """PodCliqueSets by namespace and name."""
        return _by_key(self.sets)

    @cached_property
    def clique_of(self) -> Mapping[Key, PodClique]:
        """PodCliques by namespace and name."""
        return _by_key(self.cliques)

    @cached_property
    def pod_of(self) -> Mapping[Key, Pod]:
        """Pods by namespace and name."""
        return _by_key(self.pods)

    @cached_property
    def by_uid(self) -> Mapping[str, Object]:
        """Owners of pods, of any kind, by UID."""
        owners: Iterable[Object] = (*self.owners, *self.sets, *self.cliques, *self.gangs)
        return {owner.uid: owner for owner in owners if owner.uid}

    @cached_property
    def below(self) -> Mapping[Key, Sequence[Object]]:
        """Owners of pods by the namespace and UID of what owns them in turn; an owner is in the same namespace."""
        children: dict[Key, list[Object]] = defaultdict(list)
        for item in self.by_uid.values():
            for reference in item.metadata.owner_references:
                children[item.namespace, reference.uid].append(item)
        return children

    @cached_property
    def owner_above(self) -> dict[tuple[str, str], Owner]:
        """The workloads of pods that were found so far, by namespace and UID of what owns a pod."""
        return {}

    def gpus_asked(self, pod: Pod) -> GpuRequest:
        """What a pod asks of GPUs, claimed ones included; read only once where the scheduler's state has it."""
        task = self.schedule.state.tasks.get(pod.uid) if self.schedule is not None else None
        if task is None:
            return gpu_request(pod, pod_requests(pod.spec))
        claimed = sum(
            claim.count for claim in task.spec.claims if not claim.shared or self._counted_at[claim.claim] == pod.uid
        )
        return replace(task.spec.gpu, whole=task.spec.gpu.whole + claimed) if claimed else task.spec.gpu

    @cached_property
    def _counted_at(self) -> Mapping[str, str]:
        """The pod, by UID, at which the devices of a claim that pods share are counted: once in all."""
        tasks = self.schedule.state.tasks if self.schedule is not None else {}
        return {claim.claim: uid for uid in sorted(tasks, reverse=True) for claim in tasks[uid].spec.claims}

    def gpus_on(self, node: Node) -> float:
        """How many GPUs a node has for pods: those of its device plugin, and those in resource slices."""
        nodes = self.schedule.state.nodes if self.schedule is not None else None
        row = nodes.rows.get(node.name) if nodes is not None else None
        spec = nodes.specs[row] if nodes is not None and row is not None else None
        return node_gpus(node) + (spec.dra_gpus if spec is not None else 0)

    @cached_property
    def groups_of_owner(self) -> Mapping[Key, Sequence[PodGroup]]:
        """PodGroups by the namespace and UID of what owns them."""
        groups: dict[Key, list[PodGroup]] = defaultdict(list)
        for group in self.groups:
            for reference in group.metadata.owner_references:
                groups[group.namespace, reference.uid].append(group)
        return groups

    @cached_property
    def events_of(self) -> Mapping[Key, Sequence[Event]]:
        """Events by the namespace and UID of what they are about, oldest first; an event may name any UID."""
        events: dict[Key, list[Event]] = defaultdict(list)
        for event in sorted(self.events, key=moment_of):
            events[event.namespace, event.involved_object.uid].append(event)
        return events

    @cached_property
    def levels(self) -> Sequence[str]:
        """Node label keys of the topology with the most levels, widest first, without the node itself."""
        topologies = sorted(self.topologies, key=lambda topology: (-len(topology.spec.levels), topology.name))
        if not topologies:
            return ()
        keys = [level.node_label for level in topologies[0].spec.levels]
        return [key for key in keys if key != labels.HOSTNAME]

    def domain_of(self, node: str) -> dict[str, str]:
        """The domains of a node, by level."""
        live = self.node_of.get(node)
        if live is None:
            return {}
        return {key: live.metadata.labels[key] for key in self.levels if key in live.metadata.labels}

    def unread(self, kind: str) -> str:
        """Why a kind could not be read; empty if it was."""
        return next((refusal.text for refusal in self.partial if refusal.kind == kind), "")


def moment_of(event: Event) -> str:
    """When an event happened last, in a form that sorts."""
    at = event.last_timestamp or event.event_time or event.first_timestamp or event.metadata.creation_timestamp
    return rfc3339_micro(at) if at is not None else ""


def _by_key(objects: Iterable[T]) -> dict[Key, T]:
    return {item.key: item for item in objects}
