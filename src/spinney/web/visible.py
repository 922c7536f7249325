"""What a user sees of a row: all of it, a part, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from spinney.answers.model import Amounts, Answer, Event, Eviction, Gpu, Node, Queue, Unread, Workload, WorkloadTree
from spinney.api import core, kai, reasons
from spinney.api.meta import Resource
from spinney.web.rights import Scope
from spinney.web.rows import RowKind, Rows

PODS = core.Pod.resource
NODES = core.Node.resource
EVENTS = core.Event.resource
QUEUES = kai.Queue.resource
# The kinds that access reviews ask about for every user, beside the kinds of workloads.
RESOURCES = (PODS, NODES, EVENTS, QUEUES)
# API version and kind → where it is served.
WorkloadKinds = Mapping[tuple[str, str], Resource]


def visible(rows: Rows, scope: Scope, kinds: WorkloadKinds) -> Iterable[tuple[str, Answer]]:
    """The rows of one kind as a user may see them."""
    if scope.everything:
        yield from rows.items()
        return
    for key, row in rows.items():
        seen = _seen(row, scope, kinds)
        if seen is not None:
            yield key, seen


def unread(kind: RowKind, scope: Scope, namespaces: Iterable[str]) -> list[Unread]:
    """What is missing from rows of a kind for want of rights, in words."""
    if scope.everything:
        return []
    if kind == "nodes" and not scope.allows(NODES):
        return [Unread(kind="nodes", text="You may not list nodes.")]
    if kind == "queues":
        return [] if scope.allows(QUEUES) else [Unread(kind="queues", text="You may not list queues.")]
    resource = EVENTS if kind in ("events", "evictions") else PODS
    hidden = sum(not scope.allows(resource, namespace) for namespace in namespaces)
    if scope.allows(resource) or not hidden:
        return []
    consequence = " GPUs that their pods use appear as free." if kind == "nodes" else ""
    noun = "namespace" if hidden == 1 else "namespaces"
    return [Unread(kind=resource.plural, text=f"You may not list {resource.plural} in {hidden} {noun}.{consequence}")]


def _seen(row: Answer, scope: Scope, kinds: WorkloadKinds) -> Answer | None:
    if isinstance(row, Workload):
        resource = kinds.get((row.ref.api_version, row.ref.kind))
        readable = resource is not None and scope.allows(resource, row.ref.namespace)
        return row if readable and scope.allows(PODS, row.ref.namespace) else None
    if isinstance(row, Node):
        return _node(row, scope) if scope.allows(NODES) else None
    if isinstance(row, Queue):
        return row if scope.allows(QUEUES) else None
    if isinstance(row, Eviction):
        return _eviction(row, scope) if scope.allows(EVENTS, namespace_of(row)) else None
    if isinstance(row, Event):
        return row if _may_read(row, scope) else None
    return None


def visible_tree(tree: WorkloadTree, scope: Scope) -> WorkloadTree:
    """A workload's tree without the events that a user may not list."""
    if scope.everything:
        return tree
    return msgspec.structs.replace(tree, events=[event for event in tree.events if _may_read(event, scope)])


def _may_read(event: Event, scope: Scope) -> bool:
    """Whether a user may read an event; an eviction names another workload, so it needs the right to list all pods."""
    return scope.allows(EVENTS, event.namespace) and (event.reason != reasons.EVICT or scope.allows(PODS))


def namespace_of(row: Eviction | Event) -> str:
    """The namespace of an event; an eviction names its pod as `namespace/name`."""
    return row.namespace if isinstance(row, Event) else row.pod.partition("/")[0]


def _eviction(row: Eviction, scope: Scope) -> Eviction:
    """An eviction, without the workload it made room for where the user may not list pods of its namespace."""
    by = row.by_workload
    if by is None or scope.allows(PODS, by.namespace):
        return row
    return msgspec.structs.replace(row, by_workload=None, text=f"Its place was given to queue {row.by_queue or '?'}")


def _node(node: Node, scope: Scope) -> Node:
    """A node with the pods that a user may list, and no amount that would reveal the others."""
    if scope.allows(PODS):
        return node
    gpus = [_gpu(gpu, scope) for gpu in node.gpus]
    pods = {(sharer.namespace, sharer.pod) for gpu in gpus for sharer in gpu.sharers}
    used = sum(gpu.used for gpu in gpus)
    unknown = Amounts(gpu=used, cpu=None, memory=None)
    return msgspec.structs.replace(node, gpus=gpus, pods=len(pods), allocated=unknown)


def _gpu(gpu: Gpu, scope: Scope) -> Gpu:
    sharers = [sharer for sharer in gpu.sharers if scope.allows(PODS, sharer.namespace)]
    return Gpu(index=gpu.index, sharers=sharers, used=sum(sharer.fraction for sharer in sharers))
