"""Apply the changes of a what-if to a copy of the scheduler's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.finding import find, split
from spinney.answers.whatif.changes import (
    AddNodes,
    Change,
    ChangeError,
    Create,
    DrainNode,
    RemoveNode,
    SetConfig,
    SetLimit,
    SetPriority,
    SetQuota,
)
from spinney.answers.whatif.trial import Trial
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import PodGroup, Queue, Topology
from spinney.api.meta import Json, Object, ObjectMeta, Resource, convert
from spinney.api.numbers import whole_number
from spinney.api.podgang import PodGang
from spinney.api.schedulerfile import SchedulerFile
from spinney.api.scheduling import PriorityClass
from spinney.api.untyped import Untyped
from spinney.scheduler.config import Config, ConfigError
from spinney.scheduler.intake.cluster_objects import job_spec, node_spec, queue_spec, topology_spec
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.intake.pod_tasks import task_spec
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import NodeSpec, Share, TaskSpec

_CORES_PER_GPU = 16.0
_BYTES_PER_GPU = 128.0 * (1 << 30)
_POD_SLOTS = 110.0


@dataclass
class Created:
    """What workloads of a manifest come to: the objects that controllers would create for them."""

    pods: list[Pod] = field(default_factory=list)
    groups: list[PodGroup] = field(default_factory=list)
    gangs: list[PodGang] = field(default_factory=list)
    sets: list[PodCliqueSet] = field(default_factory=list)
    cliques: list[PodClique] = field(default_factory=list)
    owners: list[Untyped] = field(default_factory=list)
    # Claims and volumes that come with the pods, by kind.
    beside: dict[Resource, list[Object]] = field(default_factory=dict)
    # What is assumed about them, since only the cluster itself knows.
    assumed: list[str] = field(default_factory=list)


# Turns documents of workloads into what controllers would create; a wrong one is a `ChangeError`.
Expand = Callable[[Cluster, Sequence[Json]], Created]


def refuse_workloads(cluster: Cluster, documents: Sequence[Json]) -> Created:
    """An `Expand` that knows no workload."""
    raise ChangeError("workloads cannot be tried here")


@dataclass
class Applied:
    """The cluster with the changes, its configuration, and the tasks that leave their nodes at once."""

    cluster: Cluster
    config: Config
    # Tasks by why they leave: drain, or node-removed.
    leaving: dict[str, str] = field(default_factory=dict)
    # What the answer rests on, since only the cluster itself knows.
    assumed: list[str] = field(default_factory=list)


class Applier:
    """Applies changes one after the other to a trial."""

    def __init__(self, cluster: Cluster, schedule: Schedule, trial: Trial, expand: Expand) -> None:
        self._schedule = schedule
        self._trial = trial
        self._expand = expand
        self.result = Applied(cluster, schedule.config)

    def apply(self, change: Change) -> None:
        """Make one change; one that names something unknown is a `ChangeError`."""
        match change:
            case Create(objects=objects):
                self._create(objects)
            case AddNodes():
                self._add_nodes(change)
            case RemoveNode(node=name):
                self._leave(name, "node-removed")
                self._trial.drop_node(self._node(name).name)
            case DrainNode(node=name):
                # Nodes that are not ready do not count in fair shares.
                self._trial.set_node(replace(self._node(name), blocked=Refusal(Code.NODE_UNSCHEDULABLE), ready=False))
                self._leave(name, "drain")
            case SetQuota(queue=queue, gpus=gpus):
                self._set_share(queue, quota=_bound(gpus))
            case SetLimit(queue=queue, gpus=gpus):
                self._set_share(queue, limit=_bound(gpus))
            case SetPriority():
                self._set_priority(change)
            case SetConfig(config=config):
                self.result.config = _config(config, self._schedule.config)
                self._trial.set_flat(not self.result.config.full_hierarchy)

    def _set_share(self, name: str, **bounds: float) -> None:
        spec = self._trial.state.queue_specs.get(name)
        if spec is None:
            raise ChangeError(f"there is no queue {name}; there are {_names(self._trial.state.queue_specs)}")
        share: Share = replace(spec.gpu, **bounds)
        self._trial.set_queue(replace(spec, gpu=share))

    def _node(self, name: str) -> NodeSpec:
        row = self._trial.state.nodes.rows.get(name)
        spec = self._trial.state.nodes.specs[row] if row is not None else None
        if spec is None:
            raise ChangeError(f"there is no node {name}; there are {_names(self._trial.state.nodes.rows)}")
        return spec

    def _leave(self, name: str, why: str) -> None:
        """Let the pods of a node leave it, apart from those that belong to the node."""
        self._node(name)
        own = {pod.uid for pod in self.result.cluster.pods if _belongs_to_node(pod)}
        for uid, task in self._trial.state.tasks.items():
            if task.spec.node == name and (why == "node-removed" or uid not in own):
                self.result.leaving[uid] = why

    def _add_nodes(self, change: AddNodes) -> None:
        if change.count < 1 or change.gpus < 0:
            raise ChangeError(f"{change.count} nodes with {change.gpus} GPUs: at least one node, and no less than none")
        if any(task.spec.constraints.volume_nodes is not None for task in self._trial.state.tasks.values()):
            self.result.assumed.append("new nodes are out of reach of volumes that are tied to nodes")
        pattern = self._pattern(change)
        number = 0
        for _ in range(change.count):
            while f"new-{number}" in self._trial.state.nodes.rows:
                number += 1
            name = f"new-{number}"
            self._trial.set_node(
                replace(pattern, name=name, labels={**pattern.labels, **change.labels, labels.HOSTNAME: name})
            )

    def _pattern(self, change: AddNodes) -> NodeSpec:
        """The commonest kind of node with as many GPUs; without the domains that it stands in."""
        gpus = float(change.gpus)
        alike = [spec for spec in self._trial.nodes if spec.allocatable.get(labels.GPU_RESOURCE, 0.0) == gpus]
        sizes = Counter(tuple(sorted(spec.allocatable.items())) for spec in alike)
        allocatable = dict(sizes.most_common(1)[0][0]) if sizes else {}
        spec = next((each for each in alike if dict(each.allocatable) == allocatable), NodeSpec("", {}))
        size = max(gpus, 1.0)
        fresh = {"cpu": _CORES_PER_GPU * 1000 * size, "memory": _BYTES_PER_GPU * size, "pods": _POD_SLOTS}
        allocatable = {**fresh, **allocatable, labels.GPU_RESOURCE: gpus}
        if change.cpu is not None:
            allocatable["cpu"] = change.cpu * 1000
        if change.memory is not None:
            allocatable["memory"] = change.memory
        domains = {key for topology in self._trial.state.topologies.values() for key, _ in topology.levels}
        kept = {key: value for key, value in spec.labels.items() if key not in domains}
        return replace(spec, allocatable=allocatable, labels=kept, blocked=None, ready=True, taints=())

    def _set_priority(self, change: SetPriority) -> None:
        cluster = self.result.cluster
        kind, name = split(change.workload)
        workloads = find(cluster, kind, name, change.namespace)
        groups = [group for each in workloads for group in each.parts.groups]
        if not groups:
            raise ChangeError(f"there is no gang of {change.workload} in namespace {change.namespace}")
        priority_class = _class(cluster, change.priority)
        for group in groups:
            spec = msgspec.structs.replace(group.spec, priority_class_name=priority_class.name)
            wanted = job_spec(msgspec.structs.replace(group, spec=spec), [priority_class], self._trial.state.topologies)
            job = self._trial.state.jobs.get(wanted.key)
            if job is not None:
                self._trial.set_job(
                    replace(
                        job.spec, priority=wanted.priority, preemptible=wanted.preemptible, preempts=wanted.preempts
                    )
                )

    def _create(self, documents: Sequence[Json]) -> None:
        workloads = [document for document in documents if not self._create_beside(document)]
        if not workloads:
            return
        cluster = self.result.cluster
        created = self._expand(cluster, workloads)
        self.result.cluster = replace(
            cluster,
            pods=[*cluster.pods, *created.pods],
            groups=[*cluster.groups, *created.groups],
            gangs=[*cluster.gangs, *created.gangs],
            sets=[*cluster.sets, *created.sets],
            cliques=[*cluster.cliques, *created.cliques],
            owners=[*cluster.owners, *created.owners],
        )
        self.result.assumed += created.assumed
        state = self._trial.state
        for group in created.groups:
            self._trial.set_job(job_spec(group, self.result.cluster.classes, state.topologies))
        ours = [pod for pod in created.pods if pod.spec.scheduler_name == self._schedule.scheduler_name]
        for task in self._tasks(ours, created):
            self._trial.set_task(task)

    def _tasks(self, pods: Sequence[Pod], created: Created) -> list[TaskSpec]:
        if self._schedule.picture is None:
            return [task_spec(pod, None, self.result.cluster.now) for pod in pods]
        return self._schedule.picture.tasks_of(pods, created.beside)

    def _create_beside(self, document: Json) -> bool:
        """Create what is no workload; False if the document is one."""
        version, kind = document.get("apiVersion"), document.get("kind")
        types: tuple[type[Object], ...] = (Queue, Node, PriorityClass, Topology)
        of = next((each for each in types if (each.resource.api_version, each.resource.kind) == (version, kind)), None)
        if of is None:
            return False
        try:
            made = convert(of, document)
        except msgspec.ValidationError as error:
            raise ChangeError(f"{kind} {document.get('metadata', {}).get('name', '')}: {error}") from error
        match made:
            case Queue():
                self._trial.set_queue(queue_spec(made))
            case Node():
                self._trial.set_node(node_spec(made))
            case Topology():
                self._trial.set_topology(topology_spec(made))
            case PriorityClass():
                classes = [*self.result.cluster.classes, made]
                self.result.cluster = replace(self.result.cluster, classes=classes)
        return True


def _belongs_to_node(pod: Pod) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references)


def _class(cluster: Cluster, text: str) -> PriorityClass:
    """The PriorityClass of that name, else one that has the number."""
    existing = next((each for each in cluster.classes if each.name == text), None)
    if existing is not None:
        return existing
    number = whole_number(text.removeprefix("-"))
    if number is None:
        existing_names = _names(each.name for each in cluster.classes)
        raise ChangeError(f"{text!r} is neither a number nor a PriorityClass; there are {existing_names}")
    return PriorityClass(metadata=ObjectMeta(name=text), value=-number if text.startswith("-") else number)


def _config(data: dict[str, Any], current: Config) -> Config:
    try:
        config = from_file(convert(SchedulerFile, data))
    except (ConfigError, msgspec.ValidationError) as error:
        raise ChangeError(f"the configuration: {error}") from error
    own = [plugin for plugin in current.plugins if plugin.name == "reflectjoborder"]
    return replace(config, plugins=(*config.plugins, *(plugin for plugin in own if plugin not in config.plugins)))


def _bound(gpus: float | None) -> float:
    return -1.0 if gpus is None or gpus < 0 else gpus


def _names(names: Iterable[str]) -> str:
    listed = sorted(names)
    shown = ", ".join(listed[:8]) or "none"
    return f"{shown} and {len(listed) - 8} more" if len(listed) > 8 else shown
