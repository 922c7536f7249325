"""GPUs of pods and nodes: how many a pod asks for, what it shares, and which devices it has."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spinney.answers.model import PodGpus
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.numbers import whole_number
from spinney.api.pod_state import is_finished
from spinney.scheduler.intake.cluster_objects import node_spec
from spinney.scheduler.state.specs import GpuRequest


def gpus_of(pod: Pod, request: GpuRequest, gpu_memory: int = 0) -> PodGpus:
    """What a pod asks for; memory counts as a part of a device of `gpu_memory` MiB, and as nothing if that is 0."""
    count = amount(request, gpu_memory)
    visible = _visible(pod)
    indices = [index for part in visible.split(",") if (index := whole_number(part)) is not None] if visible else []
    if request.whole or not (request.portion or request.memory):
        return PodGpus(count=count, indices=indices)
    if request.portion:
        return PodGpus(count=count, fraction=request.portion, indices=indices)
    fraction = part_of(request.memory, gpu_memory) or None
    return PodGpus(count=count, fraction=fraction, memory=request.memory, indices=indices)


def amount(request: GpuRequest, gpu_memory: int = 0) -> float:
    """How many GPUs a request is for, in parts of one; memory as in `gpus_of`."""
    if request.whole:
        return float(request.whole)
    if request.portion:
        return request.portion * request.devices
    if request.memory:
        return part_of(request.memory, gpu_memory) * request.devices
    return float(sum(count for _, count in request.mig))


def part_of(memory: int, gpu_memory: int) -> float:
    """So much memory as a part of a device, in hundredths."""
    return math.ceil(memory / gpu_memory * 100) / 100 if gpu_memory else 0.0


def memory_of_gpus(node: Node | None) -> int:
    """The memory of each of a node's GPUs in MiB."""
    return node_spec(node).gpu_memory if node is not None else 0


def smallest_memory(nodes: Iterable[Node]) -> int:
    """The memory of the smallest GPU around, which a share by memory is counted against before it has a node."""
    return min((memory for node in nodes if has_gpus(node) and (memory := memory_of_gpus(node))), default=0)


def has_gpus(node: Node) -> bool:
    """Whether a node has GPUs at all."""
    return node_gpus(node) > 0


def node_gpus(node: Node) -> float:
    """How many GPUs a node has for pods."""
    return float(node_spec(node).allocatable.get(labels.GPU_RESOURCE, 0.0))


def holds_resources(pod: Pod) -> bool:
    """Whether a pod takes room on a node."""
    return bool(pod.spec.node_name) and not is_finished(pod)


def _visible(pod: Pod) -> str:
    """The devices that a pod's own environment variables name."""
    if index := pod.metadata.annotations.get(labels.RESERVED_GPU):
        return index
    values = (
        env.value
        for container in pod.spec.containers
        for env in container.env
        if env.name == labels.ENV_VISIBLE_DEVICES
    )
    return next(values, "")
