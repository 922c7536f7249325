"""The objects of one scheduler: watch them, bring them to what its backend wants, and prune."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from spinney.api.meta import Json, Key, Object, Resource
from spinney.api.podgang import PodGang
from spinney.api.untyped import Untyped, untyped
from spinney.backends.capabilities import Loss
from spinney.backends.served import Served
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.desired import Step, Wanted, plan, plan_pruning
from spinney.kube.errors import ApiError, Conflict
from spinney.kube.runtime import Runtime
from spinney.kube.writer import Writer

_log = structlog.get_logger("spinney.backends.sync")

_OWNER = "owner"


class Targets:
    """The caches of one backend's kinds, and the writes to them."""

    def __init__(self, runtime: Runtime, resources: Sequence[Resource]) -> None:
        self._writer = Writer(runtime.client)
        self._caches = runtime.caches
        self._resources = resources
        self.watched: dict[Resource, Cache[Untyped]] = {}

    def serve(self, served: Served) -> list[Cache[Untyped]]:
        """Watch the resources that are served by now; return the new caches."""
        new = [resource for resource in self._resources if served.has(resource) and resource not in self.watched]
        for resource in new:
            self.watched[resource] = self._caches.of(untyped(resource))
            self.watched[resource].index(_OWNER, _owner_uids)
        return [self.watched[resource] for resource in new]

    def all(self, resource: Resource | None) -> list[Json]:
        """Every object of a kind, as plain data."""
        cache = self.watched.get(resource) if resource is not None else None
        return [live.plain() for live in cache] if cache is not None else []

    async def sync(self, owner: Object, objects: Sequence[Wanted]) -> tuple[list[Json], tuple[Loss, ...], list[str]]:
        """Write what differs and remove what the owner no longer wants.

        Returns the objects as they are now, what the API server dropped of them, and differences that must stay.
        """
        current: list[Json] = []
        losses: list[Loss] = []
        reports: list[str] = []
        for wanted in objects:
            live = await self._synced(wanted, reports)
            losses += dropped(wanted, live)
            current.append(live)
        for step in plan_pruning(objects, self._owned(owner.uid)):
            await self._writer.apply(step)
        return current, tuple(dict.fromkeys(losses)), reports

    async def _synced(self, wanted: Wanted, reports: list[str]) -> Json:
        cached = self.watched[wanted.resource].get(wanted.key)
        live = cached.plain() if cached is not None else None
        step = plan(wanted, live)
        if step is not None:
            live = await self._writer.apply(step) or live
            reports += [step.why] if step.act == "report" else []
        assert live is not None
        return live

    def _owned(self, uid: str) -> list[tuple[Resource, Untyped]]:
        return [(resource, live) for resource, cache in self.watched.items() for live in cache.by(_OWNER, uid)]

    def owned_by(self, uid: str) -> list[tuple[Resource, Untyped]]:
        """The objects with this owner and no other that are not being deleted."""
        return [
            (resource, live)
            for resource, live in self._owned(uid)
            if _owner_uids(live) == (uid,) and live.metadata.deletion_timestamp is None
        ]

    async def clear(self, uid: str) -> None:
        """Delete what an owner that is gone left behind, unless it was adopted; skip what we have no right to."""
        for resource, live in self.owned_by(uid):
            step = Step("delete", resource, live.key, uid=live.uid, resource_version=live.metadata.resource_version)
            try:
                await self._writer.apply(step)
            except Conflict:
                # Changed since we read it: somebody may have adopted it.
                raise
            except ApiError as error:
                _log.info("left.behind", kind=resource.kind, name=live.name, error=str(error))


class Leftovers:
    """Deletes the objects of gangs that are gone, ahead of Kubernetes' garbage collector.

    The collector makes twenty requests a second for the whole cluster. It still deletes, by owner reference, what is
    missed here because no controller ran or none was allowed to.
    """

    def __init__(self, gangs: Cache[PodGang], targets: Targets, wake: Callable[[str, str], None]) -> None:
        """`gangs` holds those of all backends: a gang that only lost our label is not gone."""
        self._targets = targets
        self._wake = wake
        self._uids: dict[Key, list[str]] = {}
        gangs.on_change(self._changed)

    def _changed(self, change: Change[PodGang]) -> None:
        gang = change.object
        if change.new is None and self._targets.owned_by(gang.uid):
            self._uids.setdefault((gang.namespace, gang.name), []).append(gang.uid)
            self._wake(gang.namespace, gang.name)

    async def clear(self, key: Key) -> None:
        """Delete what gangs of this name left behind."""
        while uids := self._uids.get(key):
            await self._targets.clear(uids[0])
            uids.pop(0)
        self._uids.pop(key, None)


def dropped(wanted: Wanted, live: Json) -> tuple[Loss, ...]:
    """What is lost because the API server dropped gated fields when it stored the object."""
    spec, requested = live.get("spec") or {}, wanted.body.get("spec") or {}
    return tuple(
        loss for key, loss in wanted.gated.items() if loss is not None and requested.get(key) and not spec.get(key)
    )


def _owner_uids(live: Untyped) -> tuple[str, ...]:
    return tuple(owner.uid for owner in live.metadata.owner_references)
