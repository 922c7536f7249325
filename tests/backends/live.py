"""A cluster with the schedulers' CRDs and running backends, for tests that look at what really is stored."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import yaml

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.backends.component import COMPONENT, BackendsConfig
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.errors import AlreadyExists, NotFound
from tests import data, waiting
from tests.waiting import object_until

SCHEDULERS = ("kai", "koordinator", "volcano/v1.15.1")
# Large definitions that no backend touches.
_LEFT_OUT = (
    "upcoming",
    "podclique",
    "configs",
    "bindrequests",
    "schedulingshards",
    "reservations",
    "scheduleexplanations",
)


def definitions(*folders: str) -> list[Json]:
    """The CustomResourceDefinitions of some folders of the shared data."""
    paths: list[Path] = []
    for folder in folders:
        every = sorted(data.path(f"crds/{folder}").glob("*.yaml"))
        paths += [path for path in every if not any(part in path.name for part in _LEFT_OUT)]
    documents = [document for path in paths for document in yaml.safe_load_all(path.read_text())]
    return [document for document in documents if document]


async def install(client: Client, documents: Iterable[Json]) -> None:
    """Define kinds and wait until they are served; those that are there already are left alone."""
    documents = list(documents)
    for document in documents:
        # One that is being deleted is still established, and goes while a test runs.
        await object_until(client, CustomResourceDefinition, ("", document["metadata"]["name"]), _stays)
        with suppress(AlreadyExists):
            await client.create(CustomResourceDefinition, document)
    for document in documents:
        await object_until(client, CustomResourceDefinition, ("", document["metadata"]["name"]), _established)


async def clear(client: Client, *kinds: type[Object]) -> None:
    """Take away what earlier tests left on a shared control plane, where nobody is left to let go of it."""
    for kind in kinds:
        for item in (await client.list(kind)).items:
            with suppress(NotFound):
                if item.metadata.finalizers:
                    await client.patch(kind, item.key, {"metadata": {"finalizers": None}})
                await client.delete(kind, item.key)


def _stays(crd: CustomResourceDefinition | None) -> bool:
    return crd is None or crd.metadata.deletion_timestamp is None


def _established(crd: CustomResourceDefinition | None) -> bool:
    conditions = crd.status.conditions if crd else ()
    return any(condition.type == "Established" and condition.status == "True" for condition in conditions)


async def told(client: Client, name: str, namespace: str, reason: str, generation: int = 0) -> PodGang:
    """The gang once its backend gives a reason for it, for a generation at least."""

    def holds(gang: PodGang | None) -> bool:
        return any(
            condition.type == "BackendReady"
            and condition.reason == reason
            and condition.observed_generation >= generation
            for condition in (gang.status.conditions if gang else ())
        )

    gang = await object_until(client, PodGang, (namespace, name), holds)
    assert gang is not None
    return gang


async def owned(client: Client, kind: type[Object], gang: PodGang) -> list[Json]:
    """The objects of a kind that belong to a gang, as plain data."""
    listing = await client.list(untyped(kind.resource), gang.namespace)
    owned_items = [
        item for item in listing.items if any(owner.uid == gang.uid for owner in item.metadata.owner_references)
    ]
    return [item.plain() for item in owned_items]


def running(client: Client, *only: str) -> AbstractAsyncContextManager[Host]:
    """Backends at work, all of them or some."""
    return waiting.running(Host(client, SystemClock(), [(COMPONENT, BackendsConfig(only=only))]))
