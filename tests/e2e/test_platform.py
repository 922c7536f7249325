"""Config and SchedulingShards at run time: what a user edits reaches the services, and nothing else is disturbed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from spinney.api import labels
from spinney.api.conditions import find
from spinney.api.core import ConfigMap, Namespace, Node, Pod
from spinney.api.kai import Config, PodGroup, Queue, SchedulingShard
from spinney.embedded.nodes.profile import Profile
from spinney.kube.errors import ApiError
from tests import make
from tests.e2e.installation import Installed, end_to_end

TWO = Profile(count=2, gpus=8, racks=1, blocks=1)


async def into_pool(held: Installed, node: str, pool: str) -> None:
    """Put a node, a queue of its own and nothing else into a pool."""
    await held.client.patch(Node, node, {"metadata": {"labels": {labels.NODE_POOL: pool}}})
    await held.queue(f"{pool}-queue")
    await held.client.patch(Queue, f"{pool}-queue", {"metadata": {"labels": {labels.NODE_POOL: pool}}})


async def pool_pod(held: Installed, name: str, pool: str = "") -> None:
    """A one-GPU pod for a pool."""
    pod = (
        make.pod(name)
        .scheduler("kai-scheduler")
        .gpus(1)
        .label(labels.QUEUE, f"{pool}-queue" if pool else "default-queue")
    )
    if pool:
        pod.label(labels.NODE_POOL, pool)
    await held.apply(pod.build())


@end_to_end(TWO)
async def test_two_shards_never_touch_each_others_nodes(held: Installed) -> None:
    """A shard that is added serves its pool at once, and each pool's pods stay in it, also when it is full."""
    await into_pool(held, "node-01", "blue")
    await pool_pod(held, "blue-early", "blue")
    await asyncio.sleep(10)
    assert await held.running("blue") == [], "no scheduler serves the pool yet"
    await held.client.create(SchedulingShard, {"metadata": {"name": "blue"}, "spec": {"partitionLabelValue": "blue"}})
    await held.runs("blue", 1)
    for index in range(10):
        await pool_pod(held, f"blue-{index}", "blue")
        await pool_pod(held, f"plain-{index}")
    assert {pod.spec.node_name for pod in await held.runs("blue", 8)} == {"node-01"}
    assert {pod.spec.node_name for pod in await held.runs("plain", 8)} == {"node-00"}


@end_to_end(TWO)
async def test_a_removed_shard_leaves_its_pods_running(held: Installed) -> None:
    """Without its shard a pool gets nothing new; what runs goes on, and the other shard is not disturbed."""
    await into_pool(held, "node-01", "blue")
    await held.client.create(SchedulingShard, {"metadata": {"name": "blue"}, "spec": {"partitionLabelValue": "blue"}})
    await pool_pod(held, "blue-a", "blue")
    await held.runs("blue", 1)
    await held.client.delete(SchedulingShard, "blue")
    await asyncio.sleep(5)
    await pool_pod(held, "blue-b", "blue")
    await pool_pod(held, "plain")
    await held.runs("plain", 1)
    assert [pod.name for pod in await held.running("blue")] == ["blue-a"]


@end_to_end(TWO)
async def test_without_config_nothing_happens(held: Installed) -> None:
    """What runs goes on; new pods wait, and are served when Config is back."""
    config = await held.client.get(Config, "kai-config")
    await pool_pod(held, "before")
    await held.runs("before", 1)
    await held.client.delete(Config, "kai-config")
    await asyncio.sleep(10)
    await pool_pod(held, "meanwhile")
    await asyncio.sleep(30)
    assert [pod.name for pod in await held.running()] == ["before"]
    shard = await held.client.get(SchedulingShard, "default")
    ready = find(shard.status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, "Config kai-config does not exist" in ready.message) == ("False", True)
    await held.client.create(Config, {"metadata": {"name": "kai-config"}, "spec": msgspec.to_builtins(config.spec)})
    await held.runs("meanwhile", 1)


@end_to_end(TWO)
async def test_a_pool_has_one_scheduler(held: Installed) -> None:
    """A second shard of a pool waits, and serves it from the moment the first one goes."""
    await into_pool(held, "node-01", "blue")
    spec = {"partitionLabelValue": "blue"}
    for name in ("first", "second"):
        await held.client.create(SchedulingShard, {"metadata": {"name": name}, "spec": spec})
        await asyncio.sleep(2)
    second = await held.client.get(SchedulingShard, "second")
    ready = find(second.status.conditions, "Ready")
    assert ready is not None
    assert "SchedulingShard first serves node pool 'blue' already" in ready.message
    await pool_pod(held, "blue-a", "blue")
    await held.runs("blue", 1)
    await held.client.delete(SchedulingShard, "first")
    await pool_pod(held, "blue-b", "blue")
    await held.runs("blue", 2)


@end_to_end(TWO)
async def test_gpu_sharing_is_switched_by_config(held: Installed) -> None:
    """With GPU sharing switched off, fractions are refused, with the setting that would allow them."""
    half = make.pod("half").scheduler("kai-scheduler").annotate(labels.GPU_FRACTION, "0.5")
    await held.client.patch(Config, "kai-config", {"spec": {"admission": {"gpuSharing": False}}})
    await asyncio.sleep(3)
    with pytest.raises(ApiError, match=r"GPU sharing is disabled.*admission.gpuSharing"):
        await held.apply(half.build())
    await held.client.patch(Config, "kai-config", {"spec": {"admission": {"gpuSharing": True}}})
    await asyncio.sleep(3)
    await held.apply(half.build())
    await held.runs("half", 1)


@end_to_end(TWO)
async def test_names_are_switched_by_config(held: Installed) -> None:
    """Another scheduler name and another queue label reach every service that reads them."""
    names = {"schedulerName": "mine", "queueLabelKey": "team/queue"}
    await held.client.patch(Config, "kai-config", {"spec": {"global": names}})
    await asyncio.sleep(5)
    await held.queue("team-a", "default-parent-queue")
    await held.apply(make.pod("ours").scheduler("mine").gpus(1).label("team/queue", "team-a").build())
    await held.apply(make.pod("theirs").scheduler("kai-scheduler").gpus(1).build())
    await held.runs("ours", 1)
    assert (await held.group("pg-ours")).spec.queue == "team-a"
    await asyncio.sleep(10)
    assert await held.running("theirs") == []


@end_to_end(TWO)
async def test_the_namespace_is_switched_by_config(held: Installed) -> None:
    """Accounts, rights and webhooks move along; what ran goes on, new pods are grouped, checked and placed."""
    await held.job("before", pods=1, queue="default-queue")
    await held.runs("before", 1)
    await held.client.patch(Config, "kai-config", {"spec": {"namespace": "elsewhere"}})
    await asyncio.sleep(10)
    half = make.pod("half").scheduler("kai-scheduler").annotate(labels.GPU_FRACTION, "0.5")
    await held.apply(half.label(labels.QUEUE, "default-queue").build())
    await held.runs("half", 1)
    with pytest.raises(ApiError, match="must be a number above 0 and below 1"):
        await held.apply(make.pod("odd").scheduler("kai-scheduler").annotate(labels.GPU_FRACTION, "2").build())
    await held.runs("before", 1)


@end_to_end(TWO)
async def test_placement_is_switched_by_the_shard(held: Installed) -> None:
    """Pods that were packed on one node are spread over both once the shard says so."""
    await held.job("packed", pods=2, gpus=1, queue="default-queue")
    assert len({pod.spec.node_name for pod in await held.runs("packed", 2)}) == 1
    await held.drop_job("packed")
    strategy = {"placementStrategy": {"gpu": "spread", "cpu": "spread"}}
    await held.client.patch(SchedulingShard, "default", {"spec": strategy})
    await asyncio.sleep(5)
    await held.job("spread", pods=2, gpus=1, queue="default-queue")
    assert len({pod.spec.node_name for pod in await held.runs("spread", 2)}) == 2


@end_to_end(TWO)
async def test_a_shard_with_a_mistake_schedules_on(held: Installed) -> None:
    """A mistake is told in the shard's conditions while its scheduler goes on as before."""
    await held.client.patch(SchedulingShard, "default", {"spec": {"actions": {"dance": {"enabled": True}}}})
    await asyncio.sleep(3)
    shard = await held.client.get(SchedulingShard, "default")
    ready = find(shard.status.conditions, "Ready")
    assert ready is not None
    assert ready.status == "False"
    assert "action dance is unknown; known are allocate" in ready.message
    await held.job("still", pods=1, queue="default-queue")
    await held.runs("still", 1)


@end_to_end(TWO)
async def test_a_queue_in_use_is_not_deleted(held: Installed) -> None:
    """The queue webhook refuses to delete a queue with workloads or with queues below it."""
    await held.job("busy", pods=1, queue="default-queue")
    await held.runs("busy", 1)
    await asyncio.sleep(5)
    with pytest.raises(ApiError, match="1 workloads run in it"):
        await held.client.delete(Queue, "default-queue")
    with pytest.raises(ApiError, match="it has child queues default-queue"):
        await held.client.delete(Queue, "default-parent-queue")


@end_to_end(TWO)
async def test_no_service_can_do_what_it_need_not(held: Installed) -> None:
    """The rights are those declared: no secrets, no foreign writes."""
    review = {"resourceAttributes": {"verb": "list", "resource": "secrets"}}
    for name in ("pod-grouper", "binder", "queue-controller", "podgroup-controller", "admission", "scheduler"):
        spec = {"user": f"system:serviceaccount:kai-scheduler:{name}", **review}
        answer = await held.client.call(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            body={"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
        )
        assert b'"allowed":true' not in answer.body, name
    assert (await held.client.list(Pod, "kai-scheduler")).items == []


@end_to_end(TWO)
async def test_pods_of_a_full_queue_stay_gated(held: Installed) -> None:
    """With gating on, only as many pods as the queue's limit allows are let through; the next when one ends."""
    marks = {"metadata": {"annotations": {labels.GATE_BLOCKED_PODS: "true"}}}
    await held.client.patch(Config, "kai-config", marks)
    await held.queue("small", "default-parent-queue", limit=2)
    await asyncio.sleep(5)
    await held.job("limited", pods=4, queue="small")
    await held.job("free", pods=2, queue="default-queue")
    await held.runs("limited", 2)
    await held.runs("free", 2)
    gated = [pod for pod in await held.pods("limited") if pod.spec.scheduling_gates]
    assert len(gated) == 2
    await held.client.delete(Pod, ("default", (await held.running("limited"))[0].name))
    await asyncio.sleep(10)
    await held.runs("limited", 2)


@end_to_end(TWO)
async def test_who_may_use_a_queue_is_asked(held: Installed) -> None:
    """With the review on, a sender of a pod or of a group needs the verb `use` on the Queue."""
    await held.client.patch(Config, "kai-config", {"metadata": {"annotations": {labels.REVIEW_QUEUE_ACCESS: "true"}}})
    await asyncio.sleep(5)
    group, version = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
    subject = {"kind": "User", "name": "eve", "apiGroup": group}
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
        {"apiGroups": ["scheduling.run.ai"], "resources": ["podgroups"], "verbs": ["create"]},
    ]
    role = {"apiGroup": group, "kind": "Role", "name": "eve"}
    place = {"name": "eve", "namespace": "default"}
    await held.apply({"apiVersion": version, "kind": "Role", "metadata": place, "rules": rules})
    await held.apply(
        {"apiVersion": version, "kind": "RoleBinding", "metadata": place, "roleRef": role, "subjects": [subject]}
    )
    eve = held.as_user("eve")
    pod = make.pod("hers").scheduler("kai-scheduler").gpus(1).label(labels.QUEUE, "default-queue")
    hers = {"metadata": {"name": "hers"}, "spec": {"minMember": 1, "queue": "default-queue"}}
    for kind, body in ((Pod, pod.build()), (PodGroup, hers)):
        with pytest.raises(ApiError, match="user 'eve' may not use queue 'default-queue'"):
            await eve.create(kind, body, "default")
    await held.apply(pod.build())
    await held.runs("hers", 1)


@end_to_end(TWO)
async def test_kinds_have_defaults_and_namespaces_can_be_left_out(held: Installed) -> None:
    """A ConfigMap gives a kind its priority; pods of namespaces without the label are not grouped."""
    types = '[{"typeName": "Job", "group": "batch", "priorityName": "build", "preemptibility": "preemptible"}]'
    await held.client.create(ConfigMap, {"metadata": {"name": "kinds"}, "data": {"types": types}}, "kai-scheduler")
    args = {"defaultPrioritiesConfigMapName": "kinds", "defaultPrioritiesConfigMapNamespace": "kai-scheduler"}
    spec = {"podGrouper": {"args": args}, "global": {"namespaceLabelSelector": {"kai": "yes"}}}
    await held.client.patch(Config, "kai-config", {"spec": spec})
    await asyncio.sleep(5)
    await held.job("late", pods=1, queue="default-queue")
    await asyncio.sleep(10)
    assert (await held.client.list(PodGroup, "default")).items == []
    await held.client.patch(Namespace, "default", {"metadata": {"labels": {"kai": "yes"}}})
    await held.runs("late", 1)
    group = await held.group("pg-late")
    assert (group.spec.priority_class_name, group.spec.preemptibility) == ("build", "preemptible")
