"""Config, shards and queues of an installation, which the platform creates from its settings."""

from __future__ import annotations

import asyncio

import structlog

from spinney.api import labels
from spinney.api.kai import Config, Queue, SchedulingShard
from spinney.api.meta import Json, Resource
from spinney.api.rbac import ClusterRole
from spinney.kube.client.client import Client
from spinney.kube.desired import Drift, Wanted
from spinney.kube.errors import ApiError
from spinney.kube.writer import Writer
from spinney.services.platform.settings import PlatformSettings

_log = structlog.get_logger("spinney.platform")

_AGAIN_SECONDS = 2.0
_SELDOM_SECONDS = 60.0


async def keep_defaults(client: Client, settings: PlatformSettings) -> None:
    """Create or change the objects that the settings describe; try again while some are refused.

    Their kinds may not be served yet. An object that stays refused holds up no other.
    """
    missing = plan_defaults(settings, await _owner(client, settings))
    pause = _AGAIN_SECONDS
    while missing := [wanted for wanted in missing if not await _ensured(client, wanted)]:
        await asyncio.sleep(pause)
        pause = min(2 * pause, _SELDOM_SECONDS)


async def _ensured(client: Client, wanted: Wanted) -> bool:
    try:
        await Writer(client).ensure(wanted)
    except ApiError as error:
        _log.warning("defaults.waiting", kind=wanted.resource.kind, name=wanted.name, error=str(error))
        return False
    return True


def plan_defaults(settings: PlatformSettings, owner: Json | None) -> list[Wanted]:
    """The wanted objects. Config and shards follow the settings; a queue that is there stays as users left it.

    Queues stay without the installation, too: other queues are below them, workloads name them, and users set quotas.
    """
    wanted = []
    if settings.config is not None:
        wanted.append(_wanted(Config.resource, labels.KAI_CONFIG, settings.config, owner, Drift.APPLY))
    wanted += [
        _wanted(SchedulingShard.resource, shard.name, shard.spec, owner, Drift.APPLY) for shard in settings.shards
    ]
    if settings.queues is not None:
        shares = {"resources": dict(settings.queues)}
        child = {**shares, "parentQueue": labels.DEFAULT_PARENT_QUEUE}
        wanted.append(_wanted(Queue.resource, labels.DEFAULT_PARENT_QUEUE, shares, None, Drift.IGNORE))
        wanted.append(_wanted(Queue.resource, labels.DEFAULT_QUEUE, child, None, Drift.IGNORE))
    return wanted


def _wanted(resource: Resource, name: str, spec: Json, owner: Json | None, drift: Drift) -> Wanted:
    metadata: Json = {"name": name}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return Wanted(resource, {"metadata": metadata, "spec": spec}, drift, adopt=True)


async def _owner(client: Client, settings: PlatformSettings) -> Json | None:
    """A reference to our ClusterRole: when an uninstallation deletes it, these objects and all services go as well."""
    if not settings.owner:
        return None
    role = await client.find(ClusterRole.resource, settings.owner)
    if role is None:
        return None
    uid = role["metadata"]["uid"]
    return {"apiVersion": ClusterRole.resource.api_version, "kind": "ClusterRole", "name": settings.owner, "uid": uid}
