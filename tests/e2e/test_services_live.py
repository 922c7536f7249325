"""What KAI's documentation promises, on the embedded and on the real API server, each service with just its rights."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from spinney.api import labels
from spinney.api.core import ConfigMap, Node, Pod
from spinney.api.kai import PodGroup, Queue, SchedulingShard
from spinney.kube.errors import ApiError
from tests import make, worlds
from tests.e2e.installation import Installed
from tests.e2e.live import services

# One installation serves all tests of a world.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(lasting_cluster: worlds.Cluster) -> AsyncIterator[Installed]:
    """All services, and two nodes of 8 GPUs."""
    async with services(lasting_cluster, 2) as held:
        yield held


@pytest_asyncio.fixture(loop_scope="module")
async def held(installation: Installed) -> AsyncIterator[Installed]:
    """The installation, empty before and after."""
    yield installation
    await installation.clean()


async def test_a_gang_takes_back_what_its_queue_lent(held: Installed) -> None:
    """Jobs fill the cluster; a gang of a queue below its quota starts whole in their place; usage is told."""
    await held.queue("borrower", "default-parent-queue", quota=8)
    await held.queue("lender", "default-parent-queue", quota=8)
    await held.job("fill", pods=4, gpus=4, queue="borrower")
    await held.runs("fill", 4)
    await held.job("gang", pods=2, gpus=4, queue="lender", annotations={labels.BATCH_MIN_MEMBER: "2"})
    await held.runs("gang", 2)
    assert len(await held.running("fill")) == 2

    async def told() -> bool:
        queue = await held.client.get(Queue, "lender")
        return queue.status.allocated.get(labels.GPU_RESOURCE) == "8"

    await held.eventually(told)
    with pytest.raises(ApiError, match="1 workloads run in it"):
        await held.client.delete(Queue, "lender")
    await held.clean()
    for name in ("borrower", "lender"):
        await held.drop_queue(name)


async def test_priority_preempts(held: Installed) -> None:
    """A job of higher priority takes the place of a lower one of its queue, which comes back later."""
    await held.job("low", pods=2, gpus=8, queue="default-queue", labels={labels.PRIORITY_CLASS: "train"})
    await held.runs("low", 2)
    await held.job("high", pods=1, gpus=8, queue="default-queue", labels={labels.PRIORITY_CLASS: "build-preemptible"})
    await held.runs("high", 1)
    await held.runs("low", 1)
    await held.drop_job("high")
    await held.runs("low", 2)


async def test_an_elastic_job_grows_into_what_is_free(held: Installed) -> None:
    """Above its minimum a job takes what there is, and the rest when there is more."""
    await held.job("other", pods=1, gpus=8, queue="default-queue")
    await held.runs("other", 1)
    await held.job("elastic", pods=3, gpus=4, queue="default-queue", annotations={labels.BATCH_MIN_MEMBER: "2"})
    await held.runs("elastic", 2)
    await held.drop_job("other")
    await held.runs("elastic", 3)


async def test_fractions_share_one_gpu(held: Installed) -> None:
    """Admission wires two halves; they share a GPU, its index and one reservation pod, which goes with the last."""
    for name in ("left", "right"):
        await held.apply(_half(name))
    pods = [*(await held.runs("left", 1)), *(await held.runs("right", 1))]
    assert {pod.metadata.annotations[labels.RECEIVED_RESOURCE_TYPE] for pod in pods} == {"Fraction"}
    assert {pod.spec.runtime_class_name for pod in pods} == {"nvidia"}
    assert len({pod.metadata.labels[labels.GPU_GROUP] for pod in pods}) == 1
    reservations = await held.pods(namespace=labels.RESERVATION_NAMESPACE)
    assert len(reservations) == 1
    maps = [each for each in (await held.client.list(ConfigMap, "default")).items if "shared-gpu" in each.name]
    assert len(maps) == 4
    devices = {each.data[labels.ENV_VISIBLE_DEVICES] for each in maps if labels.ENV_VISIBLE_DEVICES in each.data}
    assert devices == {reservations[0].metadata.annotations[labels.RESERVED_GPU]}
    await held.clean()

    async def let_go() -> bool:
        left = (await held.client.list(ConfigMap, "default")).items
        shared = [each for each in left if "shared-gpu" in each.name]
        return not shared and not await held.pods(namespace=labels.RESERVATION_NAMESPACE)

    await held.eventually(let_go)


def _half(name: str) -> dict[str, object]:
    pod = make.pod(name).scheduler("kai-scheduler").annotate(labels.GPU_FRACTION, "0.5")
    return pod.label(labels.QUEUE, "default-queue").build()


async def test_jobs_move_together_for_a_larger_one(held: Installed) -> None:
    """Free GPUs that are scattered are brought together by moving small jobs, which run on elsewhere."""
    for index in range(4):
        await held.job(f"small-{index}", pods=1, gpus=4, queue="default-queue")
    first_of = {pod.spec.node_name: pod.name for pod in await held.runs("small", 4)}
    for pod in await held.running("small"):
        if pod.name != first_of[pod.spec.node_name]:
            await held.drop_job(pod.metadata.labels["job-name"])
    await held.runs("small", 2)
    await held.job("large", pods=1, gpus=8, queue="default-queue")
    await held.runs("large", 1)
    assert len({pod.spec.node_name for pod in await held.runs("small", 2)}) == 1


async def test_a_gang_below_its_minimum_is_evicted_after_its_grace(held: Installed) -> None:
    """A gang that lost a member and cannot get it back gives up what it holds."""
    wishes = {labels.BATCH_MIN_MEMBER: "2", labels.STALENESS_GRACE_PERIOD: "1s"}
    await held.job("gang", pods=2, gpus=8, queue="default-queue", annotations=wishes)
    lost = (await held.runs("gang", 2))[0]
    await held.client.patch(Node, lost.spec.node_name, {"spec": {"unschedulable": True}})
    await held.client.delete(Pod, ("default", lost.name), grace_seconds=0)
    await held.runs("gang", 0)
    await held.client.patch(Node, lost.spec.node_name, {"spec": {"unschedulable": None}})


async def test_a_shard_comes_and_goes(held: Installed) -> None:
    """A shard serves its pool from the moment it is there, never another's nodes; without it the pool gets nothing."""
    # Only nodes of the installation have GPUs, whatever others have left on a shared control plane.
    nodes = (await held.client.list(Node)).items
    blue = next(node.name for node in nodes if labels.GPU_RESOURCE in node.status.allocatable)
    in_pool = {"metadata": {"labels": {labels.NODE_POOL: "blue"}}}
    await held.client.patch(Node, blue, in_pool)
    await held.queue("blue")
    await held.client.patch(Queue, "blue", in_pool)
    await held.client.create(SchedulingShard, {"metadata": {"name": "blue"}, "spec": {"partitionLabelValue": "blue"}})
    marks = {labels.NODE_POOL: "blue"}
    await held.job("blue", pods=3, gpus=4, queue="blue", labels=marks)
    await held.job("plain", pods=3, gpus=4, queue="default-queue")
    assert {pod.spec.node_name for pod in await held.runs("blue", 2)} == {blue}
    assert blue not in {pod.spec.node_name for pod in await held.runs("plain", 2)}
    await held.client.delete(SchedulingShard, "blue")
    await held.drop_job("plain")
    await held.job("after", pods=1, gpus=8, queue="default-queue")
    await held.runs("after", 1)
    assert len(await held.running("blue")) == 2, "what runs in the pool runs on"
    await held.clean()
    await held.drop_queue("blue")
    await held.client.patch(Node, blue, {"metadata": {"labels": {labels.NODE_POOL: None}}})


async def test_what_cannot_be_is_refused(held: Installed) -> None:
    """The API server asks our webhooks about pods, groups and queues, and tells the sender what they say."""
    with pytest.raises(ApiError, match=r"gpu-fraction is '1.5'; it must be a number above 0 and below 1"):
        await held.apply(make.pod("more").scheduler("kai-scheduler").annotate(labels.GPU_FRACTION, "1.5").build())
    circle = [{"name": "a", "parent": "b", "minSubGroup": 1}, {"name": "b", "parent": "a", "minSubGroup": 1}]
    group = {"metadata": {"name": "circle"}, "spec": {"subGroups": circle}}
    with pytest.raises(ApiError, match="subgroup a is its own ancestor"):
        await held.client.create(PodGroup, group, "default")
    with pytest.raises(ApiError, match="it has child queues default-queue"):
        await held.client.delete(Queue, "default-parent-queue")
    await held.apply(make.pod("theirs").scheduler("other").annotate(labels.GPU_FRACTION, "1.5").build())
