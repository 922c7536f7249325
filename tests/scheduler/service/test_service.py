"""The scheduler at work: objects in, bound pods out, on the embedded API in virtual time."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest

from spinney.api.core import ConfigMap, Event, Pod
from spinney.api.kai import BindRequest, PodGroup, Queue
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.scheduling import WorkloadV1alpha1
from spinney.kube.client.transport import Request, Response
from tests import make
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import Stage, broken, stage
from tests.virtual_time import virtual


@virtual
async def test_a_gang_that_fits_is_bound_whole() -> None:
    """Every pod of the gang gets a node, through a BindRequest that belongs to one decision."""
    async with stage(*PARTS) as world:
        client = world.client
        await world.node("n1")
        await world.gang("g", members=4, gpus=2)
        await asyncio.sleep(10)
        assert set((await world.placed("g")).values()) == {"n1"}
        requests = (await client.list(BindRequest, "default")).items
        assert {request.status.phase for request in requests} == {"Succeeded"}
        assert len({request.metadata.annotations["spinney.dev/decision"] for request in requests}) == 1


@pytest.mark.parametrize("written", [1, 3])
@virtual
async def test_a_decision_that_was_written_in_part_kept_its_pods_waiting(written: int) -> None:
    """The scheduler ends while it writes a decision; the next one takes back what is there and decides anew."""
    sent = 0

    async def never_answer(request: Request) -> None:
        nonlocal sent
        if request.method == "POST" and request.path.endswith("/bindrequests"):
            sent += 1
            if sent > written:
                await asyncio.Event().wait()

    async def answer(request: Request) -> None: ...

    async with stage(*PARTS) as world:
        await world.node("n1")
        world.transport.before = never_answer
        await world.gang("g", members=4, gpus=2)
        await asyncio.sleep(5)
        await world.stop()
        assert len((await world.client.list(BindRequest, "default")).items) == written
        world.transport.before = answer
        await world.start()
        await asyncio.sleep(20)
        assert set((await world.placed("g")).values()) == {"n1"}


@virtual
async def test_a_decision_that_could_not_be_taken_back_kept_its_pods_waiting() -> None:
    """A request is refused, and so are the deletions of the others: they are deleted later, and the gang runs."""
    creations = 0

    def refuse(request: Request) -> Response | None:
        nonlocal creations
        if "/bindrequests" not in request.path or request.method == "PATCH":
            return None
        creations += request.method == "POST"
        return None if request.method == "POST" and creations < 4 else broken()

    async with stage(*PARTS) as world:
        await world.node("n1")
        world.transport.fault = refuse
        await world.gang("g", members=4, gpus=2)
        await asyncio.sleep(20)
        world.transport.fault = lambda request: None
        await asyncio.sleep(20)
        assert set((await world.placed("g")).values()) == {"n1"}


@virtual
async def test_a_decision_goes_on_without_a_pod_that_went() -> None:
    """A pod that is deleted before its gang was bound does not keep those waiting that are left."""
    async with stage(*PARTS[:1]) as world:
        await world.node("n1")
        await world.gang("g", members=3, gpus=1, minimum=2)
        await asyncio.sleep(3)
        before = {request.uid for request in (await world.client.list(BindRequest, "default")).items}
        await world.client.delete(Pod, ("default", "g-0"), grace_seconds=0)
        await world.client.delete(BindRequest, ("default", "g-0"))
        await asyncio.sleep(20)
        after = (await world.client.list(BindRequest, "default")).items
        assert {request.name for request in after} == {"g-1", "g-2"}
        assert not before & {request.uid for request in after}


@virtual
async def test_a_gang_that_lacks_pods_is_said_to_be_not_ready() -> None:
    """No autoscaler is called for it: an event on the group counts its pods, and none of them is Unschedulable."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await world.gang("g", members=1, gpus=1, minimum=3)
        await asyncio.sleep(10)
        events = (await world.client.list(Event, "default")).items
        assert [(event.involved_object.kind, event.reason, event.message) for event in events] == [
            ("PodGroup", "NotReady", "Job is not ready for scheduling. Waiting for 3 pods, currently 1 exist")
        ]
        assert (await world.client.get(Pod, ("default", "g-0"))).status.conditions == ()
        assert (await world.client.get(PodGroup, ("default", "g"))).status.scheduling_conditions == ()


@virtual
async def test_a_gang_that_lacks_one_gpu_is_not_bound_at_all() -> None:
    """All or nothing; the group says why it waits, and starts when a node comes."""
    async with stage(*PARTS) as world:
        client = world.client
        await world.node("n1", gpus=7)
        await world.gang("g", members=4, gpus=2)
        await asyncio.sleep(10)
        assert set((await world.placed("g")).values()) == {""}
        group = await client.get(PodGroup, ("default", "g"))
        assert group.status.scheduling_conditions[0].type == "UnschedulableOnNodePool"
        await world.node("n2", gpus=2)
        await asyncio.sleep(10)
        assert set((await world.placed("g")).values()) == {"n1", "n2"}
        group = await client.get(PodGroup, ("default", "g"))
        assert group.status.scheduling_conditions == ()


@virtual
async def test_nothing_is_written_at_rest() -> None:
    """A gang that cannot run is told once, not every cycle (the stand-in, which renews a lease, is kept out)."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client = world.client
        await world.node("n1", gpus=1)
        await world.gang("g", members=2, gpus=1)
        await asyncio.sleep(30)
        before = (await client.list(PodGroup)).resource_version
        await asyncio.sleep(600)
        assert (await client.list(PodGroup)).resource_version == before


@virtual
async def test_pods_of_kube_scheduler_are_served_where_none_runs() -> None:
    """A plain pod is bound directly; a gang by Workload waits until all of it fits."""
    async with stage(*PARTS) as world:
        client = world.client
        await world.node("n1", gpus=4)
        await client.create(Pod, make.pod("plain").gpus(1).build(), "default")
        spec = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}
        await client.create(WorkloadV1alpha1, {"metadata": {"name": "w"}, "spec": spec}, "default")
        for index in range(2):
            pod = make.pod(f"w-{index}").gpus(2).build()
            pod["spec"]["workloadRef"] = {"name": "w", "podGroup": "workers"}
            await client.create(Pod, pod, "default")
        await asyncio.sleep(10)
        assert await world.placed("plain") == {"plain": "n1"}
        assert await world.placed("w") == {"w-0": "", "w-1": ""}
        waiting = await client.get(Pod, ("default", "w-0"))
        assert [condition.reason for condition in waiting.status.conditions] == ["Unschedulable"]
        await world.node("n2", gpus=2)
        await asyncio.sleep(10)
        assert set((await world.placed("w")).values()) == {"n1", "n2"}


@virtual
async def test_the_stand_in_leaves_pods_to_a_real_kube_scheduler() -> None:
    """Whoever holds the lease serves these pods; the stand-in waits for it."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client = world.client
        await world.node("n1")
        await client.create(Pod, make.pod("plain").gpus(1).build(), "default")
        await asyncio.sleep(60)
        assert await world.placed("plain") == {"plain": ""}


@virtual
async def test_a_pod_that_cannot_be_bound_rests_and_others_run() -> None:
    """Its request is taken away, other nodes are tried, and each round waits longer than the one before."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await world.node("n1")
        await world.node("n2")
        tried: list[tuple[float, bytes]] = []

        def fault(sent: Request) -> Response | None:
            if "/pods/bad-0/binding" not in sent.path:
                return None
            tried.append((asyncio.get_running_loop().time(), sent.body))
            return broken("Forbidden", 403)

        world.transport.fault = fault
        await world.gang("bad", members=1, gpus=2)
        await world.gang("good", members=2, gpus=4)
        await asyncio.sleep(1200)
        assert "" not in (await world.placed("good")).values()
        assert {b"n1" in body for _, body in tried} == {True, False}
        rounds = [moment for number, (moment, _) in enumerate(tried) if number % 3 == 0]
        pauses = [round(later - earlier) for earlier, later in pairwise(rounds)]
        assert pauses == sorted(pauses)
        assert 5 <= len(rounds) <= 12


@virtual
async def test_nobody_goes_for_a_pod_of_kube_scheduler() -> None:
    """Without a priority of its own it waits for room, as it would there."""
    async with stage(*PARTS) as world:
        await world.node("n1", gpus=2)
        for name in ("a", "b"):
            await world.gang(name, members=1, gpus=1)
        await asyncio.sleep(5)
        for name in ("a-0", "b-0"):
            await world.client.patch(Pod, ("default", name), {"status": {"phase": "Running"}}, subresource="status")
        await world.client.create(Pod, make.pod("plain").gpus(1).build(), "default")
        await asyncio.sleep(60)
        assert await world.placed("") == {"a-0": "n1", "b-0": "n1", "plain": ""}
        pods = [await world.client.get(Pod, ("default", name)) for name in ("a-0", "b-0")]
        assert [pod.metadata.deletion_timestamp for pod in pods] == [None, None]
        await world.client.delete(Pod, ("default", "a-0"), grace_seconds=0)
        await asyncio.sleep(5)
        assert await world.placed("") == {"b-0": "n1", "plain": "n1"}


@virtual
async def test_pods_get_the_devices_they_claim() -> None:
    """Two devices on one node: two pods get one each, a third waits until one is free."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client = world.client
        for name in ("n1", "n2"):
            await world.node(name, gpus=0)
        expression = 'device.driver == "gpu.example.com"'
        device_class = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
        await client.create(DeviceClass, device_class)
        offered = {
            "driver": "gpu.example.com",
            "nodeName": "n2",
            "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "g0"}, {"name": "g1"}],
        }
        await client.create(ResourceSlice, {"metadata": {"name": "n2"}, "spec": offered})
        wish = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        for name in ("a", "b", "c"):
            await client.create(ResourceClaim, {"metadata": {"name": name}, "spec": wish}, "default")
            spec = {"minMember": 1, "queue": "q"}
            await client.create(PodGroup, {"metadata": {"name": name}, "spec": spec}, "default")
            built = make.pod(name).scheduler("kai-scheduler").annotate("pod-group-name", name).build()
            built["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
            await client.create(Pod, built, "default")
            await asyncio.sleep(1)
        assert await world.placed("") == {"a": "n2", "b": "n2", "c": ""}
        held = [(await client.get(ResourceClaim, ("default", name))).status.allocation for name in ("a", "b")]
        assert [allocation.devices.results[0].device for allocation in held if allocation is not None] == ["g0", "g1"]
        await client.delete(Pod, ("default", "a"), grace_seconds=0)
        await client.patch(
            ResourceClaim, ("default", "a"), {"status": {"allocation": None, "reservedFor": None}}, subresource="status"
        )
        await asyncio.sleep(600)
        assert (await world.placed("c")) == {"c": "n2"}


@virtual
async def test_extras_that_do_not_fit_say_so_themselves() -> None:
    """The gang runs and its group is well; the pods beyond its minimum are Unschedulable, not gated for ever."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await world.node("n1", gpus=4)
        await world.gang("g", members=3, gpus=2, minimum=2)
        await asyncio.sleep(10)
        pods = {pod.name: pod for pod in (await world.client.list(Pod, "default")).items}
        waiting = [pod for pod in pods.values() if not pod.spec.node_name]
        assert len(waiting) == 1
        assert [(condition.type, condition.reason) for condition in waiting[0].status.conditions] == [
            ("PodScheduled", "Unschedulable")
        ]
        assert (await world.client.get(PodGroup, ("default", "g"))).status.scheduling_conditions == ()


@virtual
async def test_a_pod_is_not_told_that_another_does_not_fit() -> None:
    """Extras of one gang wait for the same, and each is told of itself."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await world.node("n1", gpus=2)
        await world.gang("g", members=3, gpus=2, minimum=1)
        await asyncio.sleep(10)
        waiting = [pod for pod in (await world.client.list(Pod, "default")).items if not pod.spec.node_name]
        assert len(waiting) == 2
        for pod in waiting:
            assert f"not found for pod default/{pod.name} " in pod.status.conditions[0].message
        events = [
            event for event in (await world.client.list(Event, "default")).items if event.reason == "Unschedulable"
        ]
        for event in events:
            assert f"not found for pod default/{event.involved_object.name} " in event.message


async def _full(world: Stage) -> None:
    """Two nodes full of pods that may not be evicted, and a gang that waits for one of them."""
    await world.client.patch(Queue, "q", {"spec": {"resources": {"gpu": {"quota": 16}}}})
    for name in ("n1", "n2"):
        await world.node(name, gpus=2)
    for number in range(4):
        await world.gang(f"small{number}", members=1, gpus=1, preemptibility="non-preemptible")
    await asyncio.sleep(5)
    await world.gang("large", members=2, gpus=1)


@virtual
async def test_a_reservation_outlives_the_scheduler() -> None:
    """A new scheduler goes on keeping the nodes: a pod that came later and may not be evicted does not get them."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await _full(world)
        await asyncio.sleep(400)
        record = await world.client.get(ConfigMap, ("default", "kai-scheduler-record"))
        (kept,) = json.loads(record.data["reservations"])["held"]
        assert kept["job"] == "default/large"
        group = await world.client.get(PodGroup, ("default", "large"))
        assert "1 nodes are kept for this gang" in group.status.scheduling_conditions[0].message
        await world.stop()
        where = await world.placed("small")
        (first, second) = [name for name, node in where.items() if node == kept["nodes"][0]]
        await world.client.delete(Pod, ("default", first), grace_seconds=0)
        await world.gang("later", members=1, gpus=1, preemptibility="non-preemptible")
        await world.start()
        await asyncio.sleep(5)
        assert await world.placed("later") == {"later-0": ""}
        await world.client.delete(Pod, ("default", second), grace_seconds=0)
        await asyncio.sleep(5)
        assert set((await world.placed("large")).values()) == set(kept["nodes"])


@virtual
async def test_a_deleted_gang_gives_its_nodes_free() -> None:
    """Whoever was kept off them is placed at once, and the record forgets the gang."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await _full(world)
        await asyncio.sleep(400)
        await world.gang("later", members=1, gpus=1, preemptibility="non-preemptible")
        record = await world.client.get(ConfigMap, ("default", "kai-scheduler-record"))
        (kept,) = json.loads(record.data["reservations"])["held"]
        where = await world.placed("small")
        gone = next(name for name, node in where.items() if node == kept["nodes"][0])
        await world.client.delete(Pod, ("default", gone), grace_seconds=0)
        await asyncio.sleep(5)
        assert await world.placed("later") == {"later-0": ""}
        for number in range(2):
            await world.client.delete(Pod, ("default", f"large-{number}"), grace_seconds=0)
        await world.client.delete(PodGroup, ("default", "large"))
        await asyncio.sleep(5)
        assert await world.placed("later") == {"later-0": kept["nodes"][0]}
        record = await world.client.get(ConfigMap, ("default", "kai-scheduler-record"))
        assert json.loads(record.data["reservations"])["held"] == []
