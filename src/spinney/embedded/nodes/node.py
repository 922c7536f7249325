"""Simulated nodes in the API: registration, conditions and leases."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable
from datetime import datetime

from spinney.api.conditions import find
from spinney.api.coordination import Lease
from spinney.api.core import Node
from spinney.api.labels import NODE_STATE
from spinney.api.meta import Json, Key
from spinney.api.times import rfc3339, rfc3339_micro
from spinney.embedded.controllers.writes import ConditionRow
from spinney.embedded.nodes.profile import Profile, is_simulated
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.runtime import Runtime

# Values of the state annotation; without it, a node is Ready.
NOT_READY = "NotReady"
UNREACHABLE = "Unreachable"

# How long a kubelet may be silent before its node becomes unreachable.
GRACE_SECONDS = 50.0

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_FAILING = ("Ready", "False", "KubeletNotReady", "the node was told to be not ready")
_SILENT = ("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

# The capacity of a node that a user created without one.
_DEFAULT_CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110"}


def has_kubelet(node: Node) -> bool:
    """Whether the node's simulated kubelet works."""
    return is_simulated(node.metadata.annotations) and NODE_STATE not in node.metadata.annotations


def host_address(node: Node) -> str:
    """The node's InternalIP, or an address derived from its name."""
    internal = next((address.address for address in node.status.addresses if address.type == "InternalIP"), "")
    return internal or _address_for(node.name)


def _address_for(name: str) -> str:
    number = zlib.crc32(name.encode())
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


def _ready(state: str | None) -> ConditionRow:
    """The Ready condition for a state; an unknown state is reported as such."""
    if state is None:
        return _READY
    if state == NOT_READY:
        return _FAILING
    text = f"annotation {NODE_STATE} is {state!r}; it must be {NOT_READY} or {UNREACHABLE}"
    return ("Ready", "False", "UnknownState", text)


class Nodes:
    """Registers nodes and writes the status that their state annotation asks for.

    Nothing is written at rest, unless `lease_seconds` enables the heartbeat that a real control plane expects.
    """

    def __init__(self, runtime: Runtime, lease_seconds: float | None = None) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._lease_seconds = lease_seconds
        self._nodes = runtime.caches.of(Node)
        self._silent_since: dict[str, float] = {}
        self.controller = Controller("nodes", runtime, self._reconcile)
        self.controller.watch(self._nodes)

    async def run(self) -> None:
        """Maintain the nodes until cancelled."""
        await self.controller.run()

    async def register(self, profile: Profile) -> int:
        """Create the missing nodes of a profile; returns how many were missing."""
        now = self._clock.now()
        created = 0
        for start in range(0, profile.count, 64):
            indexes = range(start, min(start + 64, profile.count))
            made = await asyncio.gather(*(self.register_one(profile.node(index), now) for index in indexes))
            created += sum(made)
        return created

    async def register_one(self, node: Json, now: datetime | None = None) -> bool:
        """Create one node with its whole status, as a kubelet does; False if there is one of that name."""
        moment = now or self._clock.now()
        name = node["metadata"]["name"]
        status = {**node["status"], **_description(name), "conditions": _conditions(moment, (*_HEALTHY, _READY))}
        try:
            await self._client.create(Node, {**node, "status": status})
        except AlreadyExists:
            return False
        return True

    async def _reconcile(self, key: Key) -> After | None:
        node = self._nodes.get(key[1])
        if node is None or not is_simulated(node.metadata.annotations):
            self._silent_since.pop(key[1], None)
            return None
        now = self._clock.now()
        wanted, wait = self._wanted(node, now.timestamp())
        try:
            patch = plan_status(node, wanted, now)
            if patch is not None:
                await self._client.patch(Node, node.name, patch, kind=Patch.STRATEGIC, subresource="status")
            if self._lease_seconds is not None and NODE_STATE not in node.metadata.annotations:
                await self._renew(node, now)
                return After(self._lease_seconds)
        except NotFound:
            return None
        return After(wait) if wait else None

    def _wanted(self, node: Node, now: float) -> tuple[tuple[ConditionRow, ...], float]:
        """The wanted conditions of a node, and after how many seconds to look again (0: never)."""
        state = node.metadata.annotations.get(NODE_STATE)
        if state != UNREACHABLE:
            self._silent_since.pop(node.name, None)
            return (*_HEALTHY, _ready(state)), 0.0
        left = self._silent_since.setdefault(node.name, now) + GRACE_SECONDS - now
        if left > 0:
            return (), left
        unknown = tuple((type_, *_SILENT[1:]) for type_, *_ in _HEALTHY)
        return (*unknown, _SILENT), 0.0

    async def _renew(self, node: Node, now: datetime) -> None:
        spec = {"holderIdentity": node.name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": rfc3339_micro(now)}
        try:
            await self._client.patch(Lease, (_LEASE_NAMESPACE, node.name), {"spec": spec})
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
            metadata = {"name": node.name, "namespace": _LEASE_NAMESPACE, "ownerReferences": [owner]}
            await self._client.create(Lease, {"metadata": metadata, "spec": spec}, _LEASE_NAMESPACE)


def plan_status(node: Node, wanted: Iterable[ConditionRow], now: datetime) -> Json | None:
    """The patch of a node's status, or None where nothing changes."""
    changed = []
    for type_, status, reason, message in wanted:
        old = find(node.status.conditions, type_)
        if old and old.status == status and old.reason == reason:
            continue
        turned = not old or old.status != status
        changed += _conditions(now, ((type_, status, reason, message),), turned=turned)
    status_patch: Json = {"conditions": changed} if changed else {}
    if not node.status.allocatable:
        capacity = dict(node.status.capacity) or dict(_DEFAULT_CAPACITY)
        status_patch |= {"capacity": capacity, "allocatable": capacity}
    if not node.status.addresses:
        status_patch |= _description(node.name)
    return {"status": status_patch} if status_patch else None


def _conditions(now: datetime, wanted: Iterable[ConditionRow], *, turned: bool = True) -> list[Json]:
    moment = rfc3339(now)
    times = {"lastHeartbeatTime": moment} | ({"lastTransitionTime": moment} if turned else {})
    return [
        {"type": type_, "status": status, "reason": reason, "message": message, **times}
        for type_, status, reason, message in wanted
    ]


def _description(name: str) -> Json:
    return {
        "addresses": [{"type": "InternalIP", "address": _address_for(name)}, {"type": "Hostname", "address": name}],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "sim://1",
            "kernelVersion": "",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.35.4",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "Spinney (simulated)",
            "systemUUID": "",
        },
    }
