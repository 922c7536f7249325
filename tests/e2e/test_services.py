"""The services together, in virtual time and under RBAC: what KAI's documentation promises its users."""

from __future__ import annotations

import asyncio

from spinney.api import labels
from spinney.api.conditions import find
from spinney.api.core import Node, Pod
from spinney.api.kai import Queue
from tests import make
from tests.e2e.installation import Installed, end_to_end, one_rack


@end_to_end(one_rack(4))
async def test_jobs_fill_a_cluster(held: Installed) -> None:
    """One-GPU Jobs fill every GPU; what does not fit waits and says why; queues show the usage."""
    for index in range(10):
        await held.job(f"fill-{index}", pods=4, queue="default-queue")
    pods = await held.runs("fill", 32)
    per_node = {node: sum(pod.spec.node_name == node for pod in pods) for node in {pod.spec.node_name for pod in pods}}
    assert per_node == {f"node-0{index}": 8 for index in range(4)}
    await asyncio.sleep(10)
    queue = await held.client.get(Queue, "default-parent-queue")
    assert queue.status.allocated["nvidia.com/gpu"] == "32"
    assert queue.status.requested["nvidia.com/gpu"] == "40"


@end_to_end(one_rack(2))
async def test_a_gang_starts_whole_or_not_at_all(held: Installed) -> None:
    """A gang that cannot have its minimum holds nothing; with room it starts at once."""
    await held.job("small", pods=1, gpus=8, queue="default-queue")
    await held.runs("small", 1)
    await held.job("gang", pods=2, gpus=8, queue="default-queue", annotations={labels.BATCH_MIN_MEMBER: "2"})
    await asyncio.sleep(30)
    assert await held.running("gang") == []
    assert (await held.group("pg-gang")).spec.min_member == 2
    await held.drop_job("small")
    gang = await held.runs("gang", 2)
    assert {pod.spec.node_name for pod in gang} == {"node-00", "node-01"}


@end_to_end(one_rack(2))
async def test_a_queue_takes_back_what_was_borrowed(held: Installed) -> None:
    """A queue below its quota gets its share back from one that is above its own."""
    await held.queue("root", quota=16)
    await held.queue("lender", "root", quota=8)
    await held.queue("borrower", "root", quota=8)
    for index in range(16):
        await held.job(f"borrower-{index}", pods=1, queue="borrower")
    await held.runs("borrower", 16)
    for index in range(8):
        await held.job(f"lender-{index}", pods=1, queue="lender")
    await held.runs("lender", 8)
    assert len(await held.running("borrower")) == 8


@end_to_end(one_rack(2))
async def test_a_gang_below_its_minimum_is_evicted_after_its_grace(held: Installed) -> None:
    """A gang that lost members and cannot get them back gives up what it holds, once its grace period is over."""
    await held.job(
        "gang",
        pods=2,
        gpus=8,
        queue="default-queue",
        annotations={labels.BATCH_MIN_MEMBER: "2", labels.STALENESS_GRACE_PERIOD: "30s"},
    )
    gang = await held.runs("gang", 2)
    lost = gang[0].spec.node_name
    await held.client.call(
        "PATCH",
        f"/api/v1/nodes/{lost}",
        body={"spec": {"unschedulable": True}},
        content_type="application/merge-patch+json",
    )
    await held.client.delete(Pod, ("default", gang[0].name))
    await asyncio.sleep(20)
    assert len(await held.running("gang")) == 1

    async def evicted() -> bool:
        return not await held.running("gang")

    await held.eventually(evicted, 60)


@end_to_end(one_rack(2, gpus=1))
async def test_autoscalers_see_what_is_missing(held: Installed) -> None:
    """A part of a GPU that has no room is stood for by a whole one until a node comes; a gang waits visibly, whole."""
    await held.client.patch(Node, "node-01", {"spec": {"unschedulable": True}})
    for name in ("first", "second"):
        pod = make.pod(name).scheduler("kai-scheduler").annotate(labels.GPU_FRACTION, "0.9")
        await held.apply(pod.label(labels.QUEUE, "default-queue").build())

    async def stood_for() -> bool:
        return len(await held.pods(namespace=labels.SCALE_ADJUST_NAMESPACE)) == 1

    await held.eventually(stood_for)
    stand_in = (await held.pods(namespace=labels.SCALE_ADJUST_NAMESPACE))[0]
    assert stand_in.spec.containers[0].resources.requests[labels.GPU_RESOURCE] == "1"
    assert _unschedulable(stand_in)
    await held.client.patch(Node, "node-01", {"spec": {"unschedulable": None}})
    await held.runs("", 2)

    async def gone() -> bool:
        return not await held.pods(namespace=labels.SCALE_ADJUST_NAMESPACE)

    await held.eventually(gone)
    await held.job("gang", pods=2, gpus=1, queue="default-queue", annotations={labels.BATCH_MIN_MEMBER: "2"})
    await asyncio.sleep(20)
    assert [_unschedulable(pod) for pod in await held.pods("gang")] == [True, True]


def _unschedulable(pod: Pod) -> bool:
    scheduled = find(pod.status.conditions, "PodScheduled")
    return scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
