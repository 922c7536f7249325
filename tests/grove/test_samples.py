"""Every manifest of the samples is admitted unchanged and reaches the state that is documented for it."""

from __future__ import annotations

import pytest

from spinney.api.core import Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.groveconfig import Network
from spinney.api.podgang import PodGang
from spinney.grove.settings import GroveConfiguration, Settings
from spinney.kube.errors import ApiError
from tests.grove.stage import TOPOLOGY, Stage, sample
from tests.grove.virtual import VirtualStage, play

# File → set, set replicas, cliques, scaling groups, pods, gangs; those whose pods wait for devices are not run.
RUNS = {
    "e2e-yaml/auto-mnnvl/mnnvl-comprehensive-bare": ("mnnvl-comprehensive-bare", 1, 2, 0, 2, 1),
    "e2e-yaml/auto-mnnvl/mnnvl-gpu-optout": ("mnnvl-gpu-optout", 1, 1, 0, 1, 1),
    "e2e-yaml/scale-down-tiny": ("scale-down-tiny", 5, 5, 0, 10, 5),
    "e2e-yaml/scale-up-from-zero": ("scale-up-from-zero", 0, 0, 0, 0, 0),
    "e2e-yaml/tas-hierarchy": ("tas-hierarchy", 1, 4, 1, 8, 1),
    "e2e-yaml/tas-large-scale": ("tas-large-scale", 1, 10, 1, 20, 8),
    "e2e-yaml/tas-multirep": ("tas-multirep", 2, 2, 0, 4, 2),
    "e2e-yaml/tas-pcs-multi-pcsg-multi-replica": ("tas-pcs-multi-pcsg", 2, 18, 4, 20, 6),
    "e2e-yaml/tas-pcsg-scale": ("tas-pcsg-scale", 1, 3, 1, 6, 3),
    "e2e-yaml/tas-preferred-pack": ("tas-preferred-pack", 1, 3, 1, 3, 2),
    "e2e-yaml/workload1": ("workload1", 1, 5, 1, 10, 1),
    "e2e-yaml/workload2": ("workload2", 1, 5, 1, 10, 2),
    "e2e-yaml/workload6": ("workload6", 1, 5, 1, 10, 2),
    "samples/simple/simple2-explicit-startup-order": ("simple2", 1, 4, 0, 9, 1),
    "samples/user-guide/01_core-concepts/complete-inference-pipeline": ("comp-inf-ppln", 1, 6, 2, 11, 1),
    "samples/user-guide/01_core-concepts/multi-node-aggregated": ("multinode-aggregated", 1, 4, 1, 8, 2),
    "samples/user-guide/01_core-concepts/multi-node-disaggregated": ("multinode-disaggregated", 1, 6, 2, 13, 2),
    "samples/user-guide/01_core-concepts/single-node-aggregated": ("single-node-aggregated", 1, 1, 0, 2, 1),
    "samples/user-guide/01_core-concepts/single-node-disaggregated": ("single-node-disaggregated", 1, 2, 0, 5, 1),
    "samples/user-guide/02_pod-and-resource-naming-conventions/multinode-disaggregated-with-frontend": (
        "mn-disagg", 1, 7, 2, 13, 2,
    ),
    "samples/user-guide/03_environment-variables-for-pod-discovery/standalone-env-vars": (
        "env-demo-standalone", 1, 1, 0, 2, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS, ids=[name.rpartition("/")[2] for name in RUNS])
def test_a_sample_runs(name: str) -> None:
    """The sample is admitted, all its pods run, every gang is Running, no gate is left, and the budget is kept."""
    pcs, replicas, cliques, groups, pods, gangs = RUNS[name]

    async def scenario(stage: VirtualStage) -> None:
        await stage.apply(TOPOLOGY, *sample(name))
        await stage.runs(pods)
        stage.within_budget(replicas)
        status = (await stage.pcs(pcs)).status
        assert (status.available_replicas, status.ready) == (replicas, f"{replicas}/{replicas}")
        counts = [len(await stage.list(kind)) for kind in (PodClique, PodCliqueScalingGroup, PodGang)]
        assert counts == [cliques, groups, gangs]
        assert all(gang.status.phase == "Running" for gang in await stage.list(PodGang))
        assert not any(pod.spec.scheduling_gates for pod in await stage.pods())
        assert len([service for service in await stage.list(Service) if service.name != "kubernetes"]) == replicas

    play(scenario, nodes=24)


def test_a_group_with_spaces_is_refused() -> None:
    """mnnvl-gpu-invalid: the group's value is no DNS label."""

    async def scenario(stage: Stage) -> None:
        with pytest.raises(ApiError, match=r"annotations\[grove.io/mnnvl-group\]"):
            await stage.apply(*sample("e2e-yaml/auto-mnnvl/mnnvl-gpu-invalid"))
        assert not await stage.list(PodCliqueSet)

    on = Settings(user="operator", config=GroveConfiguration(network=Network(auto_mnnvl_enabled=True)))
    play(scenario, nodes=1)
    play(scenario, nodes=1, settings=on)
