"""A live Grove cluster is taken over: gates removed, objects adopted, no pod restarted, new revisions still found."""

from __future__ import annotations

import asyncio
from collections import Counter
from copy import deepcopy

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.api.podgang import PodGang
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.component import component
from spinney.kube.client.client import Client
from spinney.kube.controllers.host import Host
from spinney.kube.manifests import webhook_resource
from tests import make
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample
from tests.grove.virtual import VirtualStage, played

HASH = "6f7d9c8b5"


def upstreams(pcs: Json, uid: str, namespace: str) -> tuple[Json, Json, list[Json]]:
    """A clique, a gang and two pods as upstream's operator leaves them for a set of one clique."""
    name = pcs["metadata"]["name"]
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": name, "uid": uid, "controller": True}
    managed = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": name}
    spec = deepcopy(pcs["spec"]["template"]["cliques"][0]["spec"])
    # Upstream's Go types write empty members out.
    spec["podSpec"]["containers"][0] |= {"resources": {}}
    clique_labels = {**managed, "grove.io/podcliqueset-replica-index": "0", "grove.io/podgang": f"{name}-0"}
    clique_labels |= {"grove.io/pod-template-hash": HASH, "app.kubernetes.io/component": "pcs-podclique"}
    clique = {
        "metadata": {
            "name": f"{name}-0-a",
            "labels": clique_labels,
            "ownerReferences": [owner],
            "finalizers": ["grove.io/podclique.grove.io"],
        },
        "spec": spec,
    }
    gang = {
        "metadata": {"name": f"{name}-0", "labels": {**managed, "grove.io/scheduler-name": "kai-scheduler"}},
        "spec": {"podgroups": [{"name": f"{name}-0-a", "minReplicas": 2, "podReferences": []}]},
    }
    gang["metadata"]["ownerReferences"] = [owner]
    pods = [pod_of(name, clique_labels, index, namespace) for index in range(2)]
    gang["spec"]["podgroups"][0]["podReferences"] = [
        {"namespace": namespace, "name": pod["metadata"]["name"]} for pod in pods
    ]
    return clique, gang, pods


def pod_of(pcs: str, clique_labels: dict[str, str], index: int, namespace: str) -> Json:
    """One of upstream's pods; the first still has its gate."""
    pod = make.pod(f"{pcs}-0-a-x{index}", namespace).scheduler("kai-scheduler")
    if index == 0:
        pod.gate("grove.io/podgang-pending-creation")
    built = pod.build()
    built["metadata"]["labels"] = {
        **clique_labels,
        "grove.io/podclique": f"{pcs}-0-a",
        "grove.io/podclique-pod-index": str(index),
    }
    built["metadata"]["annotations"] = {"pod-group-name": f"{pcs}-0"}
    return built


async def leave(client: Client, namespace: str, pcs: Json) -> set[str]:
    """Store a set with everything that upstream's operator has made of it, and return the UIDs of its pods."""
    name = pcs["metadata"]["name"]
    stored = await client.create(PodCliqueSet, pcs, namespace)
    status = {"currentGenerationHash": HASH, "availableReplicas": 1, "updatedReplicas": 1}
    await client.patch(PodCliqueSet, (namespace, name), {"status": status}, subresource="status")
    clique, gang, pods = upstreams(pcs, stored.uid, namespace)
    owner = await client.create(PodClique, clique, namespace)
    await client.create(PodGang, gang, namespace)
    made = set()
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [controller_reference(owner)]
        made.add((await client.create(Pod, pod, namespace)).uid)
    return made


def test_a_live_grove_cluster_is_taken_over(both: Play) -> None:
    """Upgrade: pods keep their identity, upstream's gate goes, a later change still rolls."""
    before: set[str] = set()

    async def upstream(client: Client, namespace: str) -> None:
        before.clear()
        pcs = make.pcs("old", namespace).clique("a", 2, schedulerName="kai-scheduler").build()
        before.update(await leave(client, namespace, with_defaults(pcs)))

    async def scenario(stage: Stage) -> None:
        await stage.runs(2)
        assert await stage.uids() == before
        assert not any(pod.spec.scheduling_gates for pod in await stage.pods())
        await stage.sees(lambda: stage.phase("old-0"), "Running")
        assert (await stage.pcs("old")).status.current_generation_hash == HASH
        assert (await stage.clique("old-0-a")).metadata.labels[labels.POD_TEMPLATE_HASH] == HASH
        assert (await stage.gang("old-0")).metadata.labels[labels.SCHEDULER_BACKEND] == "kai"
        await stage.change_image("old", "busybox:new")
        await stage.sees(stage.images, Counter({"busybox:new": 2}))
        assert not await stage.uids() & before

    both(scenario, nodes=4, before=upstream)


def test_sets_are_taken_over_and_given_back_one_by_one(both: Play) -> None:
    """A paused set stays as another operator left it; the others are served, and a set can be paused again."""
    before: dict[str, set[str]] = {}

    async def upstream(client: Client, namespace: str) -> None:
        for name in ("first", "second"):
            pcs = make.pcs(name, namespace).clique("a", 2, schedulerName="kai-scheduler").build()
            pcs["metadata"]["annotations"] = {labels.PAUSED: "true"}
            before[name] = await leave(client, namespace, with_defaults(pcs))

    async def scenario(stage: Stage) -> None:
        untouched = (await stage.clique("second-0-a")).metadata.resource_version
        await stage.settle(10)
        assert len([pod for pod in await stage.pods() if pod.spec.scheduling_gates]) == 2
        await pause(stage, "first", None)
        await stage.sees(lambda: stage.ready("first"), "1/1")
        assert await stage.uids("first-0-a") == before["first"]
        assert (await stage.clique("second-0-a")).metadata.resource_version == untouched
        await pause(stage, "first", "true")
        await stage.delete(Pod, "first-0-a-x1")
        await stage.settle(10)
        assert len(await stage.pods("first-0-a")) == 1
        for name in before:
            await pause(stage, name, None)
        await stage.runs(4)
        assert await stage.uids("second-0-a") == before["second"]

    both(scenario, nodes=4, before=upstream)


async def pause(stage: Stage, pcs: str, value: str | None) -> None:
    """Annotate a set as a user does, or take the annotation away."""
    patch = {"metadata": {"annotations": {labels.PAUSED: value}}}
    await stage.client.patch(PodCliqueSet, (stage.namespace, pcs), patch)


def test_a_paused_set_can_be_deleted(both: Play) -> None:
    """Its finalizer blocks nobody."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(make.pcs("set").clique("a", 2, schedulerName="kai-scheduler").build())
        await stage.runs(2)
        await pause(stage, "set", "true")
        await stage.delete(PodCliqueSet, "set")
        await stage.sees(stage.uids, set())
        await stage.sees(lambda: stage.list(PodCliqueSet), [])

    both(scenario, nodes=4)


@played(nodes=10)
async def test_an_operator_that_restarts_changes_nothing(stage: VirtualStage) -> None:
    """A second operator on the same cluster, as after an upgrade, finds all as it should be and writes nothing."""
    await stage.apply(*sample("e2e-yaml/workload2"))
    await stage.runs(10)
    await stage.settle(30)
    pods = {pod.uid for pod in await stage.pods()}
    client = stage.cluster.client()
    second = Host(client, stage.cluster.clock, [(component(), None)])
    task = asyncio.create_task(second.run())
    await second.ready.wait()
    await stage.settle(120)
    # An event about the chosen backend is told by every new process.
    assert second.runtimes["grove"].client.writes.total(without=("Lease", "Event")) == 0
    assert {pod.uid for pod in await stage.pods()} == pods
    task.cancel()


@played(nodes=10)
async def test_pods_that_wait_for_a_scheduler_that_is_not_theirs_any_more_are_made_anew(stage: VirtualStage) -> None:
    """When a set's backend changes, pods on nodes stay, and those without are made for the new one."""
    await stage.cordon(7)
    await stage.apply(*sample("e2e-yaml/workload2"))
    await stage.runs(3)
    placed = {pod.uid for pod in await stage.pods() if pod.spec.node_name}
    # The webhook would refuse this; a new default profile does the same to sets that name no scheduler.
    validating = webhook_resource("ValidatingWebhookConfiguration")
    await stage.client.delete(validating, "spinney-grove")
    annotation = {"grove.io/scheduler-backend": "default"}
    await stage.client.patch(PodCliqueSet, ("default", "workload2"), {"metadata": {"annotations": annotation}})
    await stage.settle(30)
    pods = await stage.pods()
    assert len(pods) == 10
    schedulers = Counter((pod.spec.scheduler_name, bool(pod.spec.node_name)) for pod in pods)
    assert schedulers == {("kai-scheduler", True): 3, ("default-scheduler", False): 7}
    assert placed < {pod.uid for pod in pods}
    assert {gang.metadata.labels[labels.SCHEDULER_BACKEND] for gang in await stage.list(PodGang)} == {"default"}
    await stage.cordon(0)
    await stage.runs(10)
