"""The scheduler at work: objects in, bound pods out, on the embedded API in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from spinney.api.core import Node, Pod
from spinney.api.crd import crds
from spinney.api.kai import BindRequest, PodGroup, Queue
from spinney.api.meta import Json, Resource
from spinney.api.scheduling import WorkloadV1alpha1
from spinney.embedded.server import ApiServer
from spinney.kube.chance import Chance
from spinney.kube.client import Client
from spinney.kube.host import Host
from spinney.kube.leader import LEASE
from spinney.kube.transport import InProcess, User
from spinney.scheduler.service.component import COMPONENT as SCHEDULER
from spinney.scheduler.service.component import SchedulerSettings
from spinney.services.binder.component import COMPONENT as BINDER
from spinney.sim.loop import clock, run_virtual
from tests import make

ADMIN = User("admin", ("system:masters",))
KUBE_SCHEDULER_LEASE = {
    "holderIdentity": "kube-scheduler-1",
    "leaseDurationSeconds": 3600,
    "renewTime": "2026-01-01T00:00:00.000000Z",
}
CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


@asynccontextmanager
async def world(held: Json | None = None) -> AsyncIterator[Client]:
    """An API server with our kinds, a queue, the scheduler (standing in for kube-scheduler as well) and the binder."""
    server = ApiServer(clock(), Chance(1))
    await server.start()
    client = Client(InProcess(server, ADMIN), Chance(2))
    for crd in crds():
        await client.create(CRD, crd)
    shares = {name: {"quota": 0, "limit": -1, "overQuotaWeight": 1} for name in ("cpu", "memory", "gpu")}
    await client.create(Queue, {"metadata": {"name": "q"}, "spec": {"resources": shares}})
    if held is not None:
        await client.create(LEASE, {"metadata": {"name": "kube-scheduler"}, "spec": held}, "kube-system")
    host = Host(client, clock(), [(SCHEDULER, SchedulerSettings(stand_in=True)), (BINDER, None)])
    task = asyncio.create_task(host.run())
    await host.ready.wait()
    yield client
    task.cancel()


async def gang(client: Client, name: str, members: int, gpus: int, minimum: int | None = None) -> None:
    """A PodGroup and its pods."""
    spec = {"minMember": members if minimum is None else minimum, "queue": "q"}
    await client.create(PodGroup, {"metadata": {"name": name}, "spec": spec}, "default")
    for index in range(members):
        pod = make.pod(f"{name}-{index}").scheduler("kai-scheduler").gpus(gpus).annotate("pod-group-name", name)
        await client.create(Pod, pod.build(), "default")


async def add_node(client: Client, name: str, gpus: int = 8) -> None:
    await client.create(Node, make.node(name, gpus).build())


async def placed(client: Client, prefix: str) -> dict[str, str]:
    pods = (await client.list(Pod, "default")).items
    return {pod.name: pod.spec.node_name for pod in pods if pod.name.startswith(prefix)}


def virtual(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time."""

    def run() -> None:
        run_virtual(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@virtual
async def test_a_gang_that_fits_is_bound_whole() -> None:
    """Every pod of the gang gets a node, through a BindRequest that belongs to one decision."""
    async with world() as client:
        await add_node(client, "n1")
        await gang(client, "g", members=4, gpus=2)
        await asyncio.sleep(10)
        assert set((await placed(client, "g")).values()) == {"n1"}
        requests = (await client.list(BindRequest, "default")).items
        assert {request.status.phase for request in requests} == {"Succeeded"}
        assert len({request.metadata.annotations["spinney.dev/decision"] for request in requests}) == 1


@virtual
async def test_a_gang_that_lacks_one_gpu_is_not_bound_at_all() -> None:
    """All or nothing; the group says why it waits, and starts when a node comes."""
    async with world() as client:
        await add_node(client, "n1", gpus=7)
        await gang(client, "g", members=4, gpus=2)
        await asyncio.sleep(10)
        assert set((await placed(client, "g")).values()) == {""}
        group = await client.get(PodGroup, "g", "default")
        assert group.status.scheduling_conditions[0].type == "UnschedulableOnNodePool"
        await add_node(client, "n2", gpus=2)
        await asyncio.sleep(10)
        assert set((await placed(client, "g")).values()) == {"n1", "n2"}
        group = await client.get(PodGroup, "g", "default")
        assert group.status.scheduling_conditions == ()


@virtual
async def test_nothing_is_written_at_rest() -> None:
    """A gang that cannot run is told once, not every cycle (the stand-in, which renews a lease, is kept out)."""
    async with world(KUBE_SCHEDULER_LEASE) as client:
        await add_node(client, "n1", gpus=1)
        await gang(client, "g", members=2, gpus=1)
        await asyncio.sleep(30)
        before = (await client.list(PodGroup)).resource_version
        await asyncio.sleep(600)
        assert (await client.list(PodGroup)).resource_version == before


@virtual
async def test_an_urgent_gang_takes_the_place_of_a_lesser_one() -> None:
    """Within a queue the lower priority is evicted, and its place is taken."""
    async with world() as client:
        for name, value in (("low", 10), ("high", 90)):
            priority: Json = {"metadata": {"name": name}, "value": value}
            await client.create(
                Resource("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False), priority
            )
        await add_node(client, "n1", gpus=4)
        await gang(client, "lesser", members=1, gpus=4)
        await client.patch(PodGroup, "lesser", "default", {"spec": {"priorityClassName": "low"}})
        await asyncio.sleep(5)
        await client.patch(Pod, "lesser-0", "default", {"status": {"phase": "Running"}}, subresource="status")
        await gang(client, "urgent", members=1, gpus=4)
        await client.patch(PodGroup, "urgent", "default", {"spec": {"priorityClassName": "high"}})
        await asyncio.sleep(5)
        lesser = [pod for pod in (await client.list(Pod, "default")).items if pod.name == "lesser-0"]
        assert not lesser or lesser[0].metadata.deletion_timestamp is not None
        if lesser:
            await client.delete(Pod, "lesser-0", "default", grace_seconds=0)
        await asyncio.sleep(5)
        assert await placed(client, "urgent") == {"urgent-0": "n1"}


@virtual
async def test_pods_of_kube_scheduler_are_served_where_none_runs() -> None:
    """A plain pod is bound directly; a gang by Workload waits until all of it fits."""
    async with world() as client:
        await add_node(client, "n1", gpus=4)
        await client.create(Pod, make.pod("plain").gpus(1).build(), "default")
        spec = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}
        await client.create(WorkloadV1alpha1, {"metadata": {"name": "w"}, "spec": spec}, "default")
        for index in range(2):
            pod = make.pod(f"w-{index}").gpus(2).build()
            pod["spec"]["workloadRef"] = {"name": "w", "podGroup": "workers"}
            await client.create(Pod, pod, "default")
        await asyncio.sleep(10)
        assert await placed(client, "plain") == {"plain": "n1"}
        assert await placed(client, "w") == {"w-0": "", "w-1": ""}
        waiting = await client.get(Pod, "w-0", "default")
        assert [condition.reason for condition in waiting.status.conditions] == ["Unschedulable"]
        await add_node(client, "n2", gpus=2)
        await asyncio.sleep(10)
        assert set((await placed(client, "w")).values()) == {"n1", "n2"}


@virtual
async def test_the_stand_in_leaves_pods_to_a_real_kube_scheduler() -> None:
    """Whoever holds the lease serves these pods; the stand-in waits for it."""
    held = {
        "holderIdentity": "kube-scheduler-1",
        "leaseDurationSeconds": 3600,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    async with world(held) as client:
        await add_node(client, "n1")
        await client.create(Pod, make.pod("plain").gpus(1).build(), "default")
        await asyncio.sleep(60)
        assert await placed(client, "plain") == {"plain": ""}
