"""Watch caches of everything that answers are computed from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from spinney.answers.model import Unread
from spinney.answers.reading import Objects
from spinney.api.core import ConfigMap, Event
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Object, Resource
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.api.workloads import GROUPED
from spinney.kube.caches.cache import Cache
from spinney.kube.client.discovery import Discovery
from spinney.kube.runtime import Runtime
from spinney.scheduler.intake.snapshot import KINDS
from spinney.scheduler.service.views import ConfigMapName

# Of ConfigMaps only the names are read: their content may be confidential.
TYPED: tuple[type[Object], ...] = (
    *(ConfigMapName if kind is ConfigMap else kind for kind in KINDS.values()),
    PodGang,
    PodCliqueSet,
    PodClique,
    Event,
)
# Stands between a set and some of its cliques.
_SCALING_GROUP = (PodCliqueScalingGroup.resource.api_version, PodCliqueScalingGroup.resource.kind)
_FIRST_LISTS_SECONDS = 10.0


class Watching:
    """Follows every kind that the cluster serves."""

    def __init__(self, runtime: Runtime, changed: Callable[[], None]) -> None:
        self._runtime = runtime
        self._changed = changed
        self._caches: dict[Resource, Cache[Object]] = {}

    async def start(self) -> None:
        """Begin to watch; returns once the first lists are here, or some do not come."""
        discovery = Discovery(self._runtime.client)
        for kind in TYPED:
            if await discovery.resource(kind.resource.api_version, kind.resource.kind) is not None:
                self._watch(kind)
        for api_version, name in (*GROUPED, _SCALING_GROUP):
            resource = await discovery.resource(api_version, name)
            if resource is not None and resource not in self._caches:
                self._watch(untyped(resource))
        first = [asyncio.ensure_future(cache.synced()) for cache in self._caches.values()]
        await asyncio.wait(first, timeout=_FIRST_LISTS_SECONDS)
        for each in first:
            each.cancel()

    def objects(self) -> Objects:
        """Everything now, as lists of their own: caches go on changing while answers are computed."""
        lists = {resource: list(cache) for resource, cache in self._caches.items()}
        return Objects(lists=lists, partial=[*self.missing()])

    def missing(self) -> tuple[Unread, ...]:
        """Kinds that could not be listed so far."""
        return tuple(
            Unread(
                kind=resource.kind,
                text=f"{resource.kind} objects cannot be read: the dashboard's account may lack the right to list "
                f"{resource.plural}",
            )
            for resource, cache in self._caches.items()
            if not cache.has_synced
        )

    def _watch(self, kind: type[Object]) -> None:
        cache = self._caches[kind.resource] = self._runtime.caches.of(kind)
        cache.on_change(lambda _: self._changed())
