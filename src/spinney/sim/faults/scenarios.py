"""Small scenarios: what users ask of a cluster, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.core import Node, PersistentVolumeClaim
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import Config, Queue, SchedulingShard, Topology
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.resource import ResourceClaimTemplate
from spinney.embedded.nodes.profile import Profile
from spinney.sim.faults.steps import (
    Step,
    change,
    cordon,
    create,
    drain,
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
# Where victims are chosen there is one way to place everything, so that runs can be compared.
_ONE_NODE = Profile(count=1, gpus=8, racks=1, blocks=1)
_FEW_GPUS = Profile(count=2, gpus=2, racks=1, blocks=1)
_KAI, _DEFAULT = labels.KAI_SCHEDULER, "default-scheduler"
_MIN_MEMBER = labels.BATCH_MIN_MEMBER


@dataclass(frozen=True)
class Scenario:
    """Nodes, and the steps taken on them; after each step the cluster comes to rest."""

    summary: str
    steps: tuple[Step, ...]
    nodes: Profile = NODES
    # The backends that run; those of other projects' schedulers get a stand-in of their scheduler.
    backends: tuple[str, ...] = ("kai",)
    # Whether news race, such as that a node is cordoned and that a pod waits, the end of a pod and the choice of a
    # victim, or new pods and the end of terminationDelay: where some come late, the run may end in another way.
    news_race: bool = False

    @property
    def stand_in(self) -> bool:
        """Whether our scheduler serves kube-scheduler's pods as well."""
        return "default" in self.backends


_DELETE = remove(PodCliqueSet, "serve")


def _gang(scheduler: str, backend: str) -> Scenario:
    steps = (create(PodCliqueSet, serving_set(scheduler)), _DELETE)
    return Scenario(f"a set is deployed and deleted, with {scheduler}", steps, backends=(backend,))


def _scaling(scheduler: str, backend: str) -> Scenario:
    steps = (
        create(PodCliqueSet, serving_set(scheduler)),
        change(PodCliqueScalingGroup, "serve-0-decode", {"spec": {"replicas": 3}}),
        change(PodClique, "serve-0-router", {"spec": {"replicas": 4}}),
        change(PodCliqueSet, "serve", {"spec": {"replicas": 2}}),
        change(PodClique, "serve-0-router", {"spec": {"replicas": 1}}),
        change(PodCliqueScalingGroup, "serve-0-decode", {"spec": {"replicas": 1}}),
        change(PodCliqueSet, "serve", {"spec": {"replicas": 1}}),
        _DELETE,
    )
    return Scenario(f"set, scaling group and clique are scaled both ways, with {scheduler}", steps, backends=(backend,))


def _to(scheduler: str, image: str, replicas: int) -> Step:
    return change(PodCliqueSet, "serve", {"spec": serving_set(scheduler, image, replicas)["spec"]})


def _update(scheduler: str, backend: str) -> Scenario:
    steps = (
        create(PodCliqueSet, serving_set(scheduler)),
        _to(scheduler, "app:2", 1),
        in_a_row(1.5, _to(scheduler, "app:3", 1), _to(scheduler, "app:4", 2)),
        _DELETE,
    )
    return Scenario(f"rolling updates, one overtaken by the next, with {scheduler}", steps, backends=(backend,))


_ON_DELETE = {"spec": {"updateStrategy": {"type": "OnDelete"}}}
_CLAIM: Json = {
    "metadata": {"name": "gpu"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}
_VOLUME: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_SHARES = {"spec": {"resources": {"gpu": {"quota": 8}, "cpu": {"quota": -1}, "memory": {"quota": -1}}}}
_TWO_QUEUES = in_a_row(
    0.0, change(Queue, labels.DEFAULT_PARENT_QUEUE, _SHARES, ""), queue("qa", quota=4), queue("qb", quota=4)
)


def _claiming(name: str) -> Step:
    container = {"name": "main", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return pod(name, resourceClaims=claims, containers=[container])


def _storing(name: str) -> Step:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return pod(name, volumes=volumes)


_IN_BLUE = {labels.NODE_POOL: "blue"}


def _pool(value: str | None) -> Step:
    """Put a node into a pool, or take it out."""
    return change(Node, "node-00", {"metadata": {"labels": {labels.NODE_POOL: value}}}, "")


def _pooled(name: str) -> Step:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {labels.GPU_RESOURCE: "1"}}}
    return pod(name, own_labels={labels.QUEUE: "blue", **_IN_BLUE}, containers=[container])


_BLUE = {"metadata": {"name": "blue"}, "spec": {"partitionLabelValue": "blue"}}
_RACK = "topology.kubernetes.io/rack"
_RACKS: Json = {"metadata": {"name": "racks"}, "spec": {"levels": [{"nodeLabel": _RACK}]}}
_IN_ONE_RACK = {labels.TOPOLOGY: "racks", labels.TOPOLOGY_REQUIRED: _RACK, _MIN_MEMBER: "3"}
_NEVER_PREEMPTED = {labels.PREEMPTIBILITY: "non-preemptible"}

SCENARIOS: dict[str, Scenario] = {
    "gang-kai": _gang(_KAI, "kai"),
    "gang-default": _gang(_DEFAULT, "default"),
    "gang-koordinator": _gang("koord-scheduler", "koordinator"),
    "gang-volcano": _gang("volcano", "volcano"),
    "gang-yunikorn": _gang("yunikorn", "yunikorn"),
    "scaling-kai": _scaling(_KAI, "kai"),
    "scaling-default": _scaling(_DEFAULT, "default"),
    "update-kai": _update(_KAI, "kai"),
    "update-default": _update(_DEFAULT, "default"),
    "update-on-delete": Scenario(
        "a revision waits until pods are deleted",
        (
            create(PodCliqueSet, serving_set(_KAI)),
            change(PodCliqueSet, "serve", _ON_DELETE),
            change(PodCliqueSet, "serve", {"spec": {**serving_set(_KAI, "app:2")["spec"], **_ON_DELETE["spec"]}}),
            lose("serve-0-decode-0-", 2),
            _DELETE,
        ),
        news_race=True,
    ),
    "deleted-while-deployed": Scenario(
        "a set is deleted while its pods are placed",
        (in_a_row(0.15, create(PodCliqueSet, serving_set(_KAI)), _DELETE),),
    ),
    "backend-switched": Scenario(
        "a set is deleted and comes again for another scheduler, at once",
        (
            create(PodCliqueSet, serving_set(_KAI)),
            in_a_row(0.5, _DELETE, create(PodCliqueSet, {**serving_set("volcano"), "metadata": {"name": "again"}})),
            remove(PodCliqueSet, "again"),
        ),
        backends=("kai", "volcano"),
    ),
    "termination": Scenario(
        "a gang falls below its minimum for longer than its termination delay",
        (
            create(PodCliqueSet, serving_set(_KAI)),
            in_a_row(0.5, cordon(closed=True), lose("serve-0-decode-0-worker", 1)),
            cordon(closed=False),
            _DELETE,
        ),
        news_race=True,
    ),
    "stale-gang": Scenario(
        "a gang falls below its minimum for longer than its grace period, and is evicted",
        (
            job("gang", 3, 2, "default-queue", annotations={_MIN_MEMBER: "3", labels.STALENESS_GRACE_PERIOD: "10s"}),
            in_a_row(0.2, cordon(closed=True), lose("gang-", 1)),
            cordon(closed=False),
            remove(Job, "gang"),
        ),
        news_race=True,
    ),
    "reclaim": Scenario(
        "a queue takes back what another one borrowed",
        (
            _TWO_QUEUES,
            job("bb", 4, 2, queue="qb"),
            job("aa", 2, 2, queue="qa", annotations={_MIN_MEMBER: "2"}),
            in_a_row(0.0, remove(Job, "aa"), remove(Job, "bb")),
        ),
        nodes=_ONE_NODE,
    ),
    "preemption": Scenario(
        "a gang of higher priority takes the place of pods of its queue",
        (
            in_a_row(0.0, change(Queue, labels.DEFAULT_PARENT_QUEUE, _SHARES, ""), queue("qa", quota=8)),
            job("low", 2, 4, queue="qa"),
            job("high", 1, 8, queue="qa", labels={"priorityClassName": "inference"}),
            in_a_row(0.0, remove(Job, "high"), remove(Job, "low")),
        ),
        nodes=_ONE_NODE,
    ),
    "consolidation": Scenario(
        "pods move together to make room on one node",
        (
            *(job(f"small-{number}", 1, 1, "default-queue") for number in range(4)),
            in_a_row(0.5, remove(Job, "small-0"), remove(Job, "small-2"), job("large", 1, 2, "default-queue")),
            in_a_row(0.0, *(remove(Job, name) for name in ("small-1", "small-3", "large"))),
        ),
        nodes=_FEW_GPUS,
        news_race=True,
    ),
    # There is one way to share: three on one GPU, then two on another.
    "shared": Scenario(
        "pods share GPUs by fractions",
        (
            in_a_row(0.05, *(share(f"part-{number}", "0.3") for number in range(3))),
            share("part-3", "0.5"),
            remove(Pod, "part-0"),
            share("part-4", "0.5"),
            in_a_row(0.01, *(remove(Pod, f"part-{number}") for number in range(1, 5))),
        ),
    ),
    "claims": Scenario(
        "pods get GPUs by device claims (DRA)",
        (
            create(ResourceClaimTemplate, _CLAIM),
            in_a_row(0.05, _claiming("one"), _claiming("two")),
            remove(Pod, "one"),
            remove(Pod, "two"),
        ),
        nodes=Profile(count=2, gpus=2, racks=1, blocks=1, devices="dra"),
    ),
    "volumes": Scenario(
        "a pod waits for its volume, and the next one follows it to its node",
        (
            create(PersistentVolumeClaim, _VOLUME),
            _storing("first"),
            remove(Pod, "first"),
            _storing("second"),
            in_a_row(0.05, remove(Pod, "second"), remove(PersistentVolumeClaim, "data")),
        ),
    ),
    "shard": Scenario(
        "a node moves to a pool, whose scheduling shard is added and removed",
        (
            in_a_row(
                0.1,
                _pool("blue"),
                queue("blue-parent", 8, parent="", own_labels=_IN_BLUE),
                queue("blue", 8, parent="blue-parent", own_labels=_IN_BLUE),
                create(SchedulingShard, _BLUE, ""),
            ),
            _pooled("inside"),
            remove(Pod, "inside"),
            in_a_row(
                0.1, remove(SchedulingShard, "blue", ""), remove_queue("blue"), remove_queue("blue-parent"), _pool(None)
            ),
        ),
    ),
    "queue-moved": Scenario(
        "a queue with running pods moves below another parent, which is limited",
        (
            in_a_row(0.0, queue("dept", 4, parent="", limit=6), queue("team", 2)),
            job("work", 2, 2, queue="team"),
            change(Queue, "team", {"spec": {"parentQueue": "dept"}}, ""),
            job("more", 2, 2, queue="team"),
            remove(Job, "work"),
            remove(Job, "more"),
            in_a_row(0.0, remove_queue("team"), remove_queue("dept")),
        ),
    ),
    "quota": Scenario(
        "pods that must not be preempted stay within the quota of their queue, which grows",
        (
            in_a_row(0.0, change(Queue, labels.DEFAULT_PARENT_QUEUE, _SHARES, ""), queue("team", quota=4)),
            in_a_row(0.05, job("fixed", 2, 2, "team", labels=_NEVER_PREEMPTED), job("guest", 1, 2, "team")),
            job("more", 2, 2, "team", labels=_NEVER_PREEMPTED),
            change(Queue, "team", {"spec": {"resources": {"gpu": {"quota": 6}}}}, ""),
            in_a_row(0.0, *(remove(Job, name) for name in ("fixed", "more", "guest"))),
            remove_queue("team"),
        ),
    ),
    "topology": Scenario(
        "a gang must stay in one rack, also when one of its pods is lost",
        (
            create(Topology, _RACKS, ""),
            job("small", 1, 2, "default-queue"),
            job("gang", 3, 1, "default-queue", annotations=_IN_ONE_RACK),
            lose("gang-"),
            in_a_row(0.0, remove(Job, "gang"), remove(Job, "small"), remove(Topology, "racks", "")),
        ),
        nodes=Profile(count=4, gpus=2, racks=2, blocks=1),
    ),
    "scale-adjuster": Scenario(
        "a pod that shares a GPU waits for a node, and a scaling pod asks an autoscaler for one",
        (
            job("whole", 1, 1, "default-queue"),
            share("part", "0.5"),
            remove(Job, "whole"),
            remove(Pod, "part"),
        ),
        nodes=Profile(count=1, gpus=1, racks=1, blocks=1),
    ),
    "node-drained": Scenario(
        "a node with a gang is drained, and the gang moves",
        (
            create(PodCliqueSet, serving_set(_KAI)),
            drain("node-00"),
            drain("node-01"),
            cordon(closed=False),
            _DELETE,
        ),
        news_race=True,
    ),
    "services": Scenario(
        "Config and shard change while pods run",
        (
            in_a_row(0.1, queue("team", quota=4), job("work", 3, 1, queue="team")),
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
            in_a_row(0.1, remove(Job, "work"), remove_queue("team")),
        ),
    ),
}
