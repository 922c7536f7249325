"""Upstream's topology suite, as far as the operator decides: constraints, conditions, schedulers' topologies."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.grove import ClusterTopologyBinding, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import PodGroup, Topology
from spinney.api.meta import Json
from tests.grove.conftest import Play
from tests.grove.stage import TOPOLOGY, Stage, sample
from tests.grove.virtual import VirtualStage, play, played

KEYS = {"zone": "kubernetes.io/zone", "block": "kubernetes.io/block", "rack": "kubernetes.io/rack"}
KEYS["host"] = "kubernetes.io/hostname"


def binding(name: str, **keys: str) -> Json:
    """A binding of some levels, in order."""
    levels = [{"domain": domain, "key": key} for domain, key in keys.items()]
    return {**TOPOLOGY, "metadata": {"name": name}, "spec": {"levels": levels}}


def packed(owner: Any) -> tuple[str, str]:
    """Required and preferred domain of a constraint, by our names for the label keys."""
    names = {key: domain for domain, key in KEYS.items()}
    constraint = owner.topology_constraint
    return (names.get(constraint.required, ""), names.get(constraint.preferred, "")) if constraint else ("", "")


# File → gang → (its own constraint, those of group configs, those of pod groups), each as (required, preferred).
NONE = ("", "")
GANGS: dict[str, dict[str, tuple[Any, list[Any], list[Any]]]] = {
    "tas-sl-pcs-only": {"tas-sl-pcs-only-0": (("rack", ""), [], [NONE] * 3)},
    "tas-host-level": {"tas-host-level-0": (NONE, [], [("host", "")])},
    "tas-standalone-pclq-only-pcs-zone": {"tas-standalone-pclq-0": (("zone", ""), [], [NONE])},
    "tas-no-constraint": {"tas-no-constraint-0": (NONE, [], [NONE] * 2)},
    "tas-hierarchy": {"tas-hierarchy-0": (("block", ""), [("rack", "")] * 2, [("host", "")] * 4)},
    "tas-pcs-pclq": {"tas-pcs-pclq-0": (("block", ""), [], [("host", "")])},
    "tas-pcsg-scale": {
        "tas-pcsg-scale-0": (("block", ""), [("rack", "")], [NONE]),
        "tas-pcsg-scale-0-inference-group-0": (("rack", ""), [], [NONE]),
        "tas-pcsg-scale-0-inference-group-1": (("rack", ""), [], [NONE]),
    },
    "tas-pcsg-pclq": {"tas-pcsg-pclq-0": (NONE, [("rack", "")] * 2, [("host", "")] * 2)},
    "tas-preferred-pack": {
        "tas-preferred-pack-0": (("block", "rack"), [("", "host")], [("", "host"), NONE]),
        "tas-preferred-pack-0-workers-0": (("", "host"), [], [NONE]),
    },
}


@pytest.mark.parametrize("name", GANGS, ids=["tas3", "tas5", "tas6", "tas7", "tas8", "tas9", "tas10", "tas11", "tas23"])
@played(nodes=16)
async def test_constraints_reach_every_level_of_the_gang(stage: Stage, name: str) -> None:
    """TAS3, TAS5–TAS11, TAS23: constraints of set, scaling group and clique stand in the gang as upstream has them."""
    await stage.apply(TOPOLOGY, *sample(f"e2e-yaml/{name}"))
    await stage.settle(30)
    for gang_name, (own, configs, groups) in GANGS[name].items():
        spec = (await stage.gang(gang_name)).spec
        assert packed(spec) == own
        assert [packed(config) for config in spec.topology_constraint_group_configs] == configs
        assert [packed(group) for group in spec.podgroups] == groups
    assert len(await stage.list(PodGroup)) == len(GANGS[name])


@played(nodes=20)
async def test_tas12_a_large_group_is_a_base_gang_and_seven_scaled_ones(stage: Stage) -> None:
    """TAS12: ten group replicas with minimum three are one base gang of three and seven gangs of one."""
    await stage.apply(TOPOLOGY, *sample("e2e-yaml/tas-large-scale"))
    await stage.runs(20)
    names = [f"tas-large-scale-0-workers-{k}" for k in range(7)]
    assert sorted(group.metadata.labels["app.kubernetes.io/name"] for group in await stage.list(PodGroup)) == [
        "tas-large-scale-0",
        *names,
    ]


def test_tas1_tas19_a_schedulers_topology_follows_the_binding() -> None:
    """TAS1, TAS19: a binding makes KAI's Topology; other levels replace it; the condition stays InSync."""

    async def scenario(stage: VirtualStage) -> None:
        await stage.apply(binding("dc", zone="k/zone", rack="k/rack"))
        await stage.settle(5)
        assert await levels(stage) == ["k/zone", "k/rack"]
        assert await drift(stage, "dc") == ("False", "InSync")
        changed = binding("dc", zone="k/zone", host="k/host")["spec"]
        await stage.client.patch(ClusterTopologyBinding, "dc", {"spec": changed})
        await stage.settle(5)
        assert await levels(stage) == ["k/zone", "k/host"]
        assert await drift(stage, "dc") == ("False", "InSync")
        await stage.no_writes_at_rest()
        await stage.client.delete(ClusterTopologyBinding, "dc")
        await stage.settle(10)
        assert not (await stage.client.list(Topology)).items

    async def levels(stage: Stage) -> list[str]:
        return [level.node_label for level in (await stage.client.get(Topology, "dc")).spec.levels]

    play(scenario, nodes=1)


async def drift(stage: Stage, name: str) -> tuple[str, str]:
    """Status and reason of a binding's drift condition."""
    binding = await stage.client.get(ClusterTopologyBinding, name)
    return next((c.status, c.reason) for c in binding.status.conditions if c.type == "SchedulerTopologyDrift")


@played(nodes=1)
async def test_tas18_a_named_topology_is_checked_and_not_touched(stage: Stage) -> None:
    """TAS18: a binding to a Topology that is absent drifts; when it appears with the right levels it is in sync."""
    bound = binding("dc", zone="k/zone")
    bound["spec"]["schedulerTopologyBindings"] = [{"schedulerName": "kai-scheduler", "topologyReference": "elsewhere"}]
    await stage.apply(bound)
    await stage.settle(5)
    assert (await drift(stage, "dc"))[0] == "True"
    status = (await stage.client.get(ClusterTopologyBinding, "dc")).status
    assert not status.scheduler_topology_statuses[0].in_sync
    theirs = {"metadata": {"name": "elsewhere"}, "spec": {"levels": [{"nodeLabel": "k/zone"}]}}
    await stage.client.create(Topology, theirs)
    await stage.settle(5)
    assert await drift(stage, "dc") == ("False", "InSync")


def test_tas20_a_vanished_binding(both: Play) -> None:
    """TAS20: without its binding a set says so, still scales, unconstrained; with the binding back all is well."""

    async def scenario(stage: Stage) -> None:
        own = binding("tas20-topology", zone=KEYS["zone"], rack=KEYS["rack"], host=KEYS["host"])
        (pcs,) = sample("e2e-yaml/tas-topology-condition")
        name = pcs["metadata"]["name"]
        await stage.apply(own, pcs)
        await stage.sees(lambda: condition(stage, name), ("False", "AllClusterTopologyLevelsAvailable"))
        await stage.client.delete(ClusterTopologyBinding, "tas20-topology")
        await stage.sees(lambda: condition(stage, name), ("Unknown", "ClusterTopologyNotFound"))
        await stage.scale(PodCliqueSet, name, 1)
        await stage.runs(2)
        gang = await stage.gang(f"{name}-0")
        assert gang.spec.topology_constraint is None
        assert "grove.io/topology-name" not in gang.metadata.annotations
        await stage.apply(own)
        await stage.sees(lambda: condition(stage, name), ("False", "AllClusterTopologyLevelsAvailable"))
        await stage.sees(lambda: topology_of(stage, f"{name}-0"), "tas20-topology")
        levels = {"spec": {"levels": [{"domain": "zone", "key": "z"}]}}
        await stage.client.patch(ClusterTopologyBinding, "tas20-topology", levels)
        await stage.sees(lambda: condition(stage, name), ("True", "ClusterTopologyLevelsUnavailable"))

    async def condition(stage: Stage, name: str) -> tuple[str, str]:
        conditions = {c.type: (c.status, c.reason) for c in (await stage.pcs(name)).status.conditions}
        return conditions.get("TopologyLevelsUnavailable", ("", ""))

    async def topology_of(stage: Stage, gang: str) -> str:
        return (await stage.gang(gang)).metadata.annotations.get("grove.io/topology-name", "")

    both(scenario, nodes=4)


@played(nodes=4)
async def test_tas17_the_same_domain_means_another_label_in_another_topology(stage: Stage) -> None:
    """TAS17: "block" of one binding and of another are different node labels."""
    own = binding("gb200-topology", block="example.com/nvl-block", rack="example.com/nvlink-domain")
    await stage.apply(TOPOLOGY, own, *sample("e2e-yaml/tas-multi-topology-gb200"))
    await stage.runs(2)
    spec = (await stage.gang("tas-gb200-workload-0")).spec
    keys = [spec.topology_constraint.required] if spec.topology_constraint else []
    keys += [group.topology_constraint.required for group in spec.podgroups if group.topology_constraint]
    assert keys == ["example.com/nvl-block"]


@played(nodes=12)
async def test_a_gangs_score_says_how_close_it_lies(stage: Stage) -> None:
    """placementScore is 1 for the closest placement, less where more domains are used than needed."""
    await stage.apply(TOPOLOGY, *sample("e2e-yaml/tas-pcs-pclq"))
    await stage.runs(2)
    gang = await stage.gang("tas-pcs-pclq-0")
    assert gang.status.placement_score is not None
    # Both pods would fit one host; the stand-in gives each its own.
    assert 0 < gang.status.placement_score < 1
    await stage.apply(*sample("e2e-yaml/workload1"))
    await stage.runs(12)
    assert (await stage.gang("workload1-0")).status.placement_score == 1.0


@played(nodes=24)
async def test_tas16_two_replicas_two_groups_and_scaling(stage: Stage) -> None:
    """TAS16: two set replicas with two scaling groups each give six gangs; scaling adds one more."""
    await stage.apply(TOPOLOGY, *sample("e2e-yaml/tas-pcs-multi-pcsg-multi-replica"))
    await stage.runs(20)
    assert len(await stage.list(PodGroup)) == 6
    await stage.scale(PodCliqueScalingGroup, "tas-pcs-multi-pcsg-1-decoder", 3)
    await stage.runs(22)
    spec = (await stage.gang("tas-pcs-multi-pcsg-1-decoder-1")).spec
    assert packed(spec)[0] == "rack"
