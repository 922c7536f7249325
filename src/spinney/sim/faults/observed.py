"""The cluster as an observer sees it: the objects that the rules look at, kept current event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

from spinney.api import labels
from spinney.api.core import Event as CoreEvent
from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import BindRequest, Config, PodGroup, Queue
from spinney.api.meta import Key, Object, decode
from spinney.api.podgang import PodGang
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests
from spinney.api.resource import ResourceClaim
from spinney.embedded.apiserver.store.store import Event, Item, Store

T = TypeVar("T", bound=Object)

KINDS: tuple[type[Object], ...] = (
    Pod,
    Node,
    PodGang,
    PodGroup,
    Queue,
    Config,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    BindRequest,
    CoreEvent,
    ResourceClaim,
)
_BY_TABLE = {f"{kind.resource.group}/{kind.resource.plural}": kind for kind in KINDS}
TERMINAL = ("Succeeded", "Failed")


class Observed:
    """Objects by kind and key, and the owners of every object."""

    def __init__(self) -> None:
        self._objects: dict[type[Object], dict[Key, Object]] = {kind: {} for kind in KINDS}
        # Every object of any kind by UID: its name, the UIDs of its owners, and whether it is being deleted.
        self.everything: dict[str, tuple[str, tuple[str, ...], bool]] = {}
        # By PodGroup: when the state of a pod that waited for a node last changed.
        self.waited: dict[Key, float] = {}

    def of(self, kind: type[T]) -> Iterator[T]:
        """The objects of a kind."""
        return iter(cast(list[T], list(self._objects[kind].values())))

    def get(self, kind: type[T], key: Key) -> T | None:
        """One object."""
        return cast(T | None, self._objects[kind].get(key))

    def put(self, item: Object, owners: Iterable[str] = ()) -> None:
        """Add or replace an object."""
        self._objects[type(item)][item.key] = item
        going = item.metadata.deletion_timestamp is not None
        self.everything[item.uid] = (f"{item.resource.kind} {item.name}", tuple(owners), going)

    def follow(self, store: Store) -> None:
        """Read a store, and every write to it from now on."""
        for name, table in store.tables.items():
            for item in table.items.values():
                self.apply(name, Event(item.version, item, None))

    def apply(self, table: str, event: Event) -> Object | None:
        """Apply one write; the object, where the rules look at its kind."""
        item = event.new
        if event.deleted:
            self.everything.pop(item.uid, None)
        else:
            self.everything[item.uid] = (f"{table} {item.key}", item.owners, item.going)
        kind = _BY_TABLE.get(table)
        if kind is None:
            return None
        live = self._objects[kind]
        before = live.get(_key(item))
        if isinstance(before, Pod) and is_waiting(before):
            self.waited[group_key(before)] = asyncio.get_running_loop().time()
        if event.deleted:
            live.pop(_key(item), None)
            return None
        live[_key(item)] = typed = decode(kind, item.body)
        return typed


def _key(item: Item) -> Key:
    return item.namespace, item.name


def is_live(pod: Pod) -> bool:
    """Whether a pod neither ended nor is being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in TERMINAL


def is_waiting(pod: Pod) -> bool:
    """Whether a pod waits for a node."""
    return is_live(pod) and not pod.spec.node_name


def group_key(pod: Pod) -> Key:
    """The key of the PodGroup that a pod names."""
    return pod.namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")


def holds_resources(pod: Pod) -> bool:
    """Whether a pod takes up room on its node: bound, and not ended; also while it is being deleted."""
    return bool(pod.spec.node_name) and pod.status.phase not in TERMINAL


def wanted(pod: Pod) -> dict[str, int]:
    """What a pod takes up, in thousandths of each unit; shares of GPUs are held by reservation pods."""
    return {**pod_requests(pod.spec), "pods": 1000}


def fraction(pod: Pod) -> int:
    """The thousandths of a shared GPU that a pod has."""
    return milli(pod.metadata.annotations.get(labels.GPU_FRACTION, "0"))


def shared_gpus(pod: Pod) -> set[str]:
    """The shared GPUs that a pod has a part of."""
    return {value for key, value in pod.metadata.labels.items() if key.startswith(labels.GPU_GROUP)}


def gpus(pod: Pod) -> int:
    """The thousandths of GPUs that a pod's queue is charged with."""
    return pod_requests(pod.spec).get(labels.GPU_RESOURCE, 0) + fraction(pod)


def queues_are_counted(seen: Observed) -> bool:
    """Whether the queue controller is switched on; without it the status of queues stays empty."""
    service = (config.spec.queue_controller and config.spec.queue_controller.service for config in seen.of(Config))
    return not any(each and each.enabled is False for each in service)


def is_reservation(pod: Pod) -> bool:
    """Whether a pod only holds a GPU that others share."""
    return "gpu-reservation" in pod.name


def is_ready(pod: Pod) -> bool:
    """Whether a pod's Ready condition is True."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
