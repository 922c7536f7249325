"""What a scheduler is not set up for is told beforehand, and a gang goes on when it is."""

from __future__ import annotations

import json

from spinney.api import volcano
from spinney.api.conditions import find
from spinney.api.core import ConfigMap
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.backends.registry import Registry
from spinney.backends.served import discover
from spinney.cli.backends import look
from tests import make, worlds
from tests.backends import live
from tests.waiting import object_until

REGISTRY = Registry.load()


def packed(namespace: str, **pack: str) -> Json:
    """A gang of Volcano's that asks for a tier."""
    gang = make.gang("train-0", namespace).backend("volcano").group("workers", 2, pods=0).packed(**pack)
    for assigned in ("uid", "generation"):
        del gang.object["metadata"][assigned]
    return gang.build()


def hyper_node(name: str, tier: str) -> Json:
    """A domain of one node."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}}]
    return {"metadata": {"name": name}, "spec": {"tier": 1, "tierName": tier, "members": members}}


async def test_a_required_level_without_hyper_nodes_holds_the_gang(cluster: worlds.Cluster) -> None:
    """Volcano placed it across racks and said nothing; now it waits, says what to do, and goes on by itself."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "volcano/v1.15.1"))
    namespace = await cluster.namespace()
    tier = f"example.com/{namespace}"
    async with live.running(client, "volcano"):
        await client.create(PodGang, packed(namespace, required=tier), namespace)
        gang = await live.told(client, "train-0", namespace, "SetupMissing", 1)
        ready = find(gang.status.conditions, "BackendReady")
        assert ready is not None
        assert f"no HyperNode has the tier name {tier}" in ready.message
        await client.create(volcano.HyperNode, hyper_node(namespace, tier))
        await live.told(client, "train-0", namespace, "Synced", 1)


async def test_a_preferred_level_without_hyper_nodes_is_told_as_a_downgrade(cluster: worlds.Cluster) -> None:
    """A preference holds nobody, and its loss is not silent."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "volcano/v1.15.1"))
    namespace = await cluster.namespace()
    tier = f"example.com/{namespace}"
    async with live.running(client, "volcano"):
        await client.create(PodGang, packed(namespace, preferred=tier), namespace)
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
    downgraded = find(gang.status.conditions, "Downgraded")
    assert downgraded is not None
    assert f"no HyperNode has the tier name {tier}" in downgraded.message


async def test_a_gang_of_an_unknown_queue_is_told_so(cluster: worlds.Cluster) -> None:
    """Volcano says it in its log only."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "volcano/v1.15.1"))
    namespace = await cluster.namespace()
    body = packed(namespace)
    body["metadata"]["annotations"] = {"scheduling.grove.io/volcano-queue": namespace}
    async with live.running(client, "volcano"):
        await client.create(PodGang, body, namespace)
        await live.told(client, "train-0", namespace, "QueueNotFound", 1)
        await client.create(volcano.Queue, {"metadata": {"name": namespace}, "spec": {"weight": 1}})
        await live.told(client, "train-0", namespace, "Synced", 1)


async def test_the_list_of_backends_says_which_plugin_is_off(cluster: worlds.Cluster) -> None:
    """The chart's own configuration has no topology plugin."""
    client = cluster.client()
    await live.install(client, live.definitions("volcano/v1.15.1"))
    namespace = await cluster.namespace()
    conf = json.dumps({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]})
    config = {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": conf}}
    await client.create(ConfigMap, config, namespace)
    backend = REGISTRY.get("volcano")
    assert backend is not None
    try:
        seen = await look(client, backend, await discover(client, backend.resources))
    finally:
        await client.delete(ConfigMap, (namespace, "volcano-scheduler-configmap"))
    assert any("does not switch on the plugin network-topology-aware" in problem for problem in seen.problems)


async def test_the_list_of_backends_says_which_level_has_no_hyper_nodes(cluster: worlds.Cluster) -> None:
    """Volcano ignores a level that no HyperNode has; a gang is not needed to be told so."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "volcano/v1.15.1"))
    namespace = await cluster.namespace()
    rack, host = f"example.com/{namespace}-rack", f"example.com/{namespace}-host"
    levels = [{"domain": "rack", "key": rack}, {"domain": "host", "key": host}]
    await client.create(volcano.HyperNode, hyper_node(namespace, host))
    await client.create(ClusterTopologyBinding, {"metadata": {"name": namespace}, "spec": {"levels": levels}})
    backend = REGISTRY.get("volcano")
    assert backend is not None
    async with live.running(client, "volcano"):
        await object_until(client, ClusterTopologyBinding, ("", namespace), _has_drifted)
        seen = await look(client, backend, await discover(client, backend.resources))
    await client.delete(ClusterTopologyBinding, namespace)
    assert any(f"topology {namespace}: no HyperNode has the tier name {rack}" in each for each in seen.problems)


def _has_drifted(binding: ClusterTopologyBinding | None) -> bool:
    return binding is not None and any(not each.in_sync for each in binding.status.scheduler_topology_statuses)
