"""A defragmentation that is carried out on a cluster in virtual time."""

from __future__ import annotations

import asyncio

from spinney.answers.defrag import defrag
from spinney.answers.reading import read_cluster
from spinney.api.batch import Job
from spinney.api.core import Node
from spinney.app.defragmenting import move_pods
from spinney.sim.loop import clock
from tests.answers.agreement import Arena, Situation, Work, arena


async def scatter(cluster: Arena) -> None:
    """Three nodes of eight GPUs: what fills them up goes, and two GPUs stay in use on each."""
    work = [Work(f"{kind}{number}", 1, gpus, "a") for number in range(3) for kind, gpus in (("fill", 6), ("stay", 2))]
    await cluster.set_up(Situation([8, 8, 8], [("a", 0.0, -1.0)], work, []))
    for number in range(3):
        await cluster.client.delete(Job, ("default", f"fill{number}"), propagation="Foreground")
    await asyncio.sleep(60)


def test_pods_are_evicted_in_turn_and_find_each_other() -> None:
    """One node after the other is cordoned, emptied and opened again, not faster than told."""

    async def story(cluster: Arena) -> None:
        await scatter(cluster)
        before = {pod.spec.node_name for pod in await cluster.pods()}
        plan = defrag(await read_cluster(cluster.client, clock()), 100)
        messages: list[str] = []
        started = clock().now()
        await move_pods(cluster.client, plan.moves, 30.0, messages.append)
        assert (clock().now() - started).total_seconds() >= 30.0 * len(plan.moves)
        assert [message.split()[0] for message in messages] == ["evicted", "evicted"]
        pods = await cluster.pods()
        assert len(before) == 3
        assert [pod.spec.node_name for pod in pods] == [plan.moves[0].to] * 3
        assert not any(node.spec.unschedulable for node in (await cluster.client.list(Node)).items)

    with arena() as cluster:
        cluster.run(story(cluster))
