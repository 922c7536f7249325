"""All components under latency, losses and restarts: nothing is stuck, doubled or left behind."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from spinney.api import labels
from spinney.api.core import Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import BindRequest, PodGroup
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.embedded.nodes.profile import Profile
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError
from spinney.sim.loop import run_virtual
from tests import make
from tests.e2e.installation import Installed
from tests.faults.lossy import lossy_installation

NODES = Profile(count=4, gpus=8, racks=2, blocks=1)
# A set replica: two routers, and two instances of a leader with two workers.
REPLICA = 8


def ordered(image: str, replicas: int) -> Json:
    """A set whose cliques start in order, with a scaling group of two cliques and two replicas."""

    def pods(gpus: int) -> Json:
        amounts = {labels.GPU_RESOURCE: str(gpus)} if gpus else {"cpu": "100m"}
        container = {"name": "main", "image": image, "resources": {"limits": amounts, "requests": amounts}}
        return {"schedulerName": labels.KAI_SCHEDULER, "containers": [container]}

    built = make.pcs("serve", replicas=replicas).label(labels.QUEUE, labels.DEFAULT_QUEUE)
    built.clique("router", 2, 1, **pods(0)).clique("leader", 1, **pods(1)).clique("worker", 2, 1, **pods(2))
    template = built.object["spec"]["template"]
    template["cliqueStartupType"] = "CliqueStartupTypeInOrder"
    template["podCliqueScalingGroups"] = [
        {"name": "decode", "cliqueNames": ["leader", "worker"], "replicas": 2, "minAvailable": 1}
    ]
    return built.build()


async def sharing(held: Installed, name: str, fraction: str) -> None:
    """Create a pod with a fraction of a GPU."""
    pod = make.pod(name).scheduler(labels.KAI_SCHEDULER).label(labels.QUEUE, labels.DEFAULT_QUEUE)

    async def created() -> bool:
        try:
            await held.client.create(Pod, pod.annotate("gpu-fraction", fraction).build(), "default")
        except ApiError as error:
            if "failed calling webhook" not in str(error):
                raise
            # The process that admits it is down: users retry.
            return False
        return True

    await held.eventually(created)


async def serving(held: Installed, image: str, pods: int) -> bool:
    """Whether exactly so many pods of the set exist, all ready and with this image."""
    serving_pods = [pod for pod in (await held.client.list(Pod, "default")).items if pod.name.startswith("serve-")]
    ready = [pod for pod in await held.running("serve-") if pod.spec.containers[0].image == image]
    return len(serving_pods) == len(ready) == pods


async def left(held: Installed) -> list[str]:
    """Objects that should be deleted with the workloads."""
    remains = []
    for kind in (Pod, PodClique, PodCliqueScalingGroup, PodGang, PodGroup, BindRequest, Service):
        remains += [f"{kind.resource.kind} {each.name}" for each in (await held.client.list(kind, "default")).items]
    remains += [f"reservation {pod.name}" for pod in (await held.client.list(Pod, "kai-resource-reservation")).items]
    return [name for name in remains if name != "Service kubernetes"]


async def workloads(held: Installed) -> None:
    """Create, share, update, scale, lose and delete workloads."""
    await held.client.create(PodCliqueSet, ordered("app:1", 1), "default")
    for number in range(3):
        await sharing(held, f"part-{number}", "0.3")
    await held.job("batch", 4, queue=labels.DEFAULT_QUEUE)
    await held.eventually(partial(serving, held, "app:1", REPLICA))
    await held.runs("part", 3)
    await held.runs("batch", 4)

    await held.client.patch(PodCliqueSet, ("default", "serve"), {"spec": ordered("app:2", 2)["spec"]})
    lost = (await held.running("batch"))[0]
    await held.client.delete(Pod, ("default", lost.name))
    await held.client.delete(Pod, ("default", "part-0"))
    await sharing(held, "part-3", "0.5")
    await held.eventually(partial(serving, held, "app:2", 2 * REPLICA), seconds=300)
    await held.runs("part", 3)
    await held.runs("batch", 4)

    await held.client.patch(PodCliqueScalingGroup, ("default", "serve-0-decode"), {"spec": {"replicas": 3}})
    await held.client.patch(PodCliqueSet, ("default", "serve"), {"spec": {"replicas": 1}})
    await held.eventually(partial(serving, held, "app:2", REPLICA + 3), seconds=120)

    await held.client.delete(PodCliqueSet, ("default", "serve"))
    await held.drop_job("batch")
    for number in range(1, 4):
        await held.client.delete(Pod, ("default", f"part-{number}"))

    async def nothing() -> bool:
        return not await left(held)

    try:
        await held.eventually(nothing, seconds=120)
    except AssertionError as error:
        raise AssertionError(await left(held)) from error


@pytest.mark.parametrize(("seed", "lag"), [(1, 0.005), (2, 0.05), (3, 0.5)])
def test_with_slow_requests(seed: int, lag: float) -> None:
    """Workloads run in the end, and are deleted without a trace."""
    run_workloads(lossy_installation(NODES, seed=seed, lag=lag))


@pytest.mark.parametrize(("seed", "lag"), [(2, 0.02), (4, 0.002)])
def test_with_lost_answers_and_events(seed: int, lag: float) -> None:
    """Two percent of requests, answers and events are lost, and nobody waits for them forever."""
    run_workloads(lossy_installation(NODES, seed=seed, lag=lag, losses=0.02))


@pytest.mark.parametrize(("seed", "lag"), [(7, 0.2), (8, 0.02)])
def test_with_restarts(seed: int, lag: float) -> None:
    """Services and operator restart eight times each, and continue or undo what they began."""
    run_workloads(lossy_installation(NODES, seed=seed, lag=lag, restarts=8))


def run_workloads(world: AbstractAsyncContextManager[Client]) -> None:
    """Run the workloads in an installation."""

    async def main() -> None:
        async with world as client:
            await workloads(Installed(client))

    run_virtual(main(), limit=86400)
