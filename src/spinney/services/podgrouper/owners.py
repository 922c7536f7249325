"""The owners of pods: read once, then watched by kind."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from spinney.api.core import Pod
from spinney.api.meta import Json, Key, OwnerReference, Resource
from spinney.api.untyped import Untyped, untyped
from spinney.kube.caches.cache import Cache, Caches, Change
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.errors import Forbidden
from spinney.services.podgrouper.grouping import GroupingError

# How long a kind counts as not served.
_UNSERVED_SECONDS = 60.0


class Owners:
    """Reads owners of any kind, and has their pods reconciled when one changes."""

    def __init__(self, client: Client, caches: Caches, enqueue: Callable[[Key], None]) -> None:
        self._client = client
        self._caches = caches
        self._enqueue = enqueue
        self._discovery = Discovery(client)
        self._followed: dict[Resource, Cache[Untyped]] = {}
        self._unserved_until: dict[tuple[str, str], float] = {}
        # Owner's UID → pods below it, and back.
        self._below: dict[str, set[Key]] = defaultdict(set)
        self._above: dict[Key, set[str]] = defaultdict(set)

    async def chain(self, pod: Pod) -> tuple[Json, ...]:
        """The pod's owners, from the nearest up; ends where reading is forbidden."""
        owners: list[Json] = []
        references = pod.metadata.owner_references
        holder = f"pod {pod.name}"
        while references:
            reference = _to_follow(references, holder)
            try:
                owner = await self._owner(reference, pod.namespace)
            except Forbidden:
                break
            self.depends(pod.key, reference.uid)
            owners.append(owner)
            references = msgspec.convert(owner["metadata"].get("ownerReferences") or (), tuple[OwnerReference, ...])
            holder = f"{reference.kind} {reference.name}"
        return tuple(owners)

    def depends(self, pod: Key, uid: str) -> None:
        """Reconcile the pod again when this object changes."""
        self._below[uid].add(pod)
        self._above[pod].add(uid)

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        """One object as plain data, or None where it does not exist or its kind is not served."""
        resource = await self._discovery.resource(api_version, kind)
        if resource is None:
            return None
        if not resource.namespaced:
            namespace = ""
        cache = self._followed.get(resource)
        if cache is not None and cache.has_synced and (cached := cache.get((namespace, name))) is not None:
            return cached.plain()
        # Not cached yet, or just created, or not allowed to be watched: read it.
        document = await self._client.find(resource, (namespace, name))
        if document is not None:
            self._follow(resource)
        return document

    async def all(self, api_version: str, kind: str, labels: dict[str, str]) -> list[Json]:
        """All objects of a kind with these labels; none where the kind is not served or forbidden."""
        now = asyncio.get_running_loop().time()
        if now < self._unserved_until.get((api_version, kind), 0.0):
            return []
        resource = await self._discovery.resource(api_version, kind)
        if resource is None:
            self._unserved_until[api_version, kind] = now + _UNSERVED_SECONDS
            return []
        cache = self._followed.get(resource)
        if cache is not None and cache.has_synced:
            return [each.plain() for each in cache if labels.items() <= each.metadata.labels.items()]
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        try:
            listed = await self._client.list(untyped(resource), labels=selector)
        except Forbidden:
            return []
        self._follow(resource, self._reconcile_all)
        return [each.plain() for each in listed.items]

    def _reconcile_all(self, change: Change[Any]) -> None:
        """Reconcile all pods: a description of kinds changed."""
        if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
            return
        for key in {key for pods in self._below.values() for key in pods}:
            self._enqueue(key)

    def forget(self, key: Key) -> None:
        """Forget a deleted pod."""
        for uid in self._above.pop(key, ()):
            pods = self._below.get(uid, set())
            pods.discard(key)
            if not pods:
                self._below.pop(uid, None)

    async def _owner(self, reference: OwnerReference, namespace: str) -> Json:
        if await self._discovery.resource(reference.api_version, reference.kind) is None:
            raise GroupingError(f"{reference.kind} {reference.name}: {reference.api_version} is not served")
        owner = await self.get(reference.api_version, reference.kind, namespace, reference.name)
        if owner is None:
            raise GroupingError(f"{reference.kind} {reference.name} is not there any more")
        if owner["metadata"].get("uid") != reference.uid:
            raise GroupingError(
                f"{reference.kind} {reference.name} is another one by now: UID {owner['metadata']['uid']}"
            )
        return owner

    def _follow(self, resource: Resource, changed: Callable[[Change[Any]], None] | None = None) -> None:
        if resource in self._followed:
            return
        cache = self._caches.of(untyped(resource))
        self._followed[resource] = cache
        cache.on_change(changed or self._changed)

    def _changed(self, change: Change[Any]) -> None:
        old, new = change.old, change.new
        if new is None:
            self._below.pop(change.object.uid, None)
            return
        if old is None or _is_unchanged(old, new):
            return
        for key in self._below.get(new.uid, ()):
            self._enqueue(key)


def _is_unchanged(old: Untyped, new: Untyped) -> bool:
    """Whether no field changed that a rule reads; in a status that is only the name of a Ray cluster."""
    if old.metadata.labels != new.metadata.labels or old.metadata.annotations != new.metadata.annotations:
        return False
    return old.spec == new.spec and _named_clusters(old.status) == _named_clusters(new.status)


def _named_clusters(status: Json) -> list[Any]:
    holders = (status, status.get("activeServiceStatus") or {}, status.get("pendingServiceStatus") or {})
    return [holder.get("rayClusterName") for holder in holders]


def _to_follow(references: tuple[OwnerReference, ...], holder: str) -> OwnerReference:
    """The owner to follow: the only one, or the controller."""
    if len(references) == 1:
        return references[0]
    controllers = [reference for reference in references if reference.controller]
    if len(controllers) == 1:
        return controllers[0]
    raise GroupingError(f"{holder} has {len(references)} owners and not one that controls it")
