"""GPUs of pods and nodes: how many a pod asks for, what it shares, and which devices it has."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spinney.answers.model import PodGpus
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.numbers import whole_number
from spinney.api.requests import pod_requests
from spinney.scheduler.intake.cluster_objects import node_spec
from spinney.scheduler.intake.pod_tasks import gpu_request

_ENDED = ("Succeeded", "Failed")


def gpus_of(pod: Pod, gpu_memory: int = 0) -> PodGpus:
    """What a pod asks for; memory counts as a part of a device of `gpu_memory` MiB, and as nothing if that is 0."""
    request = gpu_request(pod, pod_requests(pod.spec))
    indices = [index for part in _visible(pod).split(",") if (index := whole_number(part)) is not None]
    if request.whole:
        return PodGpus(count=float(request.whole), indices=indices)
    if request.portion:
        return PodGpus(count=request.portion * request.devices, fraction=request.portion, indices=indices)
    if request.memory:
        part = math.ceil(request.memory / gpu_memory * 100) / 100 if gpu_memory else 0.0
        return PodGpus(count=part * request.devices, fraction=part or None, memory=request.memory, indices=indices)
    return PodGpus(count=float(sum(count for _, count in request.mig)), indices=indices)


def amount(pod: Pod, gpu_memory: int = 0) -> float:
    """How many GPUs a pod asks for, in parts of one."""
    return gpus_of(pod, gpu_memory).count


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
    return bool(pod.spec.node_name) and pod.status.phase not in _ENDED


def has_ended(pod: Pod) -> bool:
    """Whether a pod has succeeded or failed."""
    return pod.status.phase in _ENDED


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
