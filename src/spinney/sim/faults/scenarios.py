"""Small scenarios: what users ask of a cluster, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import Config, Queue, SchedulingShard
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.resource import ResourceClaimTemplate
from spinney.embedded.nodes.profile import Profile
from spinney.sim.faults.steps import (
    Step,
    change,
    cordon,
    create,
    in_a_row,
    job,
    lose,
    pod,
    queue,
    remove,
    remove_queue,
    serving_set,
    share,
)

NODES = Profile(count=2, gpus=8, racks=1, blocks=1)
_KAI, _DEFAULT = labels.KAI_SCHEDULER, "default-scheduler"


@dataclass(frozen=True)
class Scenario:
    """Nodes, and the steps taken on them; after each step the cluster comes to rest."""

    steps: tuple[Step, ...]
    nodes: Profile = NODES
    # Whether the scheduler chooses victims: a crash during that may cost one more pod.
    has_victims: bool = False
    # Whether our scheduler serves kube-scheduler's pods as well.
    stand_in: bool = False


def _gang(scheduler: str) -> Scenario:
    return Scenario(
        (create(PodCliqueSet, serving_set(scheduler)), remove(PodCliqueSet, "serve")), stand_in=scheduler == _DEFAULT
    )


def _scaling(scheduler: str) -> Scenario:
    return Scenario(
        (
            create(PodCliqueSet, serving_set(scheduler)),
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
        return change(PodCliqueSet, "serve", {"spec": serving_set(scheduler, image, replicas)["spec"]})

    return Scenario(
        (
            create(PodCliqueSet, serving_set(scheduler, replicas=2)),
            to("app:2", 2),
            in_a_row(1.5, to("app:3", 2), to("app:4", 3)),
            remove(PodCliqueSet, "serve"),
        ),
        stand_in=scheduler == _DEFAULT,
    )


_CLAIM: Json = {
    "metadata": {"name": "gpu"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}


_SHARES = {"spec": {"resources": {"gpu": {"quota": 16}, "cpu": {"quota": -1}, "memory": {"quota": -1}}}}
_TWO_QUEUES = in_a_row(
    0.0, change(Queue, labels.DEFAULT_PARENT_QUEUE, _SHARES, ""), queue("qa", quota=8), queue("qb", quota=8)
)


def _claiming(name: str) -> Step:
    container = {"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return pod(name, resourceClaims=claims, containers=[container])


SCENARIOS: dict[str, Scenario] = {
    "gang-kai": _gang(_KAI),
    "gang-default": _gang(_DEFAULT),
    "scaling-kai": _scaling(_KAI),
    "scaling-default": _scaling(_DEFAULT),
    "update-kai": _update(_KAI),
    "update-default": _update(_DEFAULT),
    "termination": Scenario(
        (
            create(PodCliqueSet, serving_set(_KAI)),
            in_a_row(0.5, cordon(True), lose("serve-0-decode-0-worker", 1)),
            cordon(False),
            remove(PodCliqueSet, "serve"),
        ),
        has_victims=True,
    ),
    "reclaim": Scenario(
        (
            _TWO_QUEUES,
            job("bb", 16, 1, queue="qb"),
            job("aa", 2, 4, queue="qa", annotations={"kai.scheduler/batch-min-member": "2"}),
            remove(Job, "aa"),
            remove(Job, "bb"),
            remove_queue("qa"),
            remove_queue("qb"),
        ),
        has_victims=True,
    ),
    "preemption": Scenario(
        (
            _TWO_QUEUES,
            job("low", 4, 4, queue="qa"),
            job("high", 2, 8, queue="qa", labels={"priorityClassName": "inference"}),
            remove(Job, "high"),
            remove(Job, "low"),
        ),
        has_victims=True,
    ),
    # There is one way to share: three on one GPU, then two on another.
    "shared": Scenario(
        (
            in_a_row(0.05, *(share(f"part-{number}", "0.3") for number in range(3))),
            share("part-3", "0.5"),
            remove(Pod, "part-0"),
            share("part-4", "0.5"),
            in_a_row(0.01, *(remove(Pod, f"part-{number}") for number in range(1, 5))),
        )
    ),
    "claims": Scenario(
        (
            create(ResourceClaimTemplate, _CLAIM),
            in_a_row(0.05, _claiming("one"), _claiming("two")),
            remove(Pod, "one"),
            remove(Pod, "two"),
        ),
        nodes=Profile(count=2, gpus=2, racks=1, blocks=1, devices="dra"),
    ),
    "services": Scenario(
        (
            queue("team", quota=4),
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
            remove_queue("team"),
        )
    ),
}
