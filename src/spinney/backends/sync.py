"""Makes the objects of one scheduler be what its backend wants: the one place that writes them."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from spinney.api.meta import Json, Object, Resource
from spinney.backends.capabilities import Loss
from spinney.backends.interface import Wanted
from spinney.backends.plan import Step, dropped, plan_object
from spinney.backends.served import Served
from spinney.backends.stored import Stored, stored
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError, Conflict, NotFound
from spinney.kube.runtime import Runtime

_log = structlog.get_logger("spinney.backends.sync")

_OWNER = "owner"


class Blocked(Exception):
    """A wanted object cannot be there for now; the message says why."""


class Targets:
    """The caches of one backend's kinds, and the writes to them."""

    def __init__(self, runtime: Runtime, resources: Sequence[Resource]) -> None:
        self._client: Client = runtime.client
        self._caches = runtime.caches
        self._resources = resources
        self.watched: dict[Resource, Cache[Stored]] = {}

    def serve(self, served: Served) -> list[Cache[Stored]]:
        """Watch what has come to be served; returns the new caches."""
        new = [resource for resource in self._resources if served.has(resource) and resource not in self.watched]
        for resource in new:
            self.watched[resource] = self._caches.of(stored(resource))
            self.watched[resource].index(_OWNER, _owner_uids)
        return [self.watched[resource] for resource in new]

    def all(self, resource: Resource) -> list[Json]:
        """Every object of a kind, as plain data."""
        cache = self.watched.get(resource)
        return [found.plain() for found in cache] if cache is not None else []

    async def sync(self, owner: Object, objects: Sequence[Wanted]) -> tuple[list[Json], tuple[Loss, ...], list[str]]:
        """Write what differs and remove what the owner no longer wants.

        Returns the objects as they are now, what the API server dropped of them, and differences that must stay.
        """
        found: list[Json] = []
        losses: list[Loss] = []
        reports: list[str] = []
        for wanted in objects:
            live = await self._settled(wanted, reports)
            losses += dropped(wanted, live)
            found.append(live)
        await self._prune(owner, objects)
        return found, tuple(dict.fromkeys(losses)), reports

    async def _settled(self, wanted: Wanted, reports: list[str]) -> Json:
        known = self.watched[wanted.resource].get((wanted.namespace, wanted.name))
        live = known.plain() if known is not None else None
        step = plan_object(wanted, live)
        if step is None:
            assert live is not None
            return live
        if step.act == "report":
            reports.append(step.why)
            assert live is not None
            return live
        return await self._apply(step)

    async def _apply(self, step: Step) -> Json:
        wanted = step.wanted
        if step.act == "wait":
            raise Blocked(step.why)
        if step.act == "patch":
            return await self._client.patch(wanted.resource, (wanted.namespace, wanted.name), step.body)
        if step.act == "replace":
            await self._client.delete(wanted.resource, (wanted.namespace, wanted.name))
        return await self._client.create(wanted.resource, step.body, wanted.namespace)

    async def _prune(self, owner: Object, objects: Sequence[Wanted]) -> None:
        # By kind and not by version: a server may show one object under several versions.
        kept = {(wanted.resource.group, wanted.resource.kind, wanted.name) for wanted in objects}
        for resource, cache in self.watched.items():
            for extra in cache.by(_OWNER, owner.uid):
                known = (resource.group, resource.kind, extra.name)
                if known not in kept and extra.metadata.deletion_timestamp is None:
                    await self.remove(resource, extra)

    def owned_by(self, uid: str) -> list[tuple[Resource, Stored]]:
        """What is there that has this owner and no other, and is not on its way out."""
        return [
            (resource, found)
            for resource, cache in self.watched.items()
            for found in cache.by(_OWNER, uid)
            if _owner_uids(found) == (uid,) and found.metadata.deletion_timestamp is None
        ]

    async def clear(self, uid: str) -> None:
        """Delete what an owner that is gone left behind, unless it got another since; what we may not, others will."""
        for resource, found in self.owned_by(uid):
            version = found.metadata.resource_version
            try:
                await self._client.delete(resource, found.key, uid=found.uid, resource_version=version)
            except Conflict:
                # Changed since we looked: somebody may have adopted it.
                raise
            except NotFound:
                continue
            except ApiError as error:
                _log.info("left.behind", kind=resource.kind, name=found.name, error=str(error))

    async def remove(self, resource: Resource, extra: Stored) -> None:
        """Delete this very object."""
        try:
            await self._client.delete(resource, extra.key, uid=extra.uid)
        except NotFound:
            pass


def _owner_uids(found: Stored) -> tuple[str, ...]:
    return tuple(owner.uid for owner in found.metadata.owner_references)
