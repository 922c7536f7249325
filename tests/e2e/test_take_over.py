"""Queues move from one scheduler to another and back, one at a time, as the guide to taking over says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import yaml

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup, Queue, SchedulingShard
from spinney.api.kaiconfig import ConfigSpec
from spinney.api.meta import convert
from spinney.app.install.values import read_values
from spinney.embedded.nodes.profile import Profile
from spinney.services.platform.processes import plan_processes
from tests import make
from tests.e2e.installation import Installed, end_to_end

POOL = "spinney"
GUIDE = Path(__file__).parents[2] / "docs" / "users" / "operations" / "take-over.md"


async def pod(held: Installed, name: str, queue: str, pool: str = "") -> None:
    """A pod that needs all GPUs of a node."""
    made = make.pod(name).scheduler(labels.KAI_SCHEDULER).gpus(8).label(labels.QUEUE, queue)
    if pool:
        made.label(labels.NODE_POOL, pool)
    await held.apply(made.build())


async def move(held: Installed, node: str, queue: str, group: str, pool: str | None) -> None:
    """Label a queue, its node and its running group for a pool, or take the labels away."""
    patch = {"metadata": {"labels": {labels.NODE_POOL: pool}}}
    await held.client.patch(Queue, queue, patch)
    await held.client.patch(Node, node, patch)
    await held.client.patch(PodGroup, ("default", (await held.group(group)).name), patch)


@end_to_end(Profile(count=2, gpus=8, racks=1, blocks=1))
async def test_a_queue_moves_to_another_scheduler_and_back(held: Installed) -> None:
    """Its running pods stay, the other queue is not disturbed, and what comes next is placed by the new scheduler.

    The scheduler of the unlabelled pool stands in for KAI's: both know their pool by the same label.
    """
    for queue in ("first", "second"):
        await held.queue(queue)
        await pod(held, f"{queue}-a", queue)
    before = {each.name: (each.uid, each.spec.node_name) for each in await held.runs("", 2)}
    node = before["first-a"][1]
    await held.client.create(SchedulingShard, {"metadata": {"name": POOL}, "spec": {"partitionLabelValue": POOL}})
    await move(held, node, "first", "pg-first-a", POOL)
    await pod(held, "first-b", "first", POOL)
    await pod(held, "second-b", "second")
    await asyncio.sleep(60)
    assert {each.name: (each.uid, each.spec.node_name) for each in await held.running()} == before
    await held.client.delete(Pod, ("default", "first-a"))
    (moved,) = await held.runs("first-b", 1)
    assert moved.spec.node_name == node
    assert [each.uid for each in await held.running("second")] == [before["second-a"][0]]
    await move(held, node, "first", "pg-first-b", None)
    await held.client.delete(SchedulingShard, POOL)
    await asyncio.sleep(60)
    assert [each.uid for each in await held.running("first")] == [moved.uid]
    await held.client.delete(Pod, ("default", "first-b"))
    await pod(held, "first-c", "first")
    await held.client.delete(Pod, ("default", "second-a"))
    assert len(await held.runs("", 2)) == 2


def test_the_values_of_the_guide_run_a_scheduler_for_its_pool_and_no_other_service() -> None:
    """KAI's services stay while queues move: two binders or groupers would act on the same pods."""
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    values = read_values([yaml.safe_load(text)])
    assert plan_processes(convert(ConfigSpec, values.config), "image") == []
    assert [(shard.name, shard.spec) for shard in values.shards] == [(POOL, {"partitionLabelValue": POOL})]
