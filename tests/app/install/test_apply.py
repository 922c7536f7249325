"""An installation on both worlds: accepted in one go, twice, and gone when it is deleted."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version

import pytest
import yaml

from spinney.api import labels
from spinney.api.apps import Deployment
from spinney.api.kai import Config, Queue, SchedulingShard
from spinney.api.meta import Json, convert
from spinney.api.rbac import ClusterRole
from spinney.app.components import load
from spinney.app.install.objects import definitions, namespace_object, objects
from spinney.app.install.values import read_values
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.errors import NotFound
from spinney.services.platform.settings import PlatformSettings
from tests.app.install.value_sets import VALUE_SETS
from tests.waiting import object_until, running
from tests.worlds import Cluster

# Kinds of other projects, which neither world serves; test_foreign_kinds brings them.
FOREIGN = ("cert-manager.io/v1",)
_QUEUES = (labels.DEFAULT_QUEUE, labels.DEFAULT_PARENT_QUEUE)


def installation(namespace: str, values: Json) -> list[Json]:
    """What `spinney install` prints."""
    documents = objects(read_values([values]), namespace, version("spinney"))
    ours = [document for document in documents if document["apiVersion"] not in FOREIGN]
    return [namespace_object(namespace), *definitions(), *ours]


def as_yaml(documents: list[Json]) -> str:
    return yaml.safe_dump_all(documents)


async def kubectl(cluster: Cluster, *arguments: str, documents: list[Json]) -> str:
    ran = await cluster.kubectl(*arguments, "-f", "-", stdin=as_yaml(documents))
    assert ran.code == 0, ran.err
    return ran.out


@pytest.mark.parametrize("name", VALUE_SETS)
async def test_the_api_server_accepts_every_choice(cluster: Cluster, name: str) -> None:
    """What ten choices of values render is valid, field by field."""
    namespace = await cluster.namespace()
    documents = installation(namespace, VALUE_SETS[name])
    await kubectl(cluster, "apply", "--server-side", "--force-conflicts", "--dry-run=server", documents=documents)


async def test_installed_in_one_go_and_gone_with_its_objects(cluster: Cluster) -> None:
    """One pipe installs everything, a second one meets no conflict, and deleting the objects takes Config along.

    The default queues went as well, and with them the quotas that users had set and the parent of other queues.
    """
    client, namespace = cluster.client(), cluster.unique("installed")
    documents = installation(namespace, {})
    # Other tests leave CRDs on the shared control plane, some of them upstream's.
    over_others = ["--force-conflicts"] if cluster.name == "real" else []
    try:
        await kubectl(cluster, "apply", "--server-side", *over_others, documents=documents)
        settings = convert(PlatformSettings, yaml.safe_load(_settings(documents)))
        platform = load("platform")
        account = cluster.client(f"system:serviceaccount:{namespace}:spinney-platform")
        host = Host(account, SystemClock(), [(platform, settings)], namespace=namespace, identity="me")
        async with running(host):
            await object_until(client, Config, ("", labels.KAI_CONFIG), lambda item: item is not None)
            await object_until(client, Queue, ("", labels.DEFAULT_QUEUE), lambda item: item is not None)
            await object_until(client, Deployment, (namespace, "binder"), lambda item: item is not None)
            await object_until(client, Deployment, (namespace, "kai-scheduler-default"), lambda item: item is not None)
            again = await kubectl(cluster, "apply", "--server-side", documents=documents)
            assert "conflict" not in again
        await client.delete(ClusterRole, "spinney-platform")
        for kind, name in ((Config, labels.KAI_CONFIG), (SchedulingShard, "default")):
            await object_until(client, kind, ("", name), lambda item: item is None)
        await object_until(client, Deployment, (namespace, "binder"), lambda item: item is None)
        for name in _QUEUES:
            assert not (await client.get(Queue, name)).metadata.owner_references
    finally:
        for name in _QUEUES:
            with suppress(NotFound):
                await client.delete(Queue, name)
        without_crds = [each for each in documents if each["kind"] != "CustomResourceDefinition"]
        await kubectl(cluster, "delete", "--ignore-not-found", "--wait=false", documents=without_crds)


def _settings(documents: list[Json]) -> str:
    (settings,) = (
        each for each in documents if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "spinney-platform"
    )
    return str(settings["data"]["config.yaml"])
