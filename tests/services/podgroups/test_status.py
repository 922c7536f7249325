"""The status of PodGroups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.core import Event, Node, Pod
from spinney.api.kai import PodGroup, PodGroupSpec
from spinney.api.meta import Json, convert
from spinney.api.resource import ResourceClaim
from spinney.api.scheduling import PriorityClass
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Patch
from spinney.services.podgroups.controller import COMPONENT as PODGROUPS
from spinney.services.podgroups.controller import missing_members, phase_of
from tests import make
from tests.services.stage import CRD, Stage, stage
from tests.virtual_time import virtual

GPU = labels.GPU_RESOURCE

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
        scheduled = next(condition for condition in group.status.conditions if condition.type == "Scheduled")
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
            seen.append(next(condition for condition in group.status.conditions if condition.type == "Scheduled"))
        assert [condition.message for condition in seen] == [f"{n} of at least 3 pods have a node" for n in (1, 2)]
        assert seen[0].last_transition_time == seen[1].last_transition_time
        other = next(condition for condition in group.status.conditions if condition.type == "Theirs")
        assert (other.transition_id, str(other.last_transition_time)[:10]) == ("7", "2026-01-01")


@virtual
async def test_a_pod_whose_group_is_not_there_is_told() -> None:
    """Nobody else knows of it; once the group is there nothing more is said."""
    async with stage((PODGROUPS, None)) as world:
        await grouped(world, "lost")
        await asyncio.sleep(10)
        messages = [event.message for event in (await world.client.list(Event, "default")).items]
        assert messages == ["PodGroup g, which annotation pod-group-name names, does not exist; the pod waits for it"]
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


@virtual
async def test_what_claims_hold_was_not_told_once_they_were_known_late() -> None:
    """A claim that is allocated after the last change of its pods changes their group."""
    async with stage((PODGROUPS, None)) as world:
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
        requests = [{"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
        await world.client.create(ResourceClaim, claim, "default")
        await grouped(world, "a", gpus=0, resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        await asyncio.sleep(10)
        results = [{"request": "gpus", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}]
        allocated = {"status": {"allocation": {"devices": {"results": results}}}}
        await world.client.patch(ResourceClaim, ("default", "c"), allocated, subresource="status")
        await asyncio.sleep(10)
        status = (await world.client.get(PodGroup, ("default", "g"))).status.resources_status
        assert status.allocated == {"gpu.nvidia.com": "2"}


@pytest.mark.parametrize("late", [{"metadata": {"name": "build"}}, {"metadata": {"name": "x"}, "globalDefault": True}])
@virtual
async def test_a_priority_class_that_came_late_did_not_count(late: Json) -> None:
    """What a group holds for good follows from its class, or the default one, whenever that comes."""
    async with stage((PODGROUPS, None)) as world:
        await world.node("n1")
        spec = {"minMember": 1, "queue": "q", "priorityClassName": "build"}
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": spec}, "default")
        await grouped(world, "a", gpus=1, on="n1")
        await asyncio.sleep(10)
        await world.client.create(PriorityClass, {**late, "value": 100})
        await asyncio.sleep(10)
        status = (await world.client.get(PodGroup, ("default", "g"))).status.resources_status
        assert status.allocated_non_preemptible[GPU] == "1"


@virtual
async def test_the_size_of_gpus_that_was_known_late_did_not_count() -> None:
    """A part of a GPU by memory is told relative to the node's GPUs."""
    async with stage((PODGROUPS, None)) as world:
        await world.node("n1")
        await world.client.create(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}, "default")
        pod = make.pod("a").scheduler("kai-scheduler").annotate("pod-group-name", "g").on("n1")
        pod.annotate(labels.GPU_MEMORY, "4096").annotate(labels.RECEIVED_RESOURCE_TYPE, "Fraction")
        await world.client.create(Pod, pod.build(), "default")
        await asyncio.sleep(10)
        await world.client.patch(Node, "n1", {"metadata": {"labels": {labels.NODE_GPU_MEMORY: "16384"}}})
        await asyncio.sleep(10)
        status = (await world.client.get(PodGroup, ("default", "g"))).status.resources_status
        assert status.allocated[GPU] == "250m"


@virtual
async def test_every_node_that_came_was_compared_with_every_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand nodes of tens of thousands of pods stopped the process for seconds when it began to lead."""
    walks: list[type] = []

    def walked(cache: Cache[Any]) -> Iterator[Any]:
        walks.append(cache.of)
        return iter(cache._objects.values())

    async with stage((PODGROUPS, None)) as world:
        monkeypatch.setattr(Cache, "__iter__", walked)
        await world.client.create(Node, {"metadata": {"name": "n1", "labels": {labels.NODE_GPU_MEMORY: "16384"}}})
        await asyncio.sleep(10)
        assert Pod not in walks
