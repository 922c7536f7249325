"""Small days in the life of a cluster: what users ask for, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.core import Node
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import Config, Queue, SchedulingShard
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.embedded.nodes.profile import Profile
from spinney.kube.errors import ApiError
from tests import make
from tests.e2e.installation import Installed
from tests.faults.processes import World

Step = Callable[[World], Awaitable[None]]

NODES = Profile(count=2, gpus=8, racks=1, blocks=1)


@dataclass(frozen=True)
class Scenario:
    """Nodes, and what happens on them. After each step everybody comes to rest."""

    steps: tuple[Step, ...]
    nodes: Profile = NODES
    # Whether pods go by a choice of the moment: a crash in the middle of it may cost one more.
    victims: bool = False
    # Whether our scheduler stands in for kube-scheduler.
    stand_in: bool = False


async def asked(ask: Callable[[], Awaitable[object]]) -> None:
    """What a user asks for; while whoever has to admit it is away, users try again."""
    while True:
        try:
            await ask()
        except ApiError as error:
            if "failed calling webhook" not in str(error):
                raise
            await asyncio.sleep(0.5)
        else:
            return


def serve(scheduler: str, image: str = "app:1", replicas: int = 1) -> Json:
    """A set with a role by itself, and a scaling group of two roles."""

    def pods(gpus: int) -> Json:
        amounts = {labels.GPU_RESOURCE: str(gpus)} if gpus else {"cpu": "100m"}
        container = {"name": "main", "image": image, "resources": {"limits": amounts, "requests": amounts}}
        return {"schedulerName": scheduler, "containers": [container]}

    built = make.pcs("serve", replicas=replicas).label(labels.QUEUE, labels.DEFAULT_QUEUE)
    built.clique("router", 2, 1, **pods(0)).clique("leader", 1, **pods(1)).clique("worker", 1, **pods(1))
    built.object["spec"]["template"]["terminationDelay"] = "20s"
    return built.group("decode", ["leader", "worker"], 1).build()


def create(of: type, document: Json) -> Step:
    async def step(world: World) -> None:
        await asked(lambda: world.held.client.create(of, document, "default"))

    return step


def change(of: type, name: str, patch: Json, namespace: str = "default") -> Step:
    async def step(world: World) -> None:
        await asked(lambda: world.held.client.patch(of, (namespace, name), patch))

    return step


def remove(of: type, name: str, namespace: str = "default") -> Step:
    async def step(world: World) -> None:
        await asked(lambda: world.held.client.delete(of, (namespace, name), propagation="Background"))

    return step


def soon(seconds: float, *steps: Step) -> Step:
    """One thing after the other without waiting for rest."""

    async def step(world: World) -> None:
        for each in steps:
            await each(world)
            await asyncio.sleep(seconds)

    return step


def lose(prefix: str, count: int = 1) -> Step:
    """Pods are deleted."""

    async def step(world: World) -> None:
        for pod in sorted(await world.held.pods(prefix), key=lambda pod: pod.name)[:count]:
            await world.held.client.delete(Pod, ("default", pod.name))

    return step


def cordon(closed: bool) -> Step:
    """Nodes take no pods any more, or do again."""

    async def step(world: World) -> None:
        for node in (await world.held.client.list(Node)).items:
            await world.held.client.patch(Node, node.name, {"spec": {"unschedulable": closed}})

    return step


def share(name: str, fraction: str) -> Step:
    """A pod with a part of a GPU."""
    pod = make.pod(name).scheduler(labels.KAI_SCHEDULER).label(labels.QUEUE, labels.DEFAULT_QUEUE)
    return create(Pod, pod.annotate("gpu-fraction", fraction).build())


def job(name: str, pods: int, gpus: int, **options: object) -> Step:
    async def step(world: World) -> None:
        await asked(lambda: world.held.job(name, pods, gpus, **options))  # type: ignore[arg-type]  # as `job` takes them

    return step


def do(what: Callable[[Installed], Awaitable[object]]) -> Step:
    async def step(world: World) -> None:
        await asked(lambda: what(world.held))

    return step


def _gang(scheduler: str) -> Scenario:
    return Scenario(
        (create(PodCliqueSet, serve(scheduler)), remove(PodCliqueSet, "serve")), stand_in=scheduler == _DEFAULT
    )


def _scaling(scheduler: str) -> Scenario:
    return Scenario(
        (
            create(PodCliqueSet, serve(scheduler)),
            change(PodCliqueScalingGroup, "serve-0-decode", {"spec": {"replicas": 3}}),
            change(PodClique, "serve-0-router", {"spec": {"replicas": 4}}),
            change(PodCliqueSet, "serve", {"spec": {"replicas": 2}}),
            change(PodClique, "serve-0-router", {"spec": {"replicas": 1}}),
            change(PodCliqueScalingGroup, "serve-0-decode", {"spec": {"replicas": 1}}),
            change(PodCliqueSet, "serve", {"spec": {"replicas": 1}}),
            remove(PodCliqueSet, "serve"),
        ),
        stand_in=scheduler == _DEFAULT,
    )


def _update(scheduler: str) -> Scenario:
    def to(image: str, replicas: int) -> Step:
        return change(PodCliqueSet, "serve", {"spec": serve(scheduler, image, replicas)["spec"]})

    return Scenario(
        (
            create(PodCliqueSet, serve(scheduler, replicas=2)),
            to("app:2", 2),
            soon(1.5, to("app:3", 2), to("app:4", 3)),
            remove(PodCliqueSet, "serve"),
        ),
        stand_in=scheduler == _DEFAULT,
    )


_KAI, _DEFAULT = labels.KAI_SCHEDULER, "default-scheduler"
_CLAIM: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}


async def _two_queues(held: Installed) -> None:
    await held.lend("default-parent-queue", 16)
    for name in ("qa", "qb"):
        await held.queue(name, "default-parent-queue", quota=8)


def _claiming(name: str) -> Step:
    pod = make.pod(name).scheduler(_KAI).label(labels.QUEUE, labels.DEFAULT_QUEUE).build()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return create(Pod, pod)


SCENARIOS: dict[str, Scenario] = {
    "gang-kai": _gang(_KAI),
    "gang-default": _gang(_DEFAULT),
    "scaling-kai": _scaling(_KAI),
    "scaling-default": _scaling(_DEFAULT),
    "update-kai": _update(_KAI),
    "update-default": _update(_DEFAULT),
    "termination": Scenario(
        (
            create(PodCliqueSet, serve(_KAI)),
            soon(0.5, cordon(True), lose("serve-0-decode-0-worker", 1)),
            cordon(False),
            remove(PodCliqueSet, "serve"),
        ),
        victims=True,
    ),
    "reclaim": Scenario(
        (
            do(_two_queues),
            job("bb", 16, 1, queue="qb"),
            job("aa", 2, 4, queue="qa", annotations={"kai.scheduler/batch-min-member": "2"}),
            remove(Job, "aa"),
            remove(Job, "bb"),
            do(lambda held: held.drop_queue("qa")),
            do(lambda held: held.drop_queue("qb")),
        ),
        victims=True,
    ),
    "preemption": Scenario(
        (
            do(_two_queues),
            job("low", 4, 4, queue="qa"),
            job("high", 2, 8, queue="qa", labels={"priorityClassName": "inference"}),
            remove(Job, "high"),
            remove(Job, "low"),
        ),
        victims=True,
    ),
    # Chosen so that there is one way to share: three on one GPU, then two on another.
    "shared": Scenario(
        (
            soon(0.05, *(share(f"part-{number}", "0.3") for number in range(3))),
            share("part-3", "0.5"),
            remove(Pod, "part-0"),
            share("part-4", "0.5"),
            soon(0.01, *(remove(Pod, f"part-{number}") for number in range(1, 5))),
        )
    ),
    "claims": Scenario(
        (
            do(lambda held: held.apply(_CLAIM)),
            soon(0.05, _claiming("one"), _claiming("two")),
            remove(Pod, "one"),
            remove(Pod, "two"),
        ),
        nodes=Profile(count=2, gpus=2, racks=1, blocks=1, devices="dra"),
    ),
    "services": Scenario(
        (
            do(lambda held: held.queue("team", "default-parent-queue", quota=4)),
            job("work", 3, 1, queue="team"),
            change(Queue, "team", {"spec": {"resources": {"gpu": {"quota": 8}}}}, ""),
            change(
                Config,
                labels.KAI_CONFIG,
                {"spec": {"binder": {"replicas": 2}, "queueController": {"service": {"enabled": False}}}},
                "",
            ),
            change(SchedulingShard, "default", {"spec": {"placementStrategy": {"gpu": "spread", "cpu": "spread"}}}, ""),
            change(Config, labels.KAI_CONFIG, {"spec": {"binder": None, "queueController": None}}, ""),
            change(SchedulingShard, "default", {"spec": {"placementStrategy": None}}, ""),
            remove(Job, "work"),
            do(lambda held: held.drop_queue("team")),
        )
    ),
}
