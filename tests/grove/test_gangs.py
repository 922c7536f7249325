"""Upstream's gang scheduling suite: nothing of a gang runs before its minimum can, base gangs come first."""

from __future__ import annotations

import pytest

from tests.grove.virtual import played

pytest.importorskip("spinney.embedded.cluster")

from spinney.api.grove import PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.labels import POD_INDEX
from tests import make
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample
from tests.grove.virtual import play

WL1, WL2 = "e2e-yaml/workload1", "e2e-yaml/workload2"


def test_gs1_all_or_nothing(both: Play) -> None:
    """GS1: ten pods wait for the tenth node, then all run."""

    async def scenario(stage: Stage) -> None:
        await stage.cordon(1)
        await stage.apply(*sample(WL1))
        await stage.holds(pods=10, running=0)
        await stage.sees(lambda: stage.phase("workload1-0"), "Pending")
        await stage.uncordon(1)
        await stage.runs(10)
        await stage.sees(lambda: stage.phase("workload1-0"), "Running")
        await stage.sees(lambda: stage.ready("workload1"), "1/1")

    both(scenario, nodes=10)


def test_gs2_a_scaled_group_waits_as_a_gang_of_its_own(both: Play) -> None:
    """GS2: a third scaling-group replica is a new gang of four, placed when four nodes are free."""

    async def scenario(stage: Stage) -> None:
        await stage.cordon(5)
        await stage.apply(*sample(WL1))
        await stage.holds(pods=10, running=0)
        await stage.uncordon(1)
        await stage.runs(10)
        await stage.scale(PodCliqueScalingGroup, "workload1-0-sg-x", 3)
        await stage.holds(pods=14, running=10)
        await stage.uncordon(4)
        await stage.runs(14)
        await stage.sees(lambda: stage.phase("workload1-0-sg-x-0"), "Running")

    both(scenario, nodes=14)


def test_gs3_a_second_set_replica_is_one_more_gang(both: Play) -> None:
    """GS3: scaling the set adds exactly one gang, and rewrites nothing of the first."""

    async def scenario(stage: Stage) -> None:
        await stage.cordon(11)
        await stage.apply(*sample(WL1))
        await stage.uncordon(1)
        await stage.runs(10)
        await stage.sees(lambda: stage.phase("workload1-0"), "Running")
        before = await stage.gang("workload1-0")
        await stage.scale(PodCliqueSet, "workload1", 2)
        await stage.holds(pods=20, running=10)
        assert (await stage.gang("workload1-0")).metadata.resource_version == before.metadata.resource_version
        await stage.uncordon(10)
        await stage.runs(20)
        await stage.sees(lambda: stage.ready("workload1"), "2/2")

    both(scenario, nodes=20)


def test_gs5_minimums_first_then_the_rest(both: Play) -> None:
    """GS5: with room for three exactly the base gang's minimum runs, with more the others."""

    async def scenario(stage: Stage) -> None:
        await stage.cordon(8)
        await stage.apply(*sample(WL2))
        await stage.holds(pods=10, running=0)
        await stage.uncordon(1)
        await stage.runs(3)
        cliques = {pod.metadata.labels["grove.io/podclique"] for pod in await stage.pods() if pod.spec.node_name}
        assert cliques == {"workload2-0-pc-a", "workload2-0-sg-x-0-pc-b", "workload2-0-sg-x-0-pc-c"}
        await stage.uncordon(7)
        await stage.runs(10)

    both(scenario, nodes=10)


@played(nodes=10)
async def test_scaled_pods_stay_gated_until_the_base_gang_is_placed(stage: Stage) -> None:
    """A scaled gang keeps its gate, and its status says what it waits for."""
    await stage.cordon(10)
    await stage.apply(*sample(WL2))
    await stage.settle()
    gated = [pod for pod in await stage.pods() if pod.spec.scheduling_gates]
    assert {pod.metadata.labels["grove.io/podgang"] for pod in gated} == {"workload2-0-sg-x-0"}
    condition = {c.type: c for c in (await stage.gang("workload2-0-sg-x-0")).status.conditions}["Scheduled"]
    assert condition.reason == "WaitingForBaseGang"


@played(nodes=10)
async def test_pods_know_their_place(stage: Stage) -> None:
    """Labels, host name, subdomain and variables are upstream's."""
    await stage.apply(*sample(WL1))
    await stage.runs(10)
    pods = sorted(await stage.pods("workload1-0-sg-x-1-pc-c"), key=lambda pod: pod.spec.hostname)
    assert [pod.spec.hostname for pod in pods] == [f"workload1-0-sg-x-1-pc-c-{index}" for index in range(3)]
    assert [pod.metadata.labels[POD_INDEX] for pod in pods] == ["0", "1", "2"]
    pod = pods[0]
    assert pod.spec.subdomain == "workload1-0"
    env = {variable.name: variable.value for variable in pod.spec.containers[0].env}
    assert env["GROVE_PCS_NAME"] == "workload1"
    assert env["GROVE_PCLQ_NAME"] == "workload1-0-sg-x-1-pc-c"
    assert env["GROVE_HEADLESS_SERVICE"] == "workload1-0.default.svc.cluster.local"
    assert env["GROVE_PCSG_TEMPLATE_NUM_PODS"] == "4"
    assert pod.metadata.labels["kai.scheduler/queue"] == "test"
    assert pod.spec.scheduler_name == "kai-scheduler"


@played(nodes=28)
async def test_gs4_groups_and_sets_scale_together(stage: Stage) -> None:
    """GS4: group to three, set to two, the second group to three: each batch waits for its own room."""
    await stage.cordon(19)
    await stage.apply(*sample(WL1))
    await stage.settle()
    await stage.uncordon(1)
    await stage.runs(10)
    await stage.scale(PodCliqueScalingGroup, "workload1-0-sg-x", 3)
    await stage.settle()
    assert await stage.running() == 10
    await stage.uncordon(4)
    await stage.runs(14)
    await stage.scale(PodCliqueSet, "workload1", 2)
    await stage.settle()
    assert await stage.running() == 14
    await stage.uncordon(10)
    await stage.runs(24)
    await stage.scale(PodCliqueScalingGroup, "workload1-1-sg-x", 3)
    await stage.settle()
    assert await stage.running() == 24
    await stage.uncordon(4)
    await stage.runs(28)


STEPS = [
    # name, nodes, closed at first, and steps: (kind, name, replicas) or (nodes opened, pods that then run)
    ("gs6", 14, 12, [(1, 3), (7, 10), ("group", "workload2-0-sg-x", 3), (2, 12), (2, 14)]),
    ("gs7", 14, 12, [(1, 3), (2, 5), (5, 10), ("group", "workload2-0-sg-x", 3), (2, 12), (2, 14)]),
    ("gs8", 14, 12, [("group", "workload2-0-sg-x", 3), (1, 3), (4, 7), (7, 14)]),
    ("gs9", 20, 18, [(1, 3), (7, 10), ("set", "workload2", 2), (3, 13), (7, 20)]),
    ("gs10", 20, 18, [("set", "workload2", 2), (4, 6), (4, 10), (10, 20)]),
    (
        "gs11",
        28,
        26,
        [
            (1, 3),
            (7, 10),
            ("group", "workload2-0-sg-x", 3),
            (2, 12),
            (2, 14),
            ("set", "workload2", 2),
            (3, 17),
            (7, 24),
            ("group", "workload2-1-sg-x", 3),
            (2, 26),
            (2, 28),
        ],
    ),
    (
        "gs12",
        28,
        26,
        [
            ("set", "workload2", 2),
            ("group", "workload2-0-sg-x", 3),
            ("group", "workload2-1-sg-x", 3),
            (4, 6),
            (8, 14),
            (14, 28),
        ],
    ),
]


@pytest.mark.parametrize(("name", "nodes", "closed", "steps"), STEPS, ids=[step[0] for step in STEPS])
def test_minimums_come_before_extras(name: str, nodes: int, closed: int, steps: list[tuple[object, ...]]) -> None:
    """GS6–GS12: base minimums before scaled minimums before extras, however a set is scaled meanwhile."""
    kinds = {"set": PodCliqueSet, "group": PodCliqueScalingGroup}

    async def scenario(stage: Stage) -> None:
        await stage.cordon(closed)
        await stage.apply(*sample(WL2))
        await stage.settle()
        running = await stage.running()
        assert running == 0
        for step in steps:
            if len(step) == 3:
                await stage.scale(kinds[str(step[0])], str(step[1]), int(str(step[2])))
                await stage.settle()
                assert await stage.running() == running
                continue
            await stage.uncordon(int(str(step[0])))
            running = int(str(step[1]))
            await stage.runs(running)

    play(scenario, nodes=nodes)


@played(nodes=2)
async def test_a_setting_taken_off_a_set_stayed_on_its_gangs(stage: Stage) -> None:
    """A queue or a protection that a set no longer names is gone from gang and PodGroup, too."""
    built = make.pcs("svc").clique("a", schedulerName="kai-scheduler")
    built.label("kai.scheduler/preemptibility", "non-preemptible").label("kai.scheduler/queue", "team")
    await stage.apply(built.annotate("kai.scheduler/preemption-delay", "2m").build())

    async def settings() -> list[str]:
        return [
            f"{group.spec.preemptibility} {group.spec.preemption_delay} {group.spec.queue}"
            for group in await stage.list(PodGroup)
        ]

    await stage.sees(settings, ["non-preemptible 2m team"])
    gone = {"kai.scheduler/preemptibility": None, "kai.scheduler/queue": None}
    metadata = {"labels": gone, "annotations": {"kai.scheduler/preemption-delay": None}}
    await stage.client.patch(PodCliqueSet, ("default", "svc"), {"metadata": metadata})
    await stage.sees(settings, ["  default-queue"])
