"""Evictions: what is written about them, and when they are not made."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.core import ConfigMap, Event, Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Resource
from spinney.api.scheduling import PriorityClass
from spinney.api.times import rfc3339_micro
from spinney.kube.client.transport import Request, Response
from spinney.scheduler.service import component
from spinney.scheduler.service.loop import Scheduler
from spinney.scheduler.state import status as st
from spinney.scheduler.state.tasks import Task
from spinney.sim.loop import clock
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import Stage, broken, stage
from tests.virtual_time import virtual


async def low_and_high(world: Stage) -> None:
    """Two priority classes, and a node."""
    for name, value in (("low", 10), ("high", 90)):
        await world.client.create(PriorityClass, {"metadata": {"name": name}, "value": value})
    await world.node("n1", gpus=4)


async def preempted(world: Stage, members: int = 1, **urgent: str) -> None:
    """The gang `lesser` runs on the only node, and `urgent` comes."""
    await low_and_high(world)
    await world.gang("lesser", members=members, gpus=4 // members, priorityClassName="low")
    await asyncio.sleep(5)
    for index in range(members):
        running = {"status": {"phase": "Running"}}
        await world.client.patch(Pod, ("default", f"lesser-{index}"), running, subresource="status")
    await world.gang("urgent", members=1, gpus=4, priorityClassName="high", **urgent)
    await asyncio.sleep(5)


def notes_an_eviction(request: Request) -> bool:
    """Whether a request notes on a group when it was evicted."""
    return request.method == "PATCH" and labels.LAST_EVICTION.encode() in (request.body or b"")


async def noted_eviction(world: Stage) -> str:
    """What the group of `lesser` says of its last eviction."""
    group = await world.client.get(PodGroup, ("default", "lesser"))
    return group.metadata.annotations.get(labels.LAST_EVICTION, "")


@virtual
async def test_a_crash_after_an_eviction_lost_when_it_was() -> None:
    """The note on the group is written before the pod goes: the delay before it may evict others counts from it."""

    async def evicting(request: Request) -> None:
        if request.path.endswith("/eviction"):
            seen.append(await noted_eviction(world))

    seen: list[str] = []
    async with stage(*PARTS) as world:
        world.transport.before = evicting
        await preempted(world)
        assert seen == [await noted_eviction(world)]
        assert seen != [""]


@virtual
async def test_a_refused_note_of_an_eviction_was_never_written_again() -> None:
    """The pod is evicted all the same; the note follows when the API server takes it, with the time of the eviction."""

    async with stage(*PARTS) as world:
        world.transport.fault = lambda request: broken() if notes_an_eviction(request) else None
        await preempted(world)
        evicted_by = rfc3339_micro(clock().now())
        assert await noted_eviction(world) == ""
        world.transport.fault = lambda request: None
        await asyncio.sleep(20)
        assert "" < await noted_eviction(world) < evicted_by


@virtual
async def test_a_refused_note_of_staleness_was_not_written_before_something_else_changed() -> None:
    """The note follows when the API server takes it."""

    async def stale_since() -> str:
        group = await world.client.get(PodGroup, ("default", "g"))
        return group.metadata.annotations.get(labels.STALE_SINCE, "")

    def refuse(request: Request) -> Response | None:
        notes_staleness = request.method == "PATCH" and labels.STALE_SINCE.encode() in (request.body or b"")
        return broken() if notes_staleness else None

    async with stage(*PARTS) as world:
        await world.node("n1")
        await world.gang("g", members=2, gpus=1)
        await asyncio.sleep(5)
        for name in ("g-0", "g-1"):
            await world.client.patch(Pod, ("default", name), {"status": {"phase": "Running"}}, subresource="status")
        world.transport.fault = refuse
        await world.client.delete(Pod, ("default", "g-0"), grace_seconds=0)
        await asyncio.sleep(5)
        assert await stale_since() == ""
        world.transport.fault = lambda request: None
        await asyncio.sleep(10)
        assert await stale_since() != ""


@virtual
async def test_a_group_that_cannot_be_read_kept_its_pods_from_being_evicted() -> None:
    """The note is written without a look at what comes back: an exception left the room promised for good."""

    def unreadable(request: Request) -> Response | None:
        if not notes_an_eviction(request):
            return None
        return Response(200, b'{"metadata": {"name": "lesser", "namespace": "default"}, "spec": {"minMember": "x"}}')

    async with stage(*PARTS) as world:
        world.transport.fault = unreadable
        await preempted(world)
        lesser = await world.client.get(Pod, ("default", "lesser-0"))
        assert lesser.metadata.deletion_timestamp is not None


@virtual
async def test_pods_were_evicted_for_a_gang_that_was_deleted_meanwhile() -> None:
    """The victims of a decision run on where the gang it was made for is deleted before they are evicted."""

    async def deleted_meanwhile(request: Request) -> None:
        if notes_an_eviction(request) and "urgent-0" in await world.placed("urgent"):
            await world.client.delete(Pod, ("default", "urgent-0"), grace_seconds=0)
            await asyncio.sleep(0.5)

    async with stage(*PARTS) as world:
        world.transport.before = deleted_meanwhile
        await preempted(world)
        lesser = await world.client.get(Pod, ("default", "lesser-0"))
        assert lesser.metadata.deletion_timestamp is None
        await world.gang("small", members=1, gpus=1)
        await asyncio.sleep(5)
        assert await world.placed("small") == {"small-0": ""}


@virtual
async def test_evictions_stopped_halfway_because_the_next_plan_tried_a_place_for_their_beneficiary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan works on the state in its thread while victims of the last one are evicted one by one."""
    schedulers: list[Scheduler] = []
    trials: list[Task] = []

    class Known(Scheduler):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            schedulers.append(self)

    async def evicting(request: Request) -> None:
        if not request.path.endswith("/eviction"):
            return
        if trials:
            trials.pop().status = st.PENDING
        else:
            (task,) = schedulers[0].state.jobs["default/urgent"].tasks[0].values()
            task.status = st.PIPELINED
            trials.append(task)

    monkeypatch.setattr(component, "Scheduler", Known)
    async with stage(*PARTS) as world:
        world.transport.before = evicting
        await preempted(world, members=2)
        events = [event for event in (await world.client.list(Event, "default")).items if event.reason == "Evict"]
        together = {event.involved_object.name: event.metadata.annotations[labels.EVICTED_PODS] for event in events}
        assert (together["lesser-0"], together["lesser-1"]) == ("2", "2")


@virtual
async def test_an_eviction_forgot_whose_pod_it_was_because_the_group_went_meanwhile() -> None:
    """What an eviction costs, and whom, is read when it is decided."""

    async def evicting(request: Request) -> None:
        if request.path.endswith("/eviction"):
            await world.client.delete(PodGroup, ("default", "lesser"))
            await asyncio.sleep(1)

    async with stage(*PARTS) as world:
        world.transport.before = evicting
        await preempted(world)
        events = [event for event in (await world.client.list(Event, "default")).items if event.reason == "Evict"]
        (costs,) = [event.metadata.annotations for event in events if event.involved_object.kind == "Pod"]
        assert (costs[labels.EVICTED_QUEUE], costs[labels.EVICTED_GPUS]) == ("q", "4")


@virtual
async def test_an_urgent_gang_takes_the_place_of_a_lesser_one() -> None:
    """Within a queue the lower priority is evicted, and its place is taken."""
    async with stage(*PARTS) as world:
        client = world.client
        await preempted(world)
        lesser = [pod for pod in (await client.list(Pod, "default")).items if pod.name == "lesser-0"]
        assert not lesser or lesser[0].metadata.deletion_timestamp is not None
        if lesser:
            await client.delete(Pod, ("default", "lesser-0"), grace_seconds=0)
        await asyncio.sleep(5)
        assert await world.placed("urgent") == {"urgent-0": "n1"}


@virtual
async def test_evictions_are_remembered() -> None:
    """Who had to go, when, by which action and for whom: in a ConfigMap of the shard."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await preempted(world)
        await asyncio.sleep(5)
        record = await world.client.get(ConfigMap, ("default", "kai-scheduler-record"))
        entries = json.loads(record.data["decisions"])
        assert [(entry["action"], entry["gang"], entry["beneficiary"]) for entry in entries] == [
            ("preempt", "default/lesser", "default/urgent")
        ]
        events = [event for event in (await world.client.list(Event, "default")).items if event.reason == "Evict"]
        assert {event.involved_object.kind for event in events} == {"Pod", "PodGroup"}
        message = "Pod lesser-0 was evicted by preempt for default/urgent, which has priority 90 over 10"
        assert {event.message for event in events} == {message}
        upstream = {
            "num-evicted-pods": "1",
            "evictor-action-type": "preempt",
            "evictor-pod-group-name": "urgent",
            "evictor-pod-group-namespace": "default",
        }
        assert upstream.items() <= events[0].metadata.annotations.items()
        assert events[0].metadata.annotations["spinney.dev/evicted-gpus"] == "4"
        assert events[0].metadata.annotations["spinney.dev/evicted-instead-of"] == "0"


@virtual
async def test_an_eviction_tells_how_many_others_could_have_given_way() -> None:
    """Of three lesser gangs one is evicted; one of equal priority could never be."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await low_and_high(world)
        for name, priority in (("a", "low"), ("b", "low"), ("c", "low"), ("equal", "high")):
            await world.gang(name, members=1, gpus=1, priorityClassName=priority)
            await asyncio.sleep(5)
            patch = {"status": {"phase": "Running"}}
            await world.client.patch(Pod, ("default", f"{name}-0"), patch, subresource="status")
        await world.gang("urgent", members=1, gpus=1, priorityClassName="high")
        await asyncio.sleep(10)
        events = [event for event in (await world.client.list(Event, "default")).items if event.reason == "Evict"]
        assert {event.metadata.annotations["spinney.dev/evicted-instead-of"] for event in events} == {"2"}


@virtual
async def test_an_eviction_is_told_on_the_owner_of_the_pod() -> None:
    """`kubectl describe job` shows it: the pod and its own events may be gone."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await low_and_high(world)
        await world.gang("lesser", members=1, gpus=4, priorityClassName="low")
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
        made = {"metadata": {"name": "train"}, "spec": {"template": template, "suspend": True}}
        uid = (await world.client.create(Resource("batch/v1", "Job", "jobs"), made, "default"))["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
        await world.client.patch(Pod, ("default", "lesser-0"), {"metadata": {"ownerReferences": [owner]}})
        await asyncio.sleep(5)
        await world.client.patch(Pod, ("default", "lesser-0"), {"status": {"phase": "Running"}}, subresource="status")
        await world.gang("urgent", members=1, gpus=4, priorityClassName="high")
        await asyncio.sleep(10)
        events = [event for event in (await world.client.list(Event, "default")).items if event.reason == "Evict"]
        (job,) = [event.involved_object for event in events if event.involved_object.kind == "Job"]
        assert (job.api_version, job.name, job.uid, job.namespace) == ("batch/v1", "train", uid, "default")


@virtual
async def test_a_delay_ends_without_any_event() -> None:
    """A gang that may not evict yet does so the moment its delay is over, though nothing happens then."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await preempted(world, preemptionDelay="10m")
        await asyncio.sleep(585)
        lesser = await world.client.get(Pod, ("default", "lesser-0"))
        assert lesser.metadata.deletion_timestamp is None
        await asyncio.sleep(15)
        remaining = [pod for pod in (await world.client.list(Pod, "default")).items if pod.name == "lesser-0"]
        assert not remaining or remaining[0].metadata.deletion_timestamp is not None
