"""KAI's own samples, unchanged, in the state that its documentation promises."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api import labels
from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.apps import Deployment
from spinney.api.batch import Job
from spinney.api.conditions import find, is_true
from spinney.api.core import ConfigMap, Namespace, Node, Pod
from spinney.api.kai import BindRequest, PodGroup, Queue, SchedulingShard
from spinney.sim.loop import run_virtual
from tests import data
from tests.e2e.installation import Installed, documents, end_to_end, installed, one_rack
from tests.virtual_time import virtual


async def sample(held: Installed, name: str, namespace: str = "default") -> None:
    """Apply a file."""
    await held.apply_file(data.path(f"samples/kai/{name}"), namespace)


@pytest.mark.parametrize(
    ("file", "pod", "portion"),
    [
        ("gpu-memory.yaml", "gpu-sharing", "0.03"),
        ("gpu-sharing.yaml", "gpu-sharing", "0.50"),
        ("gpu-sharing-init-container.yaml", "gpu-sharing-init-container", "0.50"),
        ("gpu-sharing-non-default-container.yaml", "gpu-sharing-non-default", "0.50"),
        ("mps/gpu-sharing-with-mps.yaml", "", "0.50"),
    ],
)
def test_a_part_of_a_gpu(file: str, pod: str, portion: str) -> None:
    """The pod is bound with its share, one reservation pod holds the GPU, two ConfigMaps tell the container."""
    path = data.path(f"samples/kai/docs/gpu-sharing/{file}")

    async def test() -> None:
        async with installed(one_rack()) as held:
            await held.apply_file(path)
            name = pod or documents(path)[0]["metadata"]["name"]
            fraction_pod = (await held.runs(name, 1))[0]
            assert fraction_pod.metadata.annotations[labels.RECEIVED_RESOURCE_TYPE] == "Fraction"
            request = await held.client.get(BindRequest, ("default", name))
            assert request.spec.received_gpu is not None
            assert request.spec.received_gpu.portion == portion
            assert len(await held.pods(namespace=labels.RESERVATION_NAMESPACE)) == 1
            maps = [each for each in (await held.client.list(ConfigMap, "default")).items if "shared-gpu" in each.name]
            assert len(maps) == 2

    run_virtual(test(), limit=3600)


@end_to_end(one_rack(gpus=1))
async def test_two_halves_share_a_gpu(held: Installed) -> None:
    """The same file in two namespaces: one GPU, one reservation pod."""
    await held.client.create(Namespace, {"metadata": {"name": "second"}})
    for namespace in ("default", "second"):
        await sample(held, "docs/gpu-sharing/gpu-sharing.yaml", namespace)

    async def both() -> bool:
        return bool(await held.running("gpu-sharing") and await held.running("gpu-sharing", "second"))

    await held.eventually(both)
    assert len(await held.pods(namespace=labels.RESERVATION_NAMESPACE)) == 1


@end_to_end(one_rack())
async def test_quickstart(held: Installed) -> None:
    """Queues and pods of the quick start, in both places where they stand."""
    await sample(held, "docs/quickstart/default-queues.yaml")
    await sample(held, "docs/quickstart/pods/cpu-only-pod.yaml")
    await sample(held, "docs/quickstart/pods/gpu-pod.yaml")
    for name in ("cpu-only-pod", "gpu-pod"):
        await held.runs(name, 1)
        group = await held.group(f"pg-{name}")
        assert (group.spec.min_member, group.spec.queue) == (1, "default-queue")
    for name in ("cpu-only-pod", "gpu-pod"):
        await held.client.delete(Pod, ("default", name))
    await asyncio.sleep(5)
    await sample(held, "examples/quickstart/pods/cpu-only-pod.yaml")
    await sample(held, "examples/quickstart/pods/gpu-pod.yaml")
    for name in ("cpu-only-pod", "gpu-pod"):
        await held.runs(name, 1)


@end_to_end(one_rack())
async def test_priority(held: Installed) -> None:
    """The class comes from the pod's label; the limited queue runs one GPU at a time."""
    await sample(held, "docs/priority/example/train-priority-pod.yaml")
    await held.runs("train-pod", 1)
    assert (await held.group("pg-train-pod")).spec.priority_class_name == "train"
    await sample(held, "docs/priority/example/limited-queue.yaml")
    await held.job("limited", pods=2, queue="test")
    await held.runs("limited", 1)
    await asyncio.sleep(20)
    assert len(await held.running("limited")) == 1
    queue = await held.client.get(Queue, "default")
    assert queue.status.child_queues == ("test",)


@pytest.mark.parametrize(("gpus", "running"), [(1, 0), (2, 2), (5, 5), (6, 6)])
@virtual
async def test_a_job_with_a_minimum(gpus: int, running: int) -> None:
    """Nothing starts below the minimum of 2; above it, as many as fit."""
    async with installed(one_rack(gpus=gpus)) as held:
        await sample(held, "examples/batch/batch-job-min-member.yaml")
        await asyncio.sleep(30)
        assert len(await held.running("batch-job")) == running
        assert (await held.group("pg-batch-job-min-member")).spec.min_member == 2


@pytest.mark.parametrize(("gpus", "running"), [(1, 0), (2, 2)])
@virtual
async def test_a_group_of_the_users_own(gpus: int, running: int) -> None:
    """Both pods or none; the grouper makes no second group."""
    async with installed(one_rack(gpus=gpus)) as held:
        await sample(held, "examples/batch/external-podgroup-job.yaml")
        await asyncio.sleep(30)
        assert len(await held.running("external")) == running
        assert [group.name for group in (await held.client.list(PodGroup)).items] == ["external-batch-job"]


@end_to_end(one_rack())
async def test_preemption_delay(held: Installed) -> None:
    """The preemptor waits its two minutes and says so; then the victim goes and it runs."""
    for name in ("00-queues", "01-victim"):
        await sample(held, f"examples/preemption-delay/{name}.yaml")

    async def victim_runs() -> bool:
        return bool(await held.running("victim", "delay-demo"))

    await held.eventually(victim_runs)
    await sample(held, "examples/preemption-delay/02-delayed-preemptor.yaml")
    await asyncio.sleep(100)
    assert await victim_runs()
    group = await held.group("pg-delayed", "delay-demo")
    reasons = {reason.reason for each in group.status.scheduling_conditions for reason in each.reasons}
    assert "PreemptionDelayNotElapsed" in reasons

    async def preempted() -> bool:
        return bool(await held.running("delayed", "delay-demo")) and not await victim_runs()

    await held.eventually(preempted, 60)
    assert labels.LAST_EVICTION in (await held.group("victim", "delay-demo")).metadata.annotations


@end_to_end(one_rack(2))
async def test_time_based_shard(held: Installed) -> None:
    """The default shard is reconfigured, and its scheduler goes on."""
    await sample(held, "examples/time-based-fairshare/scheduling-shard-minimal.yaml")
    await asyncio.sleep(5)
    shard = await held.client.get(SchedulingShard, "default")
    assert is_true(shard.status.conditions, "Ready")
    assert shard.metadata.generation > 1


@pytest.mark.parametrize(("count", "first"), [(2, 2), (1, 1)])
@virtual
async def test_two_teams(count: int, first: int) -> None:
    """With room for both, both run; with room for one, one after the other; both end after ten minutes."""
    async with installed(one_rack(count)) as held:
        await sample(held, "examples/time-based-fairshare/two-queue-oscillation/jobs.yaml")
        await asyncio.sleep(20)
        for team in ("team-a", "team-b"):
            group = await held.group(f"pg-{team}")
            reasons = {reason.reason for each in group.status.scheduling_conditions for reason in each.reasons}
            assert reasons == {"QueueDoesNotExist"}
        for name, parent in (("teams", ""), ("team-a", "teams"), ("team-b", "teams")):
            await held.queue(name, parent)
        await held.runs("team", first)
        await asyncio.sleep(1300)
        pods = (await held.client.list(Pod, "default")).items
        assert {pod.name: pod.status.phase for pod in pods} == {
            "team-a-training-job": "Succeeded",
            "team-b-training-job": "Succeeded",
        }


@end_to_end(one_rack(4, gpus=2))
async def test_topology_aliases(held: Installed) -> None:
    """The alias stands for the label: all three pods in one rack, and the Job completes."""
    for index in range(4):
        rack = {"accelerator.nvidia.com/rack": f"r{index // 2}"}
        await held.client.patch(Node, f"node-0{index}", {"metadata": {"labels": rack}})
    await sample(held, "examples/topology-aliases/topology-aliases.yaml")
    pods = await held.runs("aliased", 3)
    assert len({int(pod.spec.node_name[-1]) // 2 for pod in pods}) == 1
    await asyncio.sleep(3700)
    job = await held.client.get(Job, ("default", "aliased-topology-job"))
    assert is_true(job.status.conditions, "Complete")


@end_to_end(one_rack(), stand_in=True)
async def test_what_others_schedule(held: Installed) -> None:
    """Deployments that are not KAI's run all the same; one waits for the ConfigMap that its pod mounts."""
    await sample(held, "hack/local_registry.yaml")
    await sample(held, "hack/gitops/chart-repo.yaml")

    async def registry() -> bool:
        return bool(await held.running("registry", "kube-registry"))

    await held.eventually(registry)
    await asyncio.sleep(10)
    assert await held.running("chart-repo", "chart-repo") == []
    await held.client.create(ConfigMap, {"metadata": {"name": "kai-charts"}}, "chart-repo")

    async def charts() -> bool:
        deployment = await held.client.get(Deployment, ("chart-repo", "chart-repo"))
        return deployment.status.available_replicas == 1

    await held.eventually(charts, 180)


@end_to_end(one_rack())
async def test_what_is_only_stored(held: Installed) -> None:
    """A ConfigMap for Grafana, and a CRD, which is established."""
    await held.client.create(Namespace, {"metadata": {"name": "monitoring"}})
    await sample(held, "docs/metrics/grafana-datasource.yaml")
    await sample(held, "test/e2e/suites/integrations/third_party/karta/customjobs_crd.yaml")
    await asyncio.sleep(1)
    crd = await held.client.get(CustomResourceDefinition, "customjobs.e2e.example.com")
    assert find(crd.status.conditions, "Established") is not None
