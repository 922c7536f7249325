"""Upstream's topology suite where it looks at what KAI is told, and at what becomes of it.

Which nodes a gang gets is the scheduler's decision (tests/scheduler, tests/conformance): here a stand-in places pods
without looking at racks, so TAS2, TAS4, TAS13, TAS14 and TAS15 are held to the constraints that reach the scheduler,
and TAS13 to what is said while it finds no place.
"""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from tests import make
from tests.grove.conftest import Play
from tests.grove.stage import TOPOLOGY, Stage
from tests.grove.virtual import played

KAI = {"schedulerName": "kai-scheduler"}
RACK, BLOCK = "kubernetes.io/rack", "kubernetes.io/block"
# Name → (parent, minimum, required level).
Tree = dict[str, tuple[str, int | None, str]]


def packed(built: Json, **domains: str) -> Json:
    """The set with required domains: of the set itself, of scaling groups and of cliques, by name."""
    template = built["spec"]["template"]
    owners = [*template["cliques"], *template.get("podCliqueScalingGroups", [])]
    for owner in owners:
        owner_domain = domains.pop(owner["name"].replace("-", "_"), "")
        if owner_domain:
            owner["topologyConstraint"] = constraint(owner_domain)
    if domains:
        template["topologyConstraint"] = constraint(domains.pop("whole"))
    return built


def constraint(domain: str) -> Json:
    """All pods within one domain."""
    return {"topologyName": "grove-topology", "pack": {"required": domain}}


def independent() -> Json:
    """TAS2: two cliques, each with a constraint of its own."""
    built = make.pcs("svc").clique("worker-rack", 3, **KAI).clique("worker-block", 4, **KAI).build()
    return packed(built, worker_rack="rack", worker_block="block")


def group_only() -> Json:
    """TAS4: only the scaling group has a constraint."""
    built = make.pcs("svc").clique("worker", **KAI).clique("router", 2, **KAI).group("workers", ["worker"], 2, 2)
    return packed(built.build(), workers="rack")


def disaggregated() -> Json:
    """TAS15: two scaling groups of a leader and a worker, each in a rack, everything in a block."""
    built = make.pcs("svc")
    for name in ("dworker", "dleader", "pworker", "pleader"):
        built.clique(name, **KAI)
    built.clique("router", 2, **KAI)
    built.group("decoder", ["dworker", "dleader"], 2).group("prefill", ["pworker", "pleader"], 2)
    return packed(built.build(), decoder="rack", prefill="rack", whole="block")


CASES: dict[str, tuple[Json, int, dict[str, tuple[str, Tree]]]] = {
    "tas2": (
        independent(),
        7,
        {"svc-0": ("", {"svc-0-worker-rack": ("", 3, RACK), "svc-0-worker-block": ("", 4, BLOCK)})},
    ),
    "tas4": (
        group_only(),
        4,
        {
            "svc-0": (
                "",
                {
                    "svc-0-workers-0": ("", None, RACK),
                    "svc-0-workers-1": ("", None, RACK),
                    "svc-0-workers-0-worker": ("svc-0-workers-0", 1, ""),
                    "svc-0-workers-1-worker": ("svc-0-workers-1", 1, ""),
                    "svc-0-router": ("", 2, ""),
                },
            )
        },
    ),
    "tas14": (
        packed(make.pcs("svc", replicas=2).clique("worker", 2, **KAI).build(), whole="rack"),
        4,
        {f"svc-{index}": (RACK, {f"svc-{index}-worker": ("", 2, "")}) for index in (0, 1)},
    ),
    "tas15": (
        disaggregated(),
        10,
        {
            "svc-0": (
                BLOCK,
                {
                    "svc-0-router": ("", 2, ""),
                    **{f"svc-0-{group}-0": ("", None, RACK) for group in ("decoder", "prefill")},
                    **{
                        f"svc-0-{group}-0-{group[0]}{role}": (f"svc-0-{group}-0", 1, "")
                        for group in ("decoder", "prefill")
                        for role in ("worker", "leader")
                    },
                },
            ),
            **{
                f"svc-0-{group}-0": (
                    RACK,
                    {f"svc-0-{group}-1-{group[0]}{role}": ("", 1, "") for role in ("worker", "leader")},
                )
                for group in ("decoder", "prefill")
            },
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_kai_is_told_of_every_constraint(both: Play, case: str) -> None:
    """TAS2, TAS4, TAS14, TAS15: a pod group's own level, its sub-groups, their parents, minimums and levels."""
    built, pods, wanted = CASES[case]

    async def scenario(stage: Stage) -> None:
        await stage.apply(TOPOLOGY, built)
        await stage.runs(pods)
        await stage.sees(lambda: told(stage), wanted)
        await stage.sees(lambda: topology_condition(stage), ("False", "AllClusterTopologyLevelsAvailable"))

    both(scenario, nodes=10)


async def topology_condition(stage: Stage) -> tuple[str, str]:
    """What the set says about its topology."""
    conditions = {c.type: (c.status, c.reason) for c in (await stage.pcs("svc")).status.conditions}
    return conditions.get("TopologyLevelsUnavailable", ("", ""))


async def told(stage: Stage) -> dict[str, tuple[str, Tree]]:
    """By gang: the pod group's level, and its sub-groups."""
    return {
        group.metadata.owner_references[0].name: (
            group.spec.topology_constraint.required_topology_level,
            {sub.name: (sub.parent, sub.min_member, level(sub)) for sub in group.spec.sub_groups},
        )
        for group in await stage.list(PodGroup)
    }


def level(sub: Any) -> str:
    """The level a sub-group must lie within."""
    return sub.topology_constraint.required_topology_level if sub.topology_constraint else ""


@played(nodes=2)
async def test_tas13_a_gang_that_fits_no_rack_waits_whole(stage: Stage) -> None:
    """TAS13: ten pods that fit no rack all wait, none has a node, and gang and pod group say what is asked for."""
    built = packed(make.pcs("svc").clique("worker", 10, **KAI).build(), whole="rack")
    await stage.apply(TOPOLOGY, built)
    await stage.settle()
    pods = await stage.list(Pod)
    assert [pod.spec.node_name for pod in pods] == [""] * 10
    assert all(any(c.reason == "Unschedulable" for c in pod.status.conditions) for pod in pods)
    assert await told(stage) == {"svc-0": (RACK, {"svc-0-worker": ("", 10, "")})}
    gang = await stage.gang("svc-0")
    assert gang.status.phase == "Pending"
    (scheduled,) = [c for c in gang.status.conditions if c.type == "Scheduled"]
    assert (scheduled.status, scheduled.reason) == ("False", "WaitingForScheduler")
    assert scheduled.message.count("no room") == 1
