"""What PodGroups and Queues report of themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.conditions import find
from spinney.api.core import Event, Node, Pod
from spinney.api.kai import PodGroup, PodGroupSpec, Queue
from spinney.api.meta import Json, convert
from spinney.api.resource import ResourceClaim
from spinney.api.scheduling import PriorityClass
from spinney.kube.client.client import Patch
from spinney.services.podgroups.controller import COMPONENT as PODGROUPS
from spinney.services.podgroups.controller import missing_members, phase_of
from spinney.services.pods.usage import allocated, gpu_memory, is_gpu, requested
from spinney.services.queues.controller import COMPONENT as QUEUES
from tests import make
from tests.services.stage import CRD, Stage, stage, virtual

GPU = labels.GPU_RESOURCE


def pod(node: str = "", **annotations: str) -> Pod:
    """A pod that may share GPUs; with a node it received what it asked for."""
    built = make.pod("p").annotations(**annotations)
    if node:
        built.on(node).annotate(labels.RECEIVED_RESOURCE_TYPE, "Fraction")
    return built.typed(Pod)


def node(**marks: str) -> Node:
    """A node whose labels tell the size of its GPUs; underscores stand for dots, double ones for slashes."""
    built = make.node("n")
    for key, value in marks.items():
        built.label(key.replace("__", "/").replace("_", "."), value)
    return convert(Node, built.build())


@pytest.mark.parametrize(
    ("wish", "asked", "held"),
    [
        ({"gpu_fraction": "0.25"}, {GPU: 250}, {GPU: 250}),
        ({"gpu_fraction": "0.25", "gpu_fraction_num_devices": "4"}, {GPU: 1000}, {GPU: 1000}),
        ({"gpu_memory": "4000"}, {"run.ai/gpu.memory": 4_000_000}, {GPU: 250}),
        ({"gpu_memory": "4000", "gpu_fraction_num_devices": "2"}, {"run.ai/gpu.memory": 8_000_000}, {GPU: 500}),
    ],
)
def test_parts_of_gpus_count_on_every_device(wish: dict[str, str], asked: Json, held: Json) -> None:
    """Asked for and held alike; memory is held as a share of the node's GPUs."""
    sized = node(nvidia_com__gpu_memory="16000")
    assert requested(pod(**wish)) == asked
    assert allocated(pod("n", **wish), sized) == held


@pytest.mark.parametrize("key", ["gpu_fraction", "gpu_memory"])
def test_an_annotation_that_cannot_be_read_stopped_the_status_of_its_group(key: str) -> None:
    """Pods of other schedulers pass our admission by; such a pod counts without the share it names."""
    assert not any(requested(pod(**{key: "abc"})).values())
    assert not any(allocated(pod("n", **{key: "abc"}), node()).values())


@pytest.mark.parametrize(
    ("marks", "mebibytes"),
    [
        ({"nvidia_com__gpu_memory": "80000"}, 80000),
        ({"beta_amd_com__gpu_vram_64G": "8"}, 61035),
        ({"beta_amd_com__gpu_vram_16Gi": "1"}, 16384),
        ({}, 0),
    ],
)
def test_the_memory_of_a_nodes_gpus(marks: dict[str, str], mebibytes: int) -> None:
    """NVIDIA's label has it as its value, AMD's in its key."""
    assert gpu_memory(node(**marks)) == mebibytes


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nvidia.com/gpu", True),
        ("amd.com/gpu", True),
        ("gpu.nvidia.com", True),
        ("run.ai/gpu.memory", False),
        ("cpu", False),
    ],
)
def test_which_resources_are_gpus(name: str, counts: bool) -> None:
    """Extended resources and device classes; not their memory."""
    assert is_gpu(name) == counts


TREE: list[Json] = [
    {"name": "prefill", "minSubGroup": 1},
    {"name": "prefill-0", "parent": "prefill", "minMember": 2},
    {"name": "prefill-1", "parent": "prefill", "minMember": 2},
    {"name": "decode", "minMember": 1},
]


@pytest.mark.parametrize(
    ("spec", "placed", "missing"),
    [
        ({"minMember": 2}, [""], "1 of at least 2 pods have a node"),
        ({"minMember": 2}, ["", ""], ""),
        ({"minMember": 0}, [], ""),
        ({}, [], "no pod has a node"),
        ({"subGroups": TREE}, ["prefill-0", "prefill-0", "decode"], ""),
        ({"subGroups": TREE}, ["prefill-0", "prefill-0"], "0 of at least 1 pods of decode have a node"),
        (
            {"subGroups": TREE},
            ["prefill-0", "prefill-1", "decode"],
            "1 of at least 2 pods of prefill-0 have a node; 1 of at least 2 pods of prefill-1 have a node",
        ),
        ({"subGroups": TREE, "minSubGroup": 1}, ["decode"], ""),
    ],
)
def test_what_a_gang_lacks(spec: Json, placed: list[str], missing: str) -> None:
    """By its minimum, or by its tree: a leaf needs pods, a parent as many of its children as it says, or all."""
    assert missing_members(convert(PodGroupSpec, spec), placed) == missing


@pytest.mark.parametrize(
    ("phases", "phase"),
    [
        ([], "Pending"),
        (["Pending", "Pending", "Pending"], "Pending"),
        (["bound", "Pending", "Pending"], "Pending"),
        (["bound", "bound", "Pending"], "Scheduling"),
        (["Running", "bound", "Pending"], "Scheduling"),
        (["Running", "Running", "Pending"], "Running"),
        (["Succeeded", "Running", "Pending"], "Running"),
        (["Failed", "Running", "Pending"], "Pending"),
        (["Succeeded", "Succeeded", "Succeeded"], "Succeeded"),
        (["Succeeded", "Failed", "Succeeded"], "Failed"),
    ],
)
def test_the_phase_of_a_group(phases: list[str], phase: str) -> None:
    """Of three pods at least two: Pending until they have nodes, Scheduling until they run, then how all ended."""
    pods = [
        make.pod(f"p{number}")
        .on("" if state == "Pending" else "n")
        .status(phase="Pending" if state == "bound" else state)
        for number, state in enumerate(phases)
    ]
    assert phase_of(PodGroupSpec(min_member=2), [pod.typed(Pod) for pod in pods]) == phase


async def grouped(world: Stage, name: str, gpus: int = 1, on: str = "", **spec: Any) -> None:
    """A pod in the group `g`."""
    document = make.pod(name).scheduler("kai-scheduler").gpus(gpus).annotate(labels.POD_GROUP, "g").build()
    document["spec"].update(spec, **({"nodeName": on} if on else {}))
    await world.client.create(Pod, document, "default")


@virtual
async def test_a_group_tells_what_it_asks_for_and_holds() -> None:
    """What waits is asked for, what has a node is held; a group that becomes preemptible holds nothing for good."""
    classes = {"metadata": {"name": "build"}, "value": 100}
    async with stage((PODGROUPS, None), before=[(PriorityClass.resource, classes, "")]) as world:
        await world.node("n1")
        spec = {"minMember": 2, "queue": "q", "priorityClassName": "build"}
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": spec}, "default")
        await grouped(world, "waits", gpus=2)
        await grouped(world, "runs", gpus=1, on="n1")
        await asyncio.sleep(10)
        group = await world.client.get(PodGroup, ("default", "g"))
        status = group.status.resources_status
        assert (status.requested[GPU], status.allocated[GPU], status.allocated_non_preemptible[GPU]) == ("3", "1", "1")
        scheduled = next(found for found in group.status.conditions if found.type == "Scheduled")
        assert (scheduled.status, scheduled.message) == ("False", "1 of at least 2 pods have a node")
        await world.client.patch(PodGroup, ("default", "g"), {"spec": {"preemptibility": "preemptible"}})
        await asyncio.sleep(10)
        status = (await world.client.get(PodGroup, ("default", "g"))).status.resources_status
        assert (status.allocated[GPU], status.allocated_non_preemptible) == ("1", {})


@virtual
async def test_no_write_is_made_for_a_phase_that_the_definition_drops() -> None:
    """Upstream's definition of PodGroups has no phase: everything else is reported, and then nothing is written."""
    async with stage((PODGROUPS, None)) as world:
        phase = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/phase"
        patch = [{"op": "remove", "path": phase}]
        await world.client.patch(CRD, "podgroups.scheduling.run.ai", patch, kind=Patch.JSON)
        await world.node("n1")
        await world.client.create(
            PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "q"}}, "default"
        )
        await grouped(world, "a", on="n1")
        await asyncio.sleep(10)
        group = await world.client.get(PodGroup, ("default", "g"))
        assert (group.status.phase, group.status.resources_status.allocated[GPU]) == ("", "1")
        writes = world.host.runtimes["podgroup-controller"].client.writes
        before = writes.total()
        await world.client.patch(Pod, ("default", "a"), {"status": {"phase": "Running"}}, subresource="status")
        await asyncio.sleep(10)
        assert writes.total() == before


@virtual
async def test_what_a_gang_lacks_stays_true() -> None:
    """The message follows; the time is that of the last change of status, and others' conditions are kept whole."""
    async with stage((PODGROUPS, None)) as world:
        await world.node("n1")
        body = {"metadata": {"name": "g"}, "spec": {"minMember": 3, "queue": "q"}}
        await world.client.create(PodGroup, body, "default")
        theirs = {"type": "Theirs", "status": "True", "transitionID": "7", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await world.client.patch(PodGroup, ("default", "g"), {"status": {"conditions": [theirs]}}, subresource="status")
        seen = []
        for name in ("a", "b"):
            await grouped(world, name, on="n1")
            await asyncio.sleep(10)
            group = await world.client.get(PodGroup, ("default", "g"))
            seen.append(next(found for found in group.status.conditions if found.type == "Scheduled"))
        assert [found.message for found in seen] == [f"{n} of at least 3 pods have a node" for n in (1, 2)]
        assert seen[0].last_transition_time == seen[1].last_transition_time
        other = next(found for found in group.status.conditions if found.type == "Theirs")
        assert (other.transition_id, str(other.last_transition_time)[:10]) == ("7", "2026-01-01")


@virtual
async def test_a_pod_whose_group_is_not_there_is_told() -> None:
    """Nobody else knows of it; once the group is there nothing more is said."""
    async with stage((PODGROUPS, None)) as world:
        await grouped(world, "lost")
        await asyncio.sleep(10)
        told = [event.message for event in (await world.client.list(Event, "default")).items]
        assert told == ["PodGroup g, which annotation pod-group-name names, does not exist; the pod waits for it"]
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
        await world.client.patch(Pod, ("default", "lost"), {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(10)
        assert len((await world.client.list(Event, "default")).items) == 1


@virtual
async def test_claimed_gpus_count_once() -> None:
    """By their device class; two pods of a group that share a claim hold its devices together."""
    async with stage((PODGROUPS, None)) as world:
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
        requests = [
            {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}},
            {"name": "nic", "exactly": {"deviceClassName": "rdma"}},
        ]
        spec = {"devices": {"requests": requests}}
        await world.client.create(ResourceClaim, {"metadata": {"name": "c"}, "spec": spec}, "default")
        for name in ("a", "b"):
            await grouped(world, name, gpus=0, resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        await asyncio.sleep(10)
        status = (await world.client.get(PodGroup, ("default", "g"))).status.resources_status
        assert (status.requested, status.allocated) == ({"gpu.nvidia.com": "2"}, {})


async def reported(world: Stage, name: str, queue: str, gpus: str) -> None:
    """A group of a queue that says what it holds."""
    await world.client.create(PodGroup, {"metadata": {"name": name}, "spec": {"queue": queue}}, "default")
    held = {"resourcesStatus": {"requested": {GPU: gpus}, "allocated": {GPU: gpus}}}
    await world.client.patch(PodGroup, ("default", name), {"status": held}, subresource="status")


async def holds(world: Stage) -> dict[str, str]:
    """What each queue holds."""
    await asyncio.sleep(10)
    return {found.name: found.status.allocated.get(GPU, "0") for found in (await world.client.list(Queue)).items}


@virtual
async def test_usage_goes_up_the_tree() -> None:
    """A queue holds what everything below it holds, also when groups or queues move and go."""
    async with stage((QUEUES, None)) as world:
        await world.queue("left", "q")
        await world.queue("right", "q")
        await world.queue("leaf", "left")
        await reported(world, "a", "leaf", "2")
        await reported(world, "b", "right", "3")
        assert await holds(world) == {"q": "5", "left": "2", "leaf": "2", "right": "3"}
        await world.client.patch(PodGroup, ("default", "a"), {"spec": {"queue": "right"}})
        assert await holds(world) == {"q": "5", "left": "0", "leaf": "0", "right": "5"}
        await world.client.delete(PodGroup, ("default", "b"))
        assert await holds(world) == {"q": "2", "left": "0", "leaf": "0", "right": "2"}
        await world.client.patch(Queue, "right", {"spec": {"parentQueue": "left"}})
        assert await holds(world) == {"q": "2", "left": "2", "leaf": "0", "right": "2"}
        assert (await world.client.get(Queue, "left")).status.child_queues == ("leaf", "right")


@virtual
async def test_queues_say_when_they_hold_too_much_or_hang_in_the_air() -> None:
    """`OverQuota` above the GPU quota, `Orphan` while the parent does not exist."""
    async with stage((QUEUES, None)) as world:
        await world.queue("lost", "nowhere", quota=1)
        await reported(world, "a", "lost", "2")
        await asyncio.sleep(10)
        assert await said(world, "lost") == {"Orphan": "True", "OverQuota": "True"}
        await world.queue("nowhere")
        await world.client.patch(Queue, "lost", {"spec": {"resources": {"gpu": {"quota": 2}}}})
        await asyncio.sleep(10)
        assert await said(world, "lost") == {"Orphan": "False", "OverQuota": "False"}


@virtual
async def test_what_a_queue_holds_too_much_of_stays_true() -> None:
    """The message counts along, in the queue's units; the time stays that of the moment it went over."""
    async with stage((QUEUES, None)) as world:
        seen = []
        for name in ("a", "b"):
            await reported(world, name, "q", "1500m")
            await asyncio.sleep(10)
            seen.append(find((await world.client.get(Queue, "q")).status.conditions, "OverQuota"))
        assert [found.message for found in seen if found] == ["1.5 GPUs held, quota 0", "3 GPUs held, quota 0"]
        assert len({found.last_transition_time for found in seen if found}) == 1


async def said(world: Stage, name: str) -> dict[str, str]:
    """A queue's conditions."""
    conditions = (await world.client.get(Queue, name)).status.conditions
    found = {kind: find(conditions, kind) for kind in ("Orphan", "OverQuota")}
    return {kind: condition.status for kind, condition in found.items() if condition is not None}
