"""The configuration of a scheduler, as far as it is kept in the cluster and may be read."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from spinney.api.meta import Json, Resource
from spinney.api.untyped import untyped
from spinney.backends.interface import Backend, Cluster, Configured, Queued, Setting, TopologyAware
from spinney.backends.served import Served
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.errors import ApiError

_log = structlog.get_logger("spinney.backends.settings")

# Configurations change seldom; a gang that waits for a change is looked at again after as long.
_FRESH = timedelta(seconds=15)


async def read_settings(client: Client, backend: Backend) -> dict[Setting, Json]:
    """The settings of a backend that exist; those that may not be read are left out."""
    settings: dict[Setting, Json] = {}
    for setting in backend.settings if isinstance(backend, Configured) else ():
        try:
            listing = await client.list(untyped(setting.resource), fields=f"metadata.name={setting.name}")
            if listing.items:
                settings[setting] = await client.get(setting.resource, listing.items[0].key)
        except ApiError as error:
            _log.info("setting.unread", kind=setting.resource.kind, name=setting.name, error=str(error))
    return settings


async def look_at(client: Client, backend: Backend, served: Served) -> Cluster:
    """A cluster as a backend sees it before there is a gang: topology, queues, configuration."""
    topology = backend.topology_resource if isinstance(backend, TopologyAware) else None
    queues = backend.queue_resource if isinstance(backend, Queued) else None
    return Cluster(
        served,
        await _listed(client, topology, served),
        await _listed(client, queues, served),
        await read_settings(client, backend),
    )


async def _listed(client: Client, resource: Resource | None, served: Served) -> list[Json] | None:
    """The objects of a resource; none if it is not served, None if nobody may look."""
    if resource is None:
        return None
    if not served.has(resource):
        return []
    try:
        return [item.plain() for item in (await client.list(untyped(resource))).items]
    except ApiError:
        return None


class Settings:
    """The settings of one backend, read again when they are needed and not fresh."""

    def __init__(self, client: Client, clock: Clock, backend: Backend) -> None:
        self._client = client
        self._clock = clock
        self._backend = backend
        self._read_at: datetime | None = None
        self._found: dict[Setting, Json] = {}

    async def current(self) -> dict[Setting, Json]:
        """The settings, at most some seconds old."""
        now = self._clock.now()
        if self._read_at is None or now - self._read_at >= _FRESH:
            self._read_at = now
            self._found = await read_settings(self._client, self._backend)
        return self._found
