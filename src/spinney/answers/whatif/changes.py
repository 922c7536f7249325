"""What a what-if may change: the JSON that asks for one, and a sentence about each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from spinney.answers.model import Answer
from spinney.api.manifest import objects_in
from spinney.api.numbers import number
from spinney.api.yaml_reader import YamlError


class ChangeError(ValueError):
    """A change that names something unknown, or gives it a wrong value."""


class Create(Answer, frozen=True, tag_field="type", tag="create"):
    """Create workloads of any kind; queues, nodes, priority classes and topologies may come with them."""

    objects: Sequence[dict[str, Any]] = ()
    # The same as YAML; read when a request is.
    manifest: str = ""


class AddNodes(Answer, frozen=True, tag_field="type", tag="addNodes"):
    """Add nodes; what is not said is as on the nodes with as many GPUs that are there already."""

    count: int
    gpus: int
    # Cores, and bytes of memory.
    cpu: float | None = None
    memory: float | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class RemoveNode(Answer, frozen=True, tag_field="type", tag="removeNode"):
    """Take a node away at once; its pods are lost, and come back where a controller creates them again."""

    node: str


class DrainNode(Answer, frozen=True, tag_field="type", tag="drainNode"):
    """Cordon a node and evict its pods."""

    node: str


class SetQuota(Answer, frozen=True, tag_field="type", tag="setQuota"):
    """Give a queue another quota of GPUs; None is unlimited."""

    queue: str
    gpus: float | None


class SetLimit(Answer, frozen=True, tag_field="type", tag="setLimit"):
    """Give a queue another limit of GPUs; None is unlimited."""

    queue: str
    gpus: float | None


class SetPriority(Answer, frozen=True, tag_field="type", tag="setPriority"):
    """Give a workload, `[kind/]name`, another priority: the name of a PriorityClass, or a number."""

    workload: str
    priority: str
    namespace: str = "default"


class SetConfig(Answer, frozen=True, tag_field="type", tag="setConfig"):
    """Run the scheduler with another configuration file, given as plain data."""

    config: dict[str, Any]


Change = Create | AddNodes | RemoveNode | DrainNode | SetQuota | SetLimit | SetPriority | SetConfig


class WhatIfRequest(Answer, frozen=True):
    """What to change, all at once, in this order."""

    changes: Sequence[Change]


def read_request(body: bytes) -> WhatIfRequest:
    """A request from JSON; a wrong one is a `ChangeError` that names the field."""
    try:
        request = msgspec.json.decode(body, type=WhatIfRequest)
    except msgspec.DecodeError as error:
        raise ChangeError(str(error)) from error
    return WhatIfRequest(changes=[_read(change) for change in request.changes])


def _read(change: Change) -> Change:
    """A change with the objects of its manifest."""
    if not isinstance(change, Create):
        return change
    try:
        objects = [*change.objects, *objects_in(change.manifest)]
    except YamlError as error:
        raise ChangeError(f"the manifest is not YAML: {' '.join(str(error).split())}") from error
    if not objects:
        raise ChangeError("the manifest has no object in it: paste the YAML of a workload")
    return Create(objects=objects)


def sentence_of(change: Change) -> str:
    """A change in words, for example `drain node node-3`."""
    match change:
        case Create(objects=objects):
            return f"create {', '.join(map(_name, objects)) or 'nothing'}"
        case AddNodes(count=count, gpus=gpus):
            return f"add {count} node{'s' if count != 1 else ''} with {gpus} GPUs"
        case RemoveNode(node=node):
            return f"remove node {node}"
        case DrainNode(node=node):
            return f"drain node {node}"
        case SetQuota(queue=queue, gpus=gpus):
            return f"set the GPU quota of queue {queue} to {_bound(gpus)}"
        case SetLimit(queue=queue, gpus=gpus):
            return f"set the GPU limit of queue {queue} to {_bound(gpus)}"
        case SetPriority(workload=workload, priority=priority):
            return f"set the priority of {workload} to {priority}"
        case SetConfig():
            return "use another scheduler configuration"


def _bound(gpus: float | None) -> str:
    return "unlimited" if gpus is None or gpus < 0 else number(gpus)


def _name(item: dict[str, Any]) -> str:
    metadata = item.get("metadata")
    name = metadata.get("name") or metadata.get("generateName", "?") if isinstance(metadata, dict) else "?"
    return f"{str(item.get('kind', '?')).lower()}/{name}"
