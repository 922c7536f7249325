"""Which resources a cluster serves: what a backend may write depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from spinney.api.meta import Resource
from spinney.kube.client import Client
from spinney.kube.discovery import Discovery


@dataclass(frozen=True)
class Served:
    """Those of the resources asked for that the cluster serves, by API version and kind."""

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
    asked = list(dict.fromkeys(resources))
    # One question per API version: the answers for the others are then remembered.
    versions = dict.fromkeys(resource.api_version for resource in asked)
    await asyncio.gather(*(discovery.serves(version) for version in versions))
    found = [await discovery.resource(resource.api_version, resource.kind) for resource in asked]
    return Served(frozenset(resource for resource in found if resource is not None))
