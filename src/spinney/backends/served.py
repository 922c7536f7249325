"""Which resources a cluster serves: what a backend may write depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.meta import Object, Resource, Struct
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.errors import ApiError, ConnectionLost
from spinney.kube.runtime import Runtime

# An upgrade of the API server sends no event: look now and then.
_LOOK_SECONDS = 600.0
# A kind is established a little before discovery lists it.
_SETTLE_SECONDS = 2.0


@dataclass(frozen=True)
class Served:
    """The resources that the cluster serves, of those that were asked for."""

    resources: frozenset[Resource] = frozenset()

    def has(self, resource: Resource) -> bool:
        """Whether the cluster serves a resource."""
        return resource in self.resources

    def first(self, *resources: Resource) -> Resource | None:
        """The first of some resources that the cluster serves."""
        return next((resource for resource in resources if resource in self.resources), None)


async def discover(client: Client, resources: Iterable[Resource]) -> Served:
    """Ask the API server which of some resources it serves now; a CRD may come or go between two calls."""
    discovery = Discovery(client)
    wanted = list(dict.fromkeys(resources))
    # One question per API version: the answers for the others are then remembered.
    versions = dict.fromkeys(resource.api_version for resource in wanted)
    await asyncio.gather(*(discovery.serves(version) for version in versions))
    served = [await discovery.resource(resource.api_version, resource.kind) for resource in wanted]
    return Served(frozenset(resource for resource in served if resource is not None))


class _Group(Struct, frozen=True):
    group: str = ""


class _Definition(Object, frozen=True):
    """A definition without its schema, which can be large and does not matter here."""

    resource: ClassVar[Resource] = CustomResourceDefinition.resource

    spec: _Group = _Group()


async def follow(runtime: Runtime, resources: Iterable[Resource], report: Callable[[Served], Awaitable[None]]) -> None:
    """Report what is served whenever a CRD of one of the groups changes; run until cancelled."""
    wanted = tuple(resources)
    groups = {resource.group for resource in wanted}
    changed_event = asyncio.Event()

    def changed(change: Change[_Definition]) -> None:
        if change.object.spec.group in groups:
            changed_event.set()

    runtime.caches.of(_Definition).on_change(changed)
    while wanted:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await changed_event.wait()
        if changed_event.is_set():
            changed_event.clear()
            await _report(runtime, wanted, report)
            await asyncio.sleep(_SETTLE_SECONDS)
        await _report(runtime, wanted, report)


async def _report(
    runtime: Runtime, resources: tuple[Resource, ...], report: Callable[[Served], Awaitable[None]]
) -> None:
    try:
        await report(await discover(runtime.client, resources))
    except (ApiError, ConnectionLost):
        # The next look asks again; until then the last answer holds.
        return
