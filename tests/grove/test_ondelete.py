"""Upstream's OnDelete suite: a change replaces nothing by itself; what someone deletes comes back new."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample
from tests.grove.virtual import play

NAME = "workload-ondelete"
NEW = "busybox:new"


def on_delete(
    steps: Callable[[Stage], Awaitable[None]], *changed: str, replicas: int = 1, nodes: int = 10, on: Play = play
) -> None:
    """Start the OnDelete workload, change the images of some cliques (or of all), see nothing happen, go on."""

    async def scenario(stage: Stage) -> None:
        (pcs,) = sample(f"e2e-yaml/{NAME}")
        pcs["spec"]["replicas"] = replicas
        await stage.apply(pcs)
        await stage.runs(10 * replicas)
        before = await stage.uids()
        await stage.change_image(NAME, NEW, *changed)
        await stage.sees(lambda: has_ended(stage), True)
        await stage.settle(30)
        assert await stage.uids() == before
        await steps(stage)

    on(scenario, nodes=nodes)


async def delete_first(stage: Stage, clique: str) -> Pod:
    """Delete one pod of a clique, and wait until all run again."""
    pods = await stage.pods(f"{NAME}-0-{clique}")
    await stage.delete(Pod, pods[0].name)

    async def replaced() -> bool:
        return pods[0].uid not in await stage.uids()

    await stage.until(replaced)
    await stage.runs(10)
    return pods[0]


async def has_ended(stage: Stage) -> bool:
    """Whether the set says that its update is over."""
    progress = (await stage.pcs(NAME)).status.update_progress
    return progress is not None and progress.update_ended_at is not None


def test_od1_nothing_is_deleted(both: Play) -> None:
    """OD1: a changed template deletes no pod, and the update counts as ended at once."""

    async def steps(stage: Stage) -> None:
        assert (await stage.images())[NEW] == 0

    on_delete(steps, "pc-a", on=both)


def test_od2_a_deleted_pod_comes_back_new(both: Play) -> None:
    """OD2: the successor of a pod that someone deletes is made from the new template, and is counted."""

    async def steps(stage: Stage) -> None:
        await delete_first(stage, "pc-a")
        assert (await stage.images())[NEW] == 1
        await stage.sees(lambda: new_ones(stage), 1)

    async def new_ones(stage: Stage) -> int:
        return (await stage.clique(f"{NAME}-0-pc-a")).status.updated_replicas

    on_delete(steps, "pc-a", on=both)


def test_od3_scaling_in_takes_the_outdated_pod(both: Play) -> None:
    """OD3: of an outdated and an updated pod the outdated one goes."""

    async def steps(stage: Stage) -> None:
        await delete_first(stage, "pc-a")
        await stage.scale(PodClique, f"{NAME}-0-pc-a", 1)
        await stage.runs(9)
        (left,) = await stage.pods(f"{NAME}-0-pc-a")
        assert left.spec.containers[0].image == NEW

    on_delete(steps, "pc-a", on=both)


def test_od4_members_of_scaling_groups_stay_too() -> None:
    """OD4: a changed member of a scaling group deletes no replica of the group, and the update counts as ended."""

    async def steps(stage: Stage) -> None:
        assert (await stage.images())[NEW] == 0

    on_delete(steps, "pc-b")


def test_od5_a_deleted_member_comes_back_new() -> None:
    """OD5: a pod of a scaling group comes back new alone; replicas that are added are all new."""

    async def steps(stage: Stage) -> None:
        await delete_first(stage, "sg-x-0-pc-c")
        assert (await stage.images())[NEW] == 1
        await stage.scale(PodCliqueScalingGroup, f"{NAME}-0-sg-x", 3)
        await stage.runs(14)
        assert (await stage.images())[NEW] == 1 + 3
        await stage.scale(PodCliqueScalingGroup, f"{NAME}-0-sg-x", 2)
        await stage.runs(10)

    on_delete(steps, "pc-c", nodes=14)


def test_od6_cliques_and_groups_mixed(both: Play) -> None:
    """OD6: all cliques change; one deleted pod of each kind comes back new, the other eight stay as they are."""

    async def steps(stage: Stage) -> None:
        before = await stage.uids()
        gone = {(await delete_first(stage, clique)).uid for clique in ("pc-a", "sg-x-1-pc-c")}
        news = [pod for pod in await stage.pods() if pod.uid not in before]
        assert {pod.spec.containers[0].image for pod in news} == {NEW}
        assert len(news) == 2
        assert before - await stage.uids() == gone

    on_delete(steps, on=both)


def test_od7_every_set_replica_waits() -> None:
    """OD7: with two set replicas nothing is deleted in either; one that is added later is new."""

    async def steps(stage: Stage) -> None:
        assert (await stage.images())[NEW] == 0
        await stage.scale(PodCliqueSet, NAME, 3)
        await stage.runs(30)
        assert (await stage.images())[NEW] == 10

    on_delete(steps, replicas=2, nodes=30)


def test_od8_a_failed_node_is_left_pod_by_pod(both: Play) -> None:
    """OD8: the template shuns a bad node; only the pod that is deleted there moves, the others are not disturbed."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(*sample(f"e2e-yaml/{NAME}"))
        await stage.runs(10)
        before = await stage.uids()
        (first, *_) = await stage.pods(f"{NAME}-0-pc-a")
        bad = first.spec.node_name
        await stage.change_pods(NAME, {"affinity": shuns(bad)}, "pc-a")
        await stage.sees(lambda: has_ended(stage), True)
        await stage.settle(30)
        assert await stage.uids() == before
        await delete_first(stage, "pc-a")
        (moved,) = [pod for pod in await stage.pods() if pod.uid not in before]
        stored = await stage.client.get(Pod.resource, (stage.namespace, moved.name))
        assert stored["spec"]["affinity"] == shuns(bad)
        assert moved.spec.node_name not in ("", bad)
        assert before - await stage.uids() == {first.uid}

    both(scenario, nodes=11)


def shuns(node: str) -> dict[str, Any]:
    """A node affinity that keeps pods from a node."""
    expression = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_od9_strategies_can_be_switched() -> None:
    """OD9: a change under RollingRecreate rolls, changes before and after it wait for someone."""

    async def steps(stage: Stage) -> None:
        await strategy(stage, "RollingRecreate")
        await stage.change_image(NAME, "busybox:rolled", "pc-b")
        await stage.settle(1)
        await stage.updated(NAME)
        assert (await stage.images())["busybox:rolled"] == 2
        before = await stage.uids()
        await strategy(stage, "OnDelete")
        await stage.change_image(NAME, "busybox:kept", "pc-c")
        await stage.settle(60)
        assert await stage.uids() == before

    async def strategy(stage: Stage, kind: str) -> None:
        await stage.client.patch(PodCliqueSet, ("default", NAME), {"spec": {"updateStrategy": {"type": kind}}})

    on_delete(steps, "pc-a")
