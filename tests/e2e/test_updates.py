"""A rolling update end to end in virtual time: operator, backend, scheduler and binder, all of ours."""

from __future__ import annotations

from collections import Counter

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.embedded.nodes.profile import Profile
from spinney.sim.installation import grove_operator
from spinney.sim.loop import clock
from tests import make
from tests.e2e.installation import Installed, end_to_end

PODS = 3


def service(image: str, gpus: int) -> Json:
    """A set of one clique, whose pods ask for so many GPUs."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": image, "resources": {"limits": amounts, "requests": amounts}}
    built = make.pcs("svc").label(labels.QUEUE, labels.DEFAULT_QUEUE)
    return built.clique("w", PODS, 1, schedulerName=labels.KAI_SCHEDULER, containers=[container]).build()


@end_to_end(Profile(count=4, gpus=8, racks=1, blocks=1))
async def test_updated_pods_go_back_to_their_nodes(held: Installed) -> None:
    """The new pods ask for less and would fit beside another job, on a fuller node; they return to where they were."""
    async with grove_operator(held.client, clock()):
        await held.job("filler", 1, gpus=5, queue=labels.DEFAULT_QUEUE)
        (filler,) = await held.runs("filler", 1)
        await held.client.create(PodCliqueSet, service("app:1", gpus=4), "default")
        before = await held.runs("svc", PODS)
        await held.client.patch(PodCliqueSet, ("default", "svc"), {"spec": service("app:2", gpus=2)["spec"]})

        async def updated() -> bool:
            running = await held.running("svc")
            return len(running) == PODS and all(pod.spec.containers[0].image == "app:2" for pod in running)

        await held.eventually(updated)
        after = await held.running("svc")
        assert filler.spec.node_name not in homes(before)
        assert homes(after) == homes(before)


def homes(pods: list[Pod]) -> Counter[str]:
    """How many pods each node has."""
    return Counter(pod.spec.node_name for pod in pods)
