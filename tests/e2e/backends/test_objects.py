"""Backends on an API server: what they write is accepted, kept, told and taken away."""

from __future__ import annotations

import pytest

from spinney.api import kai, koordinator, scheduling, volcano
from spinney.api.conditions import find
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.meta import Json, Object, convert
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.backends.interface import Cluster
from spinney.backends.registry import Registry
from spinney.backends.served import discover
from spinney.kube.desired import plan
from spinney.kube.difference import without_none
from tests import make, worlds
from tests.backends import live, matrix
from tests.waiting import object_until

GROUPS: dict[str, type[Object]] = {
    "kai": kai.PodGroup,
    "default": scheduling.WorkloadV1alpha1,
    "koordinator": koordinator.PodGroup,
    "volcano": volcano.PodGroup,
}


@pytest.fixture
async def ready(cluster: worlds.Cluster) -> worlds.Cluster:
    """A cluster that has the CRDs of Grove and of every scheduler."""
    await live.install(cluster.client(), live.definitions("grove", *live.SCHEDULERS))
    return cluster


def training(backend: str, namespace: str, name: str = "train-0") -> make.GangBuilder:
    """The gang of the contract's example, for a backend; it refers to no pods, and so waits for none."""
    gang = make.gang(name, namespace).backend(backend).group("master", 1, pods=0).group("workers", 3, pods=0)
    for assigned in ("uid", "generation"):
        del gang.object["metadata"][assigned]
    return gang


@pytest.mark.parametrize("backend", GROUPS)
async def test_a_gang_gets_its_schedulers_objects_and_is_told_so(ready: worlds.Cluster, backend: str) -> None:
    """Objects owned by the gang, BackendReady for its generation, and a phase, which the CRD requires."""
    client, namespace = ready.client(), await ready.namespace()
    async with live.running(client, backend):
        await client.create(PodGang, training(backend, namespace).build(), namespace)
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
    objects = await live.owned(client, GROUPS[backend], gang)
    assert len(objects) == (2 if backend == "koordinator" else 1)
    assert all(item["metadata"]["labels"]["grove.io/scheduler-backend"] == backend for item in objects)
    assert gang.status.phase == "Pending"


async def test_yunikorn_is_ready_at_once(ready: worlds.Cluster) -> None:
    """It has no objects: the gang is in its pods."""
    client, namespace = ready.client(), await ready.namespace()
    async with live.running(client, "yunikorn"):
        await client.create(PodGang, training("yunikorn", namespace).build(), namespace)
        await live.told(client, "train-0", namespace, "Synced", 1)


@pytest.mark.parametrize("backend", GROUPS)
async def test_a_change_is_followed_and_a_restart_writes_nothing(ready: worlds.Cluster, backend: str) -> None:
    """Switched off and on again, a backend catches up; once all is as it should be it makes no write at all."""
    client, namespace = ready.client(), await ready.namespace()
    async with live.running(client, backend):
        await client.create(PodGang, training(backend, namespace).build(), namespace)
        await live.told(client, "train-0", namespace, "Synced", 1)
    patch = {"spec": {"podgroups": training(backend, namespace).group("extra", 2, pods=0).object["spec"]["podgroups"]}}
    await client.patch(PodGang, (namespace, "train-0"), patch)
    async with live.running(client, backend):
        gang = await live.told(client, "train-0", namespace, "Synced", 2)
    total = sum(_minimum(item) for item in await live.owned(client, GROUPS[backend], gang))
    assert total == 6
    async with live.running(client, backend) as host:
        # Another gang shows that the restarted backend has been through all that was there.
        await client.create(PodGang, training(backend, namespace, "later-0").build(), namespace)
        await live.told(client, "later-0", namespace, "Synced", 1)
        written = host.runtimes["backends"].client.writes
        assert [name for _, _, name in written.by_object if "train" in name] == []


def _minimum(group: dict[str, dict[str, object]]) -> int:
    spec = group["spec"]
    if "podGroups" in spec:
        return int(spec["podGroups"][0]["policy"]["gang"]["minCount"])  # type: ignore[index]  # plain data
    return int(str(spec["minMember"]))


async def test_fields_of_others_survive(ready: worlds.Cluster) -> None:
    """Volcano's status lies on the object itself, KAI's marks in its spec: our patches leave both alone."""
    client, namespace = ready.client(), await ready.namespace()
    async with live.running(client, "volcano"):
        await client.create(PodGang, training("volcano", namespace).build(), namespace)
        await live.told(client, "train-0", namespace, "Synced", 1)
        condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "3/4 fit"}
        status = {"phase": "Inqueue", "conditions": [{**condition, "transitionID": "1"}]}
        await client.patch(volcano.PodGroup.resource, (namespace, "train-0"), {"status": status})
        patch = {"spec": {"priorityClassName": "high"}}
        await client.patch(PodGang, (namespace, "train-0"), patch)
        gang = await live.told(client, "train-0", namespace, "SchedulerReports", 2)
        backend_ready = find(gang.status.conditions, "BackendReady")
        assert backend_ready is not None
        assert backend_ready.message == "NotEnoughResources: 3/4 fit"
    (group,) = await live.owned(client, volcano.PodGroup, gang)
    assert (group["status"]["phase"], group["spec"]["priorityClassName"]) == ("Inqueue", "high")


async def test_a_name_that_is_taken_is_not_fought_over(ready: worlds.Cluster) -> None:
    """An object of the wanted name that is not ours is left alone, and the gang says whose it is."""
    client, namespace = ready.client(), await ready.namespace()
    foreign = {"metadata": {"name": "train-0"}, "spec": {"minMember": 1}}
    await client.create(volcano.PodGroup.resource, foreign, namespace)
    async with live.running(client, "volcano"):
        await client.create(PodGang, training("volcano", namespace).build(), namespace)
        gang = await live.told(client, "train-0", namespace, "NameTaken", 1)
    backend_ready = find(gang.status.conditions, "BackendReady")
    assert backend_ready is not None
    assert "PodGroup train-0 exists and belongs to nobody" in backend_ready.message


async def test_what_a_scheduler_cannot_express_holds_the_gang_unless_it_opted_in(ready: worlds.Cluster) -> None:
    """Fail closed: nothing is written; with the annotation the loss is recorded instead."""
    client, namespace = ready.client(), await ready.namespace()
    strict = training("default", namespace).packed(required="rack")
    relaxed = (
        training("default", namespace).packed(required="rack").annotate("grove.io/allow-scheduler-downgrade", "true")
    )
    relaxed.object["metadata"]["name"] = "relaxed-0"
    async with live.running(client, "default"):
        await client.create(PodGang, strict.build(), namespace)
        await client.create(PodGang, relaxed.build(), namespace)
        held = await live.told(client, "train-0", namespace, "NotExpressible", 1)
        gang = await live.told(client, "relaxed-0", namespace, "Synced", 1)
    assert await live.owned(client, scheduling.WorkloadV1alpha1, held) == []
    downgraded = find(gang.status.conditions, "Downgraded")
    assert downgraded is not None
    assert "'rack' asks for required topology for the gang" in downgraded.message


async def test_conditions_of_others_are_kept(ready: worlds.Cluster) -> None:
    """The list is atomic, so it is written whole and on the version it was read from."""
    client, namespace = ready.client(), await ready.namespace()
    created = await client.create(PodGang, training("kai", namespace).build(), namespace)
    initialized = {
        "type": "Initialized",
        "status": "True",
        "reason": "PodGangPodsCreated",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"phase": "Starting", "conditions": [initialized]}
    await client.patch(PodGang, (namespace, created.name), {"status": status}, subresource="status")
    async with live.running(client, "kai"):
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
    assert [condition.type for condition in gang.status.conditions] == ["Initialized", "BackendReady"]
    assert gang.status.phase == "Starting"


@pytest.mark.parametrize("backend", GROUPS)
async def test_a_deleted_gang_takes_its_objects_along(ready: worlds.Cluster, backend: str) -> None:
    """The backend deletes them, once each at most: nobody waits for the garbage collector, which may be first."""
    client, namespace = ready.client(), await ready.namespace()
    async with live.running(client, backend) as host:
        await client.create(PodGang, training(backend, namespace).build(), namespace)
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
        objects = await live.owned(client, GROUPS[backend], gang)
        await client.delete(PodGang, (namespace, "train-0"))
        for item in objects:
            kind = untyped(GROUPS[backend].resource)
            await object_until(client, kind, (namespace, item["metadata"]["name"]), lambda item: item is None)
        written = host.runtimes["backends"].client.writes
        assert written.by_verb["delete", GROUPS[backend].resource.kind, ""] <= len(objects)


# The real garbage collector takes half a minute to learn of a new kind.
@pytest.mark.parametrize("cluster", ["embedded"], indirect=True)
async def test_what_a_gang_was_told_to_leave_behind_stays(ready: worlds.Cluster) -> None:
    """An orphaning deletion takes the owner references off first; the backend then has no business with the objects."""
    client, namespace = ready.client(), await ready.namespace()
    async with live.running(client, "kai"):
        await client.create(PodGang, training("kai", namespace).build(), namespace)
        gang = await live.told(client, "train-0", namespace, "Synced", 1)
        (group,) = await live.owned(client, kai.PodGroup, gang)
        await client.delete(PodGang, (namespace, "train-0"), propagation="Orphan")
        await object_until(client, PodGang, (namespace, "train-0"), lambda item: item is None)
        # A gang that comes and goes afterwards shows that the backend has been through all that was before.
        await client.create(PodGang, training("kai", namespace, "later-0").build(), namespace)
        later = await live.told(client, "later-0", namespace, "Synced", 1)
        (last,) = await live.owned(client, kai.PodGroup, later)
        await client.delete(PodGang, (namespace, "later-0"))
        kind = untyped(kai.PodGroup.resource)
        await object_until(client, kind, (namespace, last["metadata"]["name"]), lambda item: item is None)
        left = await client.get(kai.PodGroup, (namespace, group["metadata"]["name"]))
        assert left.metadata.deletion_timestamp is None


def binding(name: str, **references: str) -> Json:
    """A topology of two levels."""
    levels = [{"domain": "block", "key": "example.com/block"}, {"domain": "rack", "key": "example.com/rack"}]
    named = [{"schedulerName": key.replace("_", "-"), "topologyReference": value} for key, value in references.items()]
    return {"metadata": {"name": name}, "spec": {"levels": levels, "schedulerTopologyBindings": named}}


def entries(binding: ClusterTopologyBinding | None) -> dict[str, bool]:
    """Which schedulers' topologies are in step."""
    statuses = binding.status.scheduler_topology_statuses if binding else ()
    return {entry.scheduler_name: entry.in_sync for entry in statuses}


async def test_kais_topology_is_written_and_made_anew_when_levels_change(ready: worlds.Cluster) -> None:
    """KAI refuses a change of levels, so its Topology is replaced; it goes with the binding."""
    client, name = ready.client(), ready.unique("topology")
    async with live.running(client, "kai"):
        await client.create(ClusterTopologyBinding, binding(name))
        kind, in_step = ClusterTopologyBinding, {"kai-scheduler": True}
        await object_until(client, kind, ("", name), lambda binding: entries(binding) == in_step)
        topology = await client.get(kai.Topology.resource, name)
        assert [level["nodeLabel"] for level in topology["spec"]["levels"]] == ["example.com/block", "example.com/rack"]
        levels = [{"domain": "rack", "key": "example.com/rack"}]
        await client.patch(kind, name, {"spec": {"levels": levels}})
        made = untyped(kai.Topology.resource)
        await object_until(
            client, made, ("", name), lambda topology: topology is not None and len(topology.spec["levels"]) == 1
        )
        await client.delete(kind, name)
        await object_until(client, made, ("", name), lambda topology: topology is None)


async def test_a_topology_that_is_referred_to_is_only_checked(ready: worlds.Cluster) -> None:
    """A binding that names the schedulers' own objects says where they differ, and writes nothing."""
    client, name = ready.client(), ready.unique("topology")
    async with live.running(client, "kai", "volcano"):
        await client.create(ClusterTopologyBinding, binding(name, kai_scheduler="other", volcano="any"))
        expected = {"kai-scheduler": False, "volcano": False}
        live_binding = await object_until(
            client, ClusterTopologyBinding, ("", name), lambda live_binding: entries(live_binding) == expected
        )
        assert live_binding is not None
        drift = find(live_binding.status.conditions, "SchedulerTopologyDrift")
        assert drift is not None
        assert "Topology other does not exist" in drift.message
        assert "no HyperNode has the tier name example.com/block, example.com/rack" in drift.message
    await client.delete(ClusterTopologyBinding, name)


@pytest.mark.parametrize("backend", GROUPS)
async def test_everything_in_the_matrix_is_accepted(ready: worlds.Cluster, backend: str) -> None:
    """Every object of every gang of the golden files passes the API server, unknown fields refused."""
    client, namespace = ready.client(), await ready.namespace()
    plugin = Registry.load().get(backend)
    assert plugin is not None
    served = await discover(client, plugin.resources)
    for title, builder in matrix.gangs().items():
        body = builder.backend(backend).build()
        body["metadata"]["namespace"] = namespace
        for wanted in plugin.translate(convert(PodGang, body), Cluster(served)).objects:
            document = without_none(wanted.body)
            created = await client.create(wanted.resource, document, namespace, dry_run=True, strict=True)
            assert plan(wanted, created) is None, f"{title}: {wanted.name} would be written again at once"
