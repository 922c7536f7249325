"""One object that does not fit its type stops no component: it is set aside, and everything else goes on."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from spinney.api.core import Event
from spinney.api.meta import Json
from spinney.embedded.apiserver.store.store import Store, load
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.kube.metrics import metrics
from spinney.sim.faults.world import World, installation
from spinney.sim.loop import run_virtual
from tests import make
from tests.e2e.installation import Installed

# A number in every wire type; that no API server stores this is beside the point.
UNREADABLE = "many"
# Every kind that a component watches, beside those that exist on a fresh installation.
WATCHED = {
    "/pods": ("v1", "Pod"),
    "/nodes": ("v1", "Node"),
    "/configmaps": ("v1", "ConfigMap"),
    "/secrets": ("v1", "Secret"),
    "/services": ("v1", "Service"),
    "/persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "batch/jobs": ("batch/v1", "Job"),
    "grove.io/podcliquesets": ("grove.io/v1alpha1", "PodCliqueSet"),
    "grove.io/podcliques": ("grove.io/v1alpha1", "PodClique"),
    "grove.io/podcliquescalinggroups": ("grove.io/v1alpha1", "PodCliqueScalingGroup"),
    "scheduler.grove.io/podgangs": ("scheduler.grove.io/v1alpha1", "PodGang"),
    "scheduling.run.ai/podgroups": ("scheduling.run.ai/v2alpha2", "PodGroup"),
    "scheduling.run.ai/queues": ("scheduling.run.ai/v2", "Queue"),
    "scheduling.run.ai/bindrequests": ("scheduling.run.ai/v1alpha2", "BindRequest"),
    "kai.scheduler/topologies": ("kai.scheduler/v1alpha1", "Topology"),
    "kai.scheduler/schedulingshards": ("kai.scheduler/v1", "SchedulingShard"),
    "scheduling.k8s.io/workloads": ("scheduling.k8s.io/v1alpha1", "Workload"),
    "resource.k8s.io/resourceclaims": ("resource.k8s.io/v1", "ResourceClaim"),
}
CLUSTER_SCOPED = ("nodes", "queues", "topologies", "schedulingshards")


def spoil(cluster: Cluster, suffix: str) -> None:
    """Put one unreadable object of every kind into the store, past all checks."""
    for table, (version, kind) in WATCHED.items():
        body: Json = {"apiVersion": version, "kind": kind, "metadata": {}}
        namespace = "" if table.endswith(CLUSTER_SCOPED) else "default"
        name = f"spoilt-{suffix}"
        metadata = {"name": name, "uid": f"{table}-{suffix}", "generation": UNREADABLE}
        body["metadata"] = {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"}
        if namespace:
            body["metadata"]["namespace"] = namespace
        cluster.server.store.put(table, f"{namespace}/{name}" if namespace else name, body, {})


def delete_spoilt(store: Store) -> None:
    """Delete them again."""
    for table in WATCHED:
        for key, item in list(store.table(table).items.items()):
            if item.name.startswith("spoilt"):
                store.delete(table, key, load(item))


async def deploy(held: Installed, world: World, name: str) -> None:
    """A gang of each scheduler, and a Job: they run."""
    for scheduler in ("kai-scheduler", "default-scheduler"):
        short = f"{name}-{scheduler[0]}"
        built: Any = make.pcs(short).clique("c", 2, schedulerName=scheduler).build()
        await held.apply(built)
    await held.job(f"{name}-job", 2)
    await held.runs(name, 6)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_unreadable_object_stopped_every_component_that_watched_its_kind(when: str) -> None:
    """Whether a component lists it or sees it come, it goes on with the others, says so, and notices its end."""

    async def test() -> None:
        async with installation(Profile(count=2, gpus=8, racks=1, blocks=1), stand_in=True) as world:
            held = Installed(world.client)
            spoil(world.cluster, "first")
            if when == "before":
                # A history that is gone makes every cache list again.
                world.cluster.server.store.forget()
                world.cluster.server.watches.end()
            await deploy(held, world, "one")
            events = [e for e in (await world.client.list(Event)).items if e.reason == "Unreadable"]
            kinds = {event.involved_object.kind for event in events}
            assert {"Pod", "Node", "PodCliqueSet", "PodGang", "PodGroup"} <= kinds
            delete_spoilt(world.cluster.server.store)
            await deploy(held, world, "two")

    with capture_logs() as logged:
        run_virtual(test(), limit=7200)
    assert [line for line in logged if line["log_level"] == "error"] == []
    assert metrics().unreadable("Pod")._value.get() == 0
