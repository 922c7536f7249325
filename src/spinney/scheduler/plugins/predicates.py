"""Where a task may run: node conditions, taints, selectors, GPU kinds, pod slots and rules between pods."""

from __future__ import annotations

from collections import Counter

import numpy as np

from spinney.api.affinity import tolerates
from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.task_placement import choose_gpus, fits_now
from spinney.scheduler.plugins import pod_affinity
from spinney.scheduler.state import status as st
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.problems import NodeRefusal, OverLimit, OverQuota
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import Constraints, NodeSpec
from spinney.scheduler.state.tasks import PODS, Task, TaskClass, Triple

_NODE_AFFINITY = Refusal(Code.NODE_AFFINITY)
_VOLUME_AFFINITY = Refusal(Code.VOLUME_AFFINITY)
_MEMORY_UNKNOWN = Refusal(Code.GPU_MEMORY_UNKNOWN)
_MEMORY_TOO_SMALL = Refusal(Code.GPU_MEMORY)


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Check everything that Kubernetes' own scheduler would, as far as gangs and queues need it."""
    state = cycle.state
    legacy = {task.node for task in state.legacy_mig.values() if task.node >= 0}
    version = cycle.nodes.version

    def refused(cls: TaskClass, row: int) -> NodeRefusal | None:
        return refusal(cycle.nodes.spec(row), cls, row in legacy)

    def mask(cls: TaskClass) -> Mask:
        if not legacy and cls.mask is not None and cls.mask[0] == version:
            return cls.mask[1]
        allowed = np.zeros(len(cycle.nodes.live), dtype=np.bool_)
        for row in cycle.all_rows:
            allowed[row] = refused(cls, int(row)) is None
        if not legacy:
            cls.mask = (version, allowed)
        return allowed

    cycle.hooks.class_masks.append(mask)
    cycle.hooks.class_refusals.append(refused)
    if cycle.config.workers is not None:
        _restrict(cycle, *cycle.config.workers)
    cycle.hooks.task_refusals.append(lambda task, row: _beyond_capacity(cycle, task, row))
    cycle.hooks.task_masks.append(lambda task, rows: _within_capacity(cycle, task, rows))
    cycle.hooks.task_masks.append(lambda task, rows: _pod_slots(cycle, task, rows))
    cycle.hooks.task_masks.append(lambda task, rows: pod_affinity.mask(cycle, task, rows))
    cycle.hooks.task_masks.append(lambda task, rows: _attachable(cycle, task, rows))


def _restrict(cycle: Cycle, cpu_worker: str, gpu_worker: str) -> None:
    """Keep tasks off nodes that are not marked as workers of their kind (`restrict-node-scheduling`)."""
    marked = {label: cycle.nodes.codes(label) >= 0 for label in (cpu_worker, gpu_worker)}

    def mask(cls: TaskClass) -> Mask:
        return marked[cpu_worker if cls.cpu_only else gpu_worker]

    def refused(cls: TaskClass, row: int) -> Refusal | None:
        return None if mask(cls)[row] else Refusal(Code.WORKER_KIND, "CPU" if cls.cpu_only else "GPU")

    cycle.hooks.class_masks.append(mask)
    cycle.hooks.class_refusals.append(refused)


def refusal(node: NodeSpec, cls: TaskClass, legacy_mig: bool = False) -> NodeRefusal | None:
    """Why a node does not take tasks of a class, whatever is free on it; None if it does."""
    if cls.constraints.impossible is not None:
        return cls.constraints.impossible
    if (kind := _gpu_kind(node, cls, legacy_mig)) is not None:
        return kind
    # Before what is wrong with the node: to mend that helps no pod which may not run there anyway.
    if not cls.constraints.selects(node):
        return _NODE_AFFINITY
    return node.blocked or _placement_rules(node, cls.constraints) or _memory(node, cls)


def _memory(node: NodeSpec, cls: TaskClass) -> Refusal | None:
    if cls.memory and not node.gpu_memory_known:
        return _MEMORY_UNKNOWN
    # A share of several devices has its part on each of them.
    too_large = cls.shared and cls.memory_on(node.gpu_memory) > node.gpu_memory
    return _MEMORY_TOO_SMALL if too_large else None


def _gpu_kind(node: NodeSpec, cls: TaskClass, legacy_mig: bool) -> Refusal | None:
    mig = bool(cls.gpu.mig)
    if cls.gpu.legacy_mig:
        return Refusal(Code.MIG_BY_ANNOTATION)
    if cls.cpu_only:
        return None
    if node.dra_gpus and cls.shared:
        return Refusal(Code.SHARED_ON_CLAIMED_GPUS)
    if not node.mig_enabled:
        return Refusal(Code.MIG_ON_PLAIN_NODE) if mig else None
    if mig and legacy_mig:
        return Refusal(Code.MIG_BY_ANNOTATION_ON_NODE)
    if node.mig == "single" and (mig or cls.shared):
        return Refusal(Code.MIG_SINGLE)
    if node.mig == "mixed" and not mig:
        return Refusal(Code.MIG_MIXED)
    return None


def _placement_rules(node: NodeSpec, rules: Constraints) -> Refusal | None:
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(rules.tolerations, taint):
            return Refusal(Code.TAINT, taint.key, taint.value)
    if rules.volume_nodes is not None and node.name not in rules.volume_nodes:
        return _VOLUME_AFFINITY
    return None


def _within_capacity(cycle: Cycle, task: Task, rows: Rows) -> tuple[Mask, None] | None:
    """GPU memory is worth more of a GPU on one node than on another, and the queue is charged for that."""
    if not task.cls.shared or task.job is None or not cycle.hooks.queue_limits:
        return None
    memories = cycle.nodes.gpu_memory[rows]
    mask = np.ones(len(rows), dtype=np.bool_)
    for memory in set(memories.tolist()):
        if _over_limit(cycle, task, memory) is not None:
            mask &= memories != memory
    return mask, None


def _over_limit(cycle: Cycle, task: Task, memory: int) -> OverLimit | OverQuota | None:
    """Why the task's queue may not be charged for it on a node whose GPUs have so much memory."""
    if not task.cls.shared or task.job is None:
        return None
    answers = (limit(task.job, _charged_on(task, memory)) for limit in cycle.hooks.queue_limits)
    return next((problem for problem in answers if problem is not None), None)


def _beyond_capacity(cycle: Cycle, task: Task, row: int) -> OverLimit | OverQuota | None:
    return _over_limit(cycle, task, int(cycle.nodes.gpu_memory[row]))


def _charged_on(task: Task, memory: int) -> Triple:
    part = float(np.ceil(task.cls.memory_on(memory) / memory * 100) / 100)
    return (task.cls.triple[0], task.cls.triple[1], task.cls.devices * part)


def _attachable(cycle: Cycle, task: Task, rows: Rows) -> tuple[Mask, Refusal] | None:
    """Nodes that can attach a task's volumes; a volume that is attached already is not counted again."""
    if not task.spec.volumes:
        return None
    attached: dict[int, set[tuple[str, str]]] = {}
    leaving: dict[int, set[tuple[str, str]]] = {}
    for other in cycle.state.with_volumes.values():
        if other is not task and other.node >= 0 and other.status & st.USED:
            # A task that the trial evicts is gone by then; a terminating pod keeps its volumes until it ends.
            table = leaving if _evicted_in_trial(other) else attached
            table.setdefault(other.node, set()).update(other.spec.volumes)
    for name, volumes in cycle.state.attached.items():
        row = cycle.nodes.rows.get(name)
        if row is not None:
            attached.setdefault(row, set()).update(volumes - leaving.get(row, set()))
    volumes_of_task = frozenset(task.spec.volumes)
    allowed = [_takes(cycle.nodes.spec(row), volumes_of_task, attached.get(int(row), set())) for row in rows]
    return np.array(allowed, dtype=np.bool_), Refusal(Code.VOLUME_COUNT)


def _evicted_in_trial(task: Task) -> bool:
    return task.status == st.RELEASING and task.virtual


def _takes(node: NodeSpec, volumes: frozenset[tuple[str, str]], attached: set[tuple[str, str]]) -> bool:
    if not node.volume_limits:
        return True
    counts = Counter(driver for driver, _ in volumes | attached)
    return all(counts[driver] <= node.volume_limits.get(driver, counts[driver]) for driver, _ in volumes)


def _pod_slots(cycle: Cycle, task: Task, rows: Rows) -> tuple[Mask, Refusal] | None:
    """A task that opens a GPU for sharing needs a second slot, for the pod that reserves the GPU."""
    if not task.cls.shared:
        # One slot is part of every request.
        return None
    slots = cycle.nodes.idle[rows, PODS] + cycle.nodes.releasing[rows, PODS]
    scarce = np.flatnonzero(slots < 2)
    if not len(scarce):
        return None
    mask = np.ones(len(rows), dtype=np.bool_)
    for position in scarce:
        mask[position] = not _opens_gpu(cycle, task, int(rows[position]))
    return mask, Refusal(Code.POD_SLOTS)


def _opens_gpu(cycle: Cycle, task: Task, row: int) -> bool:
    chosen = choose_gpus(cycle, task, row, fits_now(cycle, task.cls, row))
    return chosen is None or any((row, group) not in cycle.state.gpus.index for group in chosen[0])
