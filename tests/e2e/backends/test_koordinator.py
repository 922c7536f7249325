"""Koordinator's PodGroups on an API server: held until the gates are off, never renamed under running pods."""

from __future__ import annotations

from spinney.api import koordinator
from spinney.api.crd import GROUPS, crds
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.backends.koordinator.groups import HELD
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from tests import make, waiting, worlds
from tests.backends import live
from tests.waiting import object_until


def bare(name: str, namespace: str) -> make.GangBuilder:
    """A gang of one role without a set."""
    gang = make.gang(name, namespace).backend("koordinator").group("workers", 2)
    for assigned in ("uid", "generation"):
        del gang.object["metadata"][assigned]
    return gang


async def test_no_minimum_is_reached_before_the_last_gate_is_off(cluster: worlds.Cluster) -> None:
    """Koordinator counts gated pods as present: it bound a part of a gang whose gates came off one by one."""
    client = cluster.client()
    await live.install(client, crds(GROUPS))
    namespace = await cluster.namespace()
    pcs = make.pcs("train", namespace).clique("workers", 4, 2, schedulerName="koord-scheduler")
    host = Host(
        client,
        SystemClock(),
        [(GROVE, GROVE.settings and GROVE.settings()), (BACKENDS, BackendsConfig(only=("koordinator",)))],
    )
    async with waiting.running(host):
        await client.create(PodCliqueSet, pcs.build(), namespace)
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
        key = (namespace, f"train-0-workers-{gang.uid[:8]}")
        group = await object_until(
            client, koordinator.PodGroup, key, lambda group: group is not None and group.spec.min_member == 2
        )
        pods = (await client.list(Pod, namespace)).items
    assert group is not None
    members = [pod for pod in pods if pod.metadata.labels.get("pod-group.scheduling.sigs.k8s.io") == key[1]]
    assert [bool(pod.spec.scheduling_gates) for pod in members] == [False, False]
    assert [bool(pod.spec.scheduling_gates) for pod in pods if pod not in members] == [True, True]


async def test_a_group_of_a_gang_whose_pods_are_missing_is_held(cluster: worlds.Cluster) -> None:
    """The group exists, so the gang may be released, and its minimum is one that nobody reaches."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "koordinator"))
    namespace = await cluster.namespace()
    async with live.running(client, "koordinator"):
        await client.create(PodGang, bare("train-0", namespace).build(), namespace)
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
    (group,) = await live.owned(client, koordinator.PodGroup, gang)
    assert group["spec"]["minMember"] == HELD


async def test_the_groups_of_a_gang_from_before_stay_as_they_are(cluster: worlds.Cluster) -> None:
    """Its running pods carry the old name in a label."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "koordinator"))
    namespace = await cluster.namespace()
    gang = await client.create(PodGang, bare("train-0", namespace).build(), namespace)
    metadata = {"name": "train-0-workers", "namespace": namespace, "ownerReferences": [controller_reference(gang)]}
    before = await client.create(koordinator.PodGroup, {"metadata": metadata, "spec": {"minMember": 2}}, namespace)
    async with live.running(client, "koordinator"):
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
    (group,) = await live.owned(client, koordinator.PodGroup, gang)
    assert (group["metadata"]["uid"], group["spec"]["minMember"]) == (before.uid, 2)


async def test_a_gang_waits_for_its_quota_and_says_so(cluster: worlds.Cluster) -> None:
    """Koordinator would place it under the default quota."""
    client = cluster.client()
    await live.install(client, live.definitions("grove", "koordinator"))
    namespace = await cluster.namespace()
    named = bare("train-0", namespace).annotate("quota.scheduling.koordinator.sh/name", f"team-{namespace}")
    quota: Json = {"metadata": {"name": f"team-{namespace}", "namespace": namespace}}
    async with live.running(client, "koordinator"):
        await client.create(PodGang, named.build(), namespace)
        gang = await live.told(client, "train-0", namespace, "QueueNotFound", 1)
        message = next(each.message for each in gang.status.conditions if each.type == "BackendReady")
        assert f"there is no ElasticQuota 'team-{namespace}'" in message
        await client.create(untyped(koordinator.ELASTIC_QUOTA), quota, namespace)
        await live.told(client, "train-0", namespace, "Synced", 1)
