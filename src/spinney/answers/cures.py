"""Remove a blocker in a trial, by the change that the advice about it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spinney.answers.whatif.trial import Trial
from spinney.api import labels
from spinney.api.affinity import Toleration
from spinney.api.missing import Missing
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import (
    NoDomain,
    NoQueue,
    NoRoom,
    NotReady,
    OverLimit,
    OverQuota,
    Problem,
    UnknownTopology,
)
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import GroupSpec, NodeSpec, QueueSpec, Share, TaskSpec, TopologySpec
from spinney.scheduler.why.advice import code_of, is_too_large
from spinney.scheduler.why.blocker import deciding_refusal

_UNLIMITED = Share(-1.0, -1.0, 1.0)
_RESOURCES = ("cpu", "memory", "gpu")
# Resources of new nodes beside what the pods ask for.
_POD_SLOTS = 110.0


def remove_blocker(trial: Trial, problem: Problem, key: str) -> bool:
    """Make the change that the advice about a problem names; False if no change can help."""
    job = trial.state.jobs[key]
    match problem:
        case OverLimit() | OverQuota():
            return _raise_bound(trial, problem)
        case NoQueue():
            return _make_queue(trial, problem, job)
        case UnknownTopology(topology, level):
            return _make_topology(trial, topology, level, job)
        case NotReady(ready, required, _):
            return _release(trial, job, required - ready)
        case NoRoom():
            return _make_room(trial, problem, job)
        case NoDomain():
            return _grow_domain(trial, problem, job)
        case _:
            return False


def _raise_bound(trial: Trial, problem: OverLimit | OverQuota) -> bool:
    spec = trial.state.queue_specs.get(problem.queue)
    if spec is None:
        return False
    name = _RESOURCES[problem.resource]
    share: Share = getattr(spec, name)
    if isinstance(problem, OverLimit):
        share = replace(share, limit=problem.limit + problem.short)
    else:
        share = replace(share, quota=problem.quota + problem.short)
    changed: dict[str, Any] = {name: share}
    trial.set_queue(replace(spec, **changed))
    return True


def _make_queue(trial: Trial, problem: NoQueue, job: Job) -> bool:
    if not problem.has_children:
        name = problem.missing or problem.queue
        trial.set_queue(QueueSpec(name=name, cpu=_UNLIMITED, memory=_UNLIMITED, gpu=_UNLIMITED))
        return True
    queues = trial.state.queues
    below = (
        name
        for name, number in queues.index.items()
        if queues.leaf(number) and problem.queue in [queues.names[above] for above in queues.path[number]]
    )
    leaf = next(below, "")
    if leaf:
        trial.set_job(replace(job.spec, queue=leaf))
    return bool(leaf)


def _make_topology(trial: Trial, topology: str, level: str, job: Job) -> bool:
    existing = trial.state.topologies.get(topology)
    wanted = level or next((level for level in _required_levels(job.spec.tree)), "")
    if wanted:
        trial.set_topology(TopologySpec(topology, (*(existing.levels if existing else ()), (wanted, ""))))
    return bool(wanted)


def _required_levels(tree: GroupSpec) -> list[str]:
    own = [tree.constraint.required or tree.constraint.preferred] if tree.constraint is not None else []
    return own + [level for member in tree.members for level in _required_levels(member)]


def _release(trial: Trial, job: Job, more: int) -> bool:
    """Take scheduling gates off; where too few pods exist, add copies of one."""
    specs = [task.spec for task in job.all_tasks()]
    gated = [spec for spec in specs if spec.status == st.GATED]
    for spec in gated:
        trial.set_task(replace(spec, status=st.PENDING))
    if not specs:
        return False
    for number in range(max(more - len(gated), 0)):
        trial.set_task(replace(specs[0], uid=f"{specs[0].uid}+{number}", status=st.PENDING, node=""))
    return True


def _make_room(trial: Trial, problem: NoRoom, job: Job) -> bool:
    refusal = deciding_refusal(problem)
    match refusal:
        case Missing():
            return _change_rules(trial, job, impossible=None)
        case OverLimit() | OverQuota():
            return _raise_bound(trial, refusal)
        case Refusal() if code_of(refusal) in _CURES and not is_too_large(problem):
            return _CURES[code_of(refusal)](trial, job, refusal)
        case _:
            return _add_nodes(trial, job, max(problem.required - problem.found, 1), _model(trial, job))


def _tolerate(trial: Trial, job: Job, refusal: Refusal) -> bool:
    toleration = Toleration(key=refusal.subject, operator="Exists")
    for spec in _pending(job):
        rules = spec.constraints
        trial.set_task(replace(spec, constraints=replace(rules, tolerations=(*rules.tolerations, toleration))))
    return True


def _relax_nodes(trial: Trial, job: Job, _: Refusal) -> bool:
    return _change_rules(trial, job, node_selector=(), node_affinity=None)


def _relax_neighbours(trial: Trial, job: Job, _: Refusal) -> bool:
    return _change_rules(trial, job, affinity=(), anti_affinity=(), spread=(), host_ports=())


def _unblock(trial: Trial, job: Job, refusal: Refusal) -> bool:
    blocked = [node for node in trial.nodes if node.blocked is not None and node.blocked.code == refusal.code]
    for node in blocked:
        trial.set_node(replace(node, blocked=None, ready=True))
    return bool(blocked)


def _mark_workers(trial: Trial, job: Job, refusal: Refusal) -> bool:
    key = labels.GPU_WORKER if refusal.subject == "GPU" else labels.CPU_WORKER
    for node in trial.nodes:
        trial.set_node(replace(node, labels={**node.labels, key: ""}))
    return True


def _add_pod_slots(trial: Trial, job: Job, _: Refusal) -> bool:
    for node in trial.nodes:
        more = node.allocatable.get("pods", 0.0) + len(job.all_tasks())
        trial.set_node(replace(node, allocatable={**node.allocatable, "pods": more}))
    return True


def _tell_gpu_memory(trial: Trial, job: Job, _: Refusal) -> bool:
    most = max(spec.gpu.memory for spec in _pending(job))
    for node in trial.nodes:
        if not node.gpu_memory_known:
            trial.set_node(replace(node, gpu_memory=max(most, node.gpu_memory), gpu_memory_known=True))
    return True


_CURES: dict[Code, Callable[[Trial, Job, Refusal], bool]] = {
    Code.TAINT: _tolerate,
    Code.NODE_AFFINITY: _relax_nodes,
    Code.POD_AFFINITY: _relax_neighbours,
    Code.NODE_UNSCHEDULABLE: _unblock,
    Code.NODE_NOT_READY: _unblock,
    Code.NODE_PRESSURE: _unblock,
    Code.WORKER_KIND: _mark_workers,
    Code.POD_SLOTS: _add_pod_slots,
    Code.GPU_MEMORY_UNKNOWN: _tell_gpu_memory,
}


def _grow_domain(trial: Trial, problem: NoDomain, job: Job) -> bool:
    if not problem.domain:
        return _label_nodes(trial, problem)
    return _add_nodes(trial, job, problem.tasks - max(problem.best, 0), _node_in(trial, problem))


def _label_nodes(trial: Trial, problem: NoDomain) -> bool:
    topology = trial.state.topologies.get(problem.constraint.topology)
    keys = [label for label, _ in topology.levels] if topology is not None else [problem.constraint.required]
    wanted = {key: "new" for key in keys if key != labels.HOSTNAME}
    for node in trial.nodes:
        trial.set_node(replace(node, labels={**wanted, **node.labels}))
    return True


def _node_in(trial: Trial, problem: NoDomain) -> NodeSpec | None:
    """A node of the domain that the advice names."""
    domains = trial.state.domains(problem.constraint.topology)
    if domains is None:
        return None
    level = max(domains.level(problem.constraint.required), 0)
    for node in trial.nodes:
        code = int(domains.codes[level, trial.state.nodes.rows[node.name]])
        if code >= 0 and domains.ids[level][code] == problem.domain:
            return node
    return None


def _model(trial: Trial, job: Job) -> NodeSpec | None:
    """A node that the waiting pods may run on by their selectors, else any; new nodes are made like it."""
    pending, nodes = _pending(job), trial.nodes
    chosen = [node for node in nodes if all(spec.constraints.selects(node) for spec in pending)] or nodes
    return next((node for node in chosen if not node.taints), chosen[0] if chosen else None)


def _add_nodes(trial: Trial, job: Job, count: int, model: NodeSpec | None) -> bool:
    """Add empty nodes like a model, one for each pod that found no place, large enough for any pod of the gang."""
    model = model or NodeSpec(name="", allocatable={})
    amounts = dict(model.allocatable)
    for resource, amount in _needs(job).items():
        amounts[resource] = max(amounts.get(resource, 0.0), amount)
    for _ in range(count):
        name = f"new-{len(trial.state.nodes.rows)}"
        own_labels = {**model.labels, labels.HOSTNAME: name}
        trial.set_node(replace(model, name=name, allocatable=amounts, labels=own_labels, blocked=None, ready=True))
    return count > 0


def _needs(job: Job) -> dict[str, float]:
    """The most that any pod of the gang asks of each resource."""
    needed = {"pods": _POD_SLOTS}
    for task in job.all_tasks():
        gpus = float(max(task.spec.gpu.whole, task.spec.gpu.devices if task.cls.shared else 0))
        for name, amount in {**task.spec.request, labels.GPU_RESOURCE: gpus}.items():
            needed[name] = max(needed.get(name, 0.0), amount)
    return needed


def _pending(job: Job) -> list[TaskSpec]:
    return [task.spec for task in job.all_tasks() if task.status == st.PENDING]


def _change_rules(trial: Trial, job: Job, **rules: Any) -> bool:
    """Change constraints of the gang's waiting pods."""
    for spec in _pending(job):
        trial.set_task(replace(spec, constraints=replace(spec.constraints, **rules)))
    return True
