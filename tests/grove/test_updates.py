"""Upstream's rolling-update suite: what is replaced, in which order, and what stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tests.grove.virtual import played

pytest.importorskip("spinney.embedded.cluster")

import asyncio

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample
from tests.grove.virtual import play
from tests.waiting import object_until

WL1 = "e2e-yaml/workload1"
NEW = "busybox:new"


class Witness:
    """Watches pods go: how many of a clique were missing at once, and which set replicas changed in which order."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.most_missing: Counter[str] = Counter()
        self.order: list[str] = []
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        listing = await self.stage.client.list(Pod, self.stage.namespace)
        ready = {pod.name: pod for pod in listing.items}
        full = Counter(pod.metadata.labels[labels.PODCLIQUE] for pod in ready.values())
        events = self.stage.client.watch(Pod, self.stage.namespace, resource_version=listing.resource_version)
        async for event in events:
            pod = event.object
            if pod is None:
                continue
            gone = event.type == "DELETED" or pod.metadata.deletion_timestamp is not None
            if gone and pod.name in ready:
                index = pod.metadata.labels[labels.SET_REPLICA_INDEX]
                if index not in self.order[-1:]:
                    self.order.append(index)
            well = any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
            if gone or not well:
                ready.pop(pod.name, None)
            else:
                ready[pod.name] = pod
            now = Counter(ready_pod.metadata.labels[labels.PODCLIQUE] for ready_pod in ready.values())
            for clique, count in full.items():
                self.most_missing[clique] = max(self.most_missing[clique], count - now[clique])

    def stop(self) -> None:
        """End watching."""
        self._task.cancel()


def rolling(
    steps: Callable[[Stage], Awaitable[None]],
    *,
    replicas: int = 2,
    nodes: int = 30,
    image_of: tuple[str, ...] = (),
    on: Play = play,
) -> None:
    """Start workload 1, change images, do something, and check that everything ends updated and at rest."""

    async def scenario(stage: Stage) -> None:
        (pcs,) = sample(WL1)
        pcs["spec"]["replicas"] = replicas
        await stage.apply(pcs)
        await stage.runs(10 * replicas)
        await stage.change_image("workload1", NEW, *image_of)
        await steps(stage)
        await stage.updated("workload1")

    on(scenario, nodes=nodes)


@played(nodes=20)
async def test_ru7_one_pod_of_a_clique_at_a_time_one_replica_after_the_other(stage: Stage) -> None:
    """RU7: a changed clique loses one ready pod at a time, and set replicas follow each other."""
    (pcs,) = sample(WL1)
    pcs["spec"]["replicas"] = 2
    await stage.apply(pcs)
    await stage.runs(20)
    witness = Witness(stage)
    await stage.settle(1)
    await stage.change_image("workload1", NEW, "pc-a")
    await stage.updated("workload1")
    witness.stop()
    assert await stage.images() == {NEW: 4, "registry:5001/busybox:latest": 16}
    assert witness.most_missing["workload1-0-pc-a"] == 1
    assert witness.most_missing["workload1-0-sg-x-0-pc-b"] == 0
    assert witness.order == ["0", "1"]
    status = (await stage.pcs("workload1")).status
    assert (status.updated_replicas, status.available_replicas) == (2, 2)
    assert status.update_progress is not None
    assert status.update_progress.updated_pod_cliques_count == status.update_progress.total_pod_cliques_count == 2


@played(nodes=10)
async def test_ru8_one_replica_of_a_scaling_group_at_a_time(stage: Stage) -> None:
    """RU8: a changed member replaces its group replica as a whole, one after the other."""
    await stage.apply(*sample(WL1))
    await stage.runs(10)
    witness = Witness(stage)
    await stage.settle(1)
    before = {pod.uid for pod in await stage.pods("workload1-0-pc-a")}
    await stage.change_image("workload1", NEW, "pc-b")
    await stage.updated("workload1")
    witness.stop()
    assert (await stage.images())[NEW] == 2
    assert {pod.uid for pod in await stage.pods("workload1-0-pc-a")} == before
    group = await stage.group("workload1-0-sg-x")
    assert group.status.updated_replicas == 2


def test_ru9_everything_changes(both: Play) -> None:
    """RU9: all cliques change; the set ends with new pods only, all gangs running."""

    async def steps(stage: Stage) -> None:
        await stage.updated("workload1")
        assert await stage.images() == {NEW: 20}
        await stage.sees(lambda: stage.ready("workload1"), "2/2")

    rolling(steps, on=both)


@played(nodes=10)
async def test_ru10_without_room_exactly_one_pod_waits(stage: Stage) -> None:
    """RU10: on closed nodes one pod is deleted, its successor waits, and nothing else happens until nodes open."""
    await stage.apply(*sample(WL1))
    await stage.runs(10)
    await stage.cordon(10)
    before = {pod.uid for pod in await stage.pods()}
    await stage.change_image("workload1", NEW, "pc-a")
    await stage.settle(120)
    after = {pod.uid for pod in await stage.pods()}
    assert len(before - after) == 1
    assert await stage.running() == 9
    gang = await stage.gang("workload1-0")
    assert gang.spec.reuse_reservation_ref is not None
    assert gang.spec.reuse_reservation_ref.name == "workload1-0"
    await stage.cordon(0)
    await stage.updated("workload1")
    await stage.runs(10)
    assert (await stage.images())[NEW] == 2
    assert (await stage.gang("workload1-0")).spec.reuse_reservation_ref is None


def test_ru11_a_replica_added_during_an_update_is_new(both: Play) -> None:
    """RU11: scaling the set out during an update adds a replica of the new revision."""

    async def steps(stage: Stage) -> None:
        await stage.scale(PodCliqueSet, "workload1", 3)
        await stage.updated("workload1")
        assert await stage.images() == {NEW: 30}

    rolling(steps, on=both)


def test_ru12_scaling_in_during_the_last_replicas_update() -> None:
    """RU12: the replica that is being updated is scaled away, and the update ends."""

    async def steps(stage: Stage) -> None:
        def second(pcs: PodCliqueSet | None) -> bool:
            progress = pcs.status.update_progress if pcs is not None else None
            return progress is not None and any(r.replica_index == 1 for r in progress.currently_updating)

        await object_until(stage.client, PodCliqueSet, ("default", "workload1"), second)
        await stage.scale(PodCliqueSet, "workload1", 1)
        await stage.updated("workload1")
        assert await stage.images() == {NEW: 10}

    rolling(steps)


def test_ru13_scaling_in_after_the_update() -> None:
    """RU13: scaling in after the last replica is done leaves an updated set."""

    async def steps(stage: Stage) -> None:
        await stage.updated("workload1")
        await stage.scale(PodCliqueSet, "workload1", 1)
        await stage.runs(10)
        assert (await stage.pcs("workload1")).status.updated_replicas == 1

    rolling(steps)


# What is scaled, to how many replicas, and the pods of the set afterwards.
SCALED = [
    (PodCliqueScalingGroup, "workload1-0-sg-x", 3, 24),
    (PodCliqueScalingGroup, "workload1-0-sg-x", 1, 16),
    (PodClique, "workload1-0-pc-a", 3, 21),
    (PodClique, "workload1-0-pc-a", 1, 19),
]
PARAMETERS = ("kind", "name", "replicas", "pods")


@pytest.mark.parametrize(
    PARAMETERS, SCALED, ids=["ru14-group-out", "ru16-group-in", "ru18-clique-out", "ru20-clique-in"]
)
def test_scaling_during_an_update(kind: type[PodClique], name: str, replicas: int, pods: int) -> None:
    """RU14, RU16, RU18, RU20: groups and cliques scale during an update; what is new is of the new revision."""

    async def steps(stage: Stage) -> None:
        await stage.settle(2)
        await stage.scale(kind, name, replicas)
        await stage.updated("workload1")
        assert await stage.images() == {NEW: pods}

    rolling(steps)


@pytest.mark.parametrize(
    PARAMETERS, SCALED, ids=["ru15-group-out", "ru17-group-in", "ru19-clique-out", "ru21-clique-in"]
)
@played(nodes=30)
async def test_scaling_before_an_update(
    stage: Stage, kind: type[PodClique], name: str, replicas: int, pods: int
) -> None:
    """RU15, RU17, RU19, RU21: what was scaled before an update keeps its scale through it."""
    (pcs,) = sample(WL1)
    pcs["spec"]["replicas"] = 2
    await stage.apply(pcs)
    await stage.runs(20)
    await stage.scale(kind, name, replicas)
    await stage.settle(60)
    await stage.change_image("workload1", NEW)
    await stage.updated("workload1")
    assert await stage.images() == {NEW: pods}


def test_a_second_change_in_mid_update_wins() -> None:
    """A change during an update starts it over: everything ends at the newest revision."""

    async def steps(stage: Stage) -> None:
        await stage.settle(3)
        await stage.change_image("workload1", "busybox:newer")
        await stage.settle(1)
        await stage.updated("workload1")
        assert await stage.images() == {"busybox:newer": 20}

    rolling(steps)


@played(nodes=14)
async def test_max_unavailable_replaces_more_at_a_time(stage: Stage) -> None:
    """rollingUpdate.maxUnavailable lets as many ready pods be away at once, and no more."""
    (pcs,) = sample(WL1)
    clique = pcs["spec"]["template"]["cliques"][0]
    clique["spec"] |= {"replicas": 6, "minAvailable": 2}
    clique["rollingUpdate"] = {"maxUnavailable": "50%"}
    await stage.apply(pcs)
    await stage.runs(14)
    witness = Witness(stage)
    await stage.settle(1)
    await stage.change_image("workload1", NEW, "pc-a")
    await stage.updated("workload1")
    witness.stop()
    assert witness.most_missing["workload1-0-pc-a"] == 3
    assert (await stage.images())[NEW] == 6


def test_a_stuck_update_says_so_at_its_deadline() -> None:
    """rollingUpdate.progressDeadline: an update that makes no progress says so, and goes on when it can."""

    async def scenario(stage: Stage) -> None:
        (pcs,) = sample(WL1)
        pcs["spec"]["template"]["cliques"][0]["rollingUpdate"] = {"progressDeadline": "1m"}
        await stage.apply(pcs)
        await stage.runs(10)
        await stage.cordon(10)
        await stage.change_image("workload1", NEW, "pc-a")
        await stage.settle(30)
        assert await reason(stage) == "ReplacingOutdated"
        await stage.settle(90)
        assert await reason(stage) == "ProgressDeadlineExceeded"
        await stage.cordon(0)
        await stage.updated("workload1")
        await stage.settle(5)
        assert await reason(stage) == "UpToDate"

    async def reason(stage: Stage) -> str:
        conditions = (await stage.clique("workload1-0-pc-a")).status.conditions
        return next((c.reason for c in conditions if c.type == "UpdateInProgress"), "")

    play(scenario, nodes=10)
