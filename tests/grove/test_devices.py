"""Shared device claims at every level, and ComputeDomains of NVLink groups."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.groveconfig import Network
from spinney.api.nvidia import ComputeDomain
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate
from spinney.grove.settings import GroveConfiguration, Settings
from tests.grove.stage import Stage, play, sample

MNNVL = Settings(config=GroveConfiguration(network=Network(auto_mnnvl_enabled=True)))
EXTERNAL = {"spec": {"spec": {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "ext-class"}}]}}}}


async def claims(stage: Stage) -> set[str]:
    """The names of all claims."""
    return {claim.name for claim in await stage.list(ResourceClaim)}


def test_rs1_claims_follow_every_level() -> None:
    """RS1: claims of set, scaling group and clique come and go with the replicas they serve."""

    async def scenario(stage: Stage) -> None:
        await stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rs-shared"}})
        await stage.client.create(ResourceClaimTemplate, {"metadata": {"name": "ext-ns-tpl"}, **EXTERNAL}, "rs-shared")
        await stage.apply(*sample("e2e-yaml/workload-resource-sharing"))
        await stage.settle(20)
        first = await claims(stage)
        assert first == {
            "rs-test-all-int-tpl5", "rs-test-0-ext-tpl", "rs-test-0-int-tpl", "rs-test-all-int-tpl7",
            "rs-test-0-sga-all-int-tpl2", "rs-test-0-sga-0-int-tpl3", "rs-test-0-sga-1-int-tpl3",
            "rs-test-0-sga-all-int-tpl8", "rs-test-0-worker-a-0-int-tpl4", "rs-test-0-worker-a-all-ext-ns-tpl",
            "rs-test-0-sga-0-worker-b-all-int-tpl6", "rs-test-0-sga-1-worker-b-all-int-tpl6",
        }  # fmt: skip
        (alone,) = await stage.pods("rs-test-0-worker-a")
        (member,) = await stage.pods("rs-test-0-sga-1-worker-b")
        assert [len(pod.spec.resource_claims) for pod in (alone, member)] == [5, 7]
        assert "rs-test-0-sga-1-int-tpl3" in {claim.resource_claim_name for claim in member.spec.resource_claims}
        assert len(member.spec.containers[0].resources.claims) == 7
        for count, kind, name, replicas in (
            (10, PodCliqueScalingGroup, "rs-test-0-sga", 1),
            (14, PodCliqueScalingGroup, "rs-test-0-sga", 3),
            (15, PodClique, "rs-test-0-worker-a", 2),
            (25, PodCliqueSet, "rs-test", 2),
            (15, PodCliqueSet, "rs-test", 1),
        ):
            await stage.scale(kind, name, replicas)
            await stage.settle(20)
            assert len(await claims(stage)) == count
        await stage.client.delete(PodCliqueSet, "rs-test", "default")
        await stage.settle(60)
        assert not await claims(stage)

    play(scenario, nodes=4)


def test_claims_are_owned_by_the_level_that_shares_them() -> None:
    """A claim belongs to the set, the scaling group or the clique that shares it."""

    async def scenario(stage: Stage) -> None:
        await stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rs-shared"}})
        await stage.client.create(ResourceClaimTemplate, {"metadata": {"name": "ext-ns-tpl"}, **EXTERNAL}, "rs-shared")
        await stage.apply(*sample("e2e-yaml/workload-resource-sharing"))
        await stage.settle(20)
        owners = {c.name: c.metadata.owner_references[0].kind for c in await stage.list(ResourceClaim)}
        assert owners["rs-test-0-int-tpl"] == "PodCliqueSet"
        assert owners["rs-test-0-sga-0-int-tpl3"] == "PodCliqueScalingGroup"
        assert owners["rs-test-0-worker-a-all-ext-ns-tpl"] == "PodClique"

    play(scenario, nodes=4)


async def domains(stage: Stage) -> set[str]:
    """The names of all ComputeDomains."""
    return {domain.name for domain in await stage.list(ComputeDomain)}


async def joined(stage: Stage) -> dict[str, str]:
    """Clique → the claim template its pods join by."""
    found: dict[str, str] = {}
    for pod in await stage.list(Pod):
        for claim in pod.spec.resource_claims:
            if claim.name == "mnnvl-claim":
                found[pod.metadata.labels["grove.io/podclique"].rpartition("-")[2]] = claim.resource_claim_template_name
    return found


def test_mnnvl_groups_inherit_override_and_opt_out() -> None:
    """MNNVL: the nearest annotation wins, `none` opts out, and each group in use has one domain per set replica."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(*sample("e2e-yaml/auto-mnnvl/mnnvl-comprehensive-mix"))
        await stage.settle(20)
        groups = ("default", "train", "infer", "batch", "solo")
        assert await domains(stage) == {f"mnnvl-mix-0-{group}" for group in groups}
        wanted = {"sa1": "default", "p1": "default", "sa2": "train", "p4": "train", "p2": "infer", "p5": "batch"}
        assert await joined(stage) == {
            **{clique: f"mnnvl-mix-0-{group}" for clique, group in wanted.items()},
            "p8": "mnnvl-mix-0-solo",
        }

    play(scenario, nodes=12, settings=replace(MNNVL, user="operator"))


def test_mnnvl_domains_scale_with_the_set() -> None:
    """MNNVL: one to three replicas and back make and remove domains; a deleted set leaves none."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(*sample("e2e-yaml/auto-mnnvl/mnnvl-gpu-default"))
        for replicas in (3, 1):
            await stage.scale(PodCliqueSet, "mnnvl-gpu-default", replicas)
            await stage.settle(20)
            assert await domains(stage) == {f"mnnvl-gpu-default-{index}-default" for index in range(replicas)}
        await stage.client.delete(ComputeDomain, "mnnvl-gpu-default-0-default", "default")
        await stage.settle(20)
        assert len(await domains(stage)) == 1
        await stage.client.delete(PodCliqueSet, "mnnvl-gpu-default", "default")
        await stage.settle(30)
        assert not await domains(stage)

    play(scenario, nodes=12, settings=replace(MNNVL, user="operator"))


def test_mnnvl_leaves_cpu_cliques_and_unmarked_sets_alone() -> None:
    """MNNVL: a clique without GPUs ignores its annotation, a set without annotation gets nothing."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(*sample("e2e-yaml/auto-mnnvl/mnnvl-cpu-with-annotation"))
        await stage.apply(*sample("e2e-yaml/auto-mnnvl/mnnvl-comprehensive-bare"))
        await stage.apply(*sample("e2e-yaml/auto-mnnvl/mnnvl-gpu-optout"))
        await stage.settle(20)
        assert await domains(stage) == {"mnnvl-cpu-with-annotation-0-default"}
        assert await joined(stage) == {"gp": "mnnvl-cpu-with-annotation-0-default"}

    play(scenario, nodes=12, settings=replace(MNNVL, user="operator"))
