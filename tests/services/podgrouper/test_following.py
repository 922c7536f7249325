"""Groups follow what they are made from: the workload, and whatever else its rule looks at."""

from __future__ import annotations

import asyncio
import json

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.core import Event, Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.services.podgrouper.component import COMPONENT as GROUPER
from tests import make
from tests.services.stage import CRD, Stage, stage
from tests.virtual_time import virtual


async def made(world: Stage, name: str, owner: Json, **marks: str) -> None:
    """A pod of a workload."""
    built = make.pod(name).scheduler(labels.KAI_SCHEDULER)
    for key, value in marks.items():
        built.label(key.replace("__", "/").replace("_", "."), value)
    document = built.build()
    document["metadata"]["ownerReferences"] = [owner]
    await world.client.create(Pod, document, "default")
    await asyncio.sleep(2)


async def group(world: Stage) -> PodGroup:
    """The only group."""
    groups = (await world.client.list(PodGroup, "default")).items
    assert len(groups) == 1
    return groups[0]


def reference(document: Json) -> Json:
    """An object as its pods name it."""
    metadata = document["metadata"]
    return {**{key: document[key] for key in ("apiVersion", "kind")}, "name": metadata["name"], "uid": metadata["uid"]}


async def create(world: Stage, path: str, body: Json) -> Json:
    """Any object, as plain data."""
    response = await world.client.call("POST", path, body=body)
    created: Json = json.loads(response.body)
    return created


@virtual
async def test_a_group_follows_its_workload() -> None:
    """A changed minimum and a new label reach the group; the queue, which somebody may have changed there, stays."""
    async with stage((GROUPER, None)) as world:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
        body = {"metadata": {"name": "w", "labels": {labels.QUEUE: "q"}}, "spec": {"template": template}}
        job = await world.client.create(Job, body, "default")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": job.uid}
        await made(world, "w-0", owner)
        assert ((await group(world)).spec.min_member, (await group(world)).spec.queue) == (1, "q")
        marks = {"annotations": {labels.BATCH_MIN_MEMBER: "2"}, "labels": {labels.QUEUE: "other", "team": "a"}}
        await world.client.patch(Job, ("default", "w"), {"metadata": marks})
        await asyncio.sleep(2)
        followed = await group(world)
        assert (followed.spec.min_member, followed.spec.queue, followed.metadata.labels["team"]) == (2, "q", "a")


@virtual
async def test_settings_that_cannot_be_used_were_ignored_without_a_word() -> None:
    """As upstream the group is made without them; one event for each says which, and why."""
    async with stage((GROUPER, None)) as world:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
        marks = {labels.PREEMPTION_DELAY: "2 minutes", labels.STALENESS_GRACE_PERIOD: "-1s"}
        wrong = {labels.PREEMPTIBILITY: "maybe", labels.PRIORITY_CLASS: "gold"}
        body = {"metadata": {"name": "w", "labels": wrong, "annotations": marks}, "spec": {"template": template}}
        job = await world.client.create(Job, body, "default")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": job.uid}
        await made(world, "w-0", owner)
        await made(world, "w-1", owner)
        assert (await group(world)).spec.staleness_grace_period == "-1s"
        told = [event.message for event in (await world.client.list(Event, "default")).items]
        assert sorted(message.split(" is ")[0] for message in told) == [
            f"annotation {labels.PREEMPTION_DELAY}",
            f"label {labels.PREEMPTIBILITY}",
            f"label {labels.PRIORITY_CLASS}",
        ]


@virtual
async def test_a_pod_that_cannot_be_grouped_was_told_so_at_every_attempt() -> None:
    """One event for one reason, however long it lasts; a corrected workload is grouped."""
    async with stage((GROUPER, None)) as world:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
        wrong = {"name": "w", "annotations": {labels.BATCH_MIN_MEMBER: "many"}}
        job = await world.client.create(Job, {"metadata": wrong, "spec": {"template": template}}, "default")
        await made(world, "w-0", {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": job.uid})
        await asyncio.sleep(600)
        events = [event for event in (await world.client.list(Event)).items if event.reason == "PodGrouperWarning"]
        assert [event.count for event in events] == [1]
        assert "batch-min-member is 'many'" in events[0].message
        await world.client.patch(Job, ("default", "w"), {"metadata": {"annotations": {labels.BATCH_MIN_MEMBER: "1"}}})
        await asyncio.sleep(70)
        assert (await group(world)).spec.min_member == 1


async def serve(world: Stage, group_name: str, version: str, kind: str) -> None:
    """A kind that may hold anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    spec = {"group": group_name, "scope": "Namespaced", "names": names, "versions": versions}
    await world.client.create(CRD, {"metadata": {"name": f"{plural}.{group_name}"}, "spec": spec})
    await asyncio.sleep(1)


@virtual
async def test_a_group_follows_the_cluster_of_a_ray_job() -> None:
    """The cluster is not an owner of the group, but its worker groups are what it is made from."""
    async with stage((GROUPER, None)) as world:
        for kind in ("RayJob", "RayCluster"):
            await serve(world, "ray.io", "v1", kind)
        base = "/apis/ray.io/v1/namespaces/default"
        kinds = {"apiVersion": "ray.io/v1"}
        status = {"rayClusterName": "c"}
        job = await create(
            world, f"{base}/rayjobs", {**kinds, "kind": "RayJob", "metadata": {"name": "j"}, "status": status}
        )
        workers = {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "w", "replicas": 2}]}
        cluster = {**kinds, "kind": "RayCluster", "metadata": {"name": "c"}, "spec": workers}
        await create(world, f"{base}/rayclusters", cluster)
        await made(world, "head", reference(job), ray_io__group="headgroup")
        assert (await group(world)).spec.min_member == 3
        patch = {"spec": {"workerGroupSpecs": [{"groupName": "w", "replicas": 4}]}}
        merge = "application/merge-patch+json"
        await world.client.call("PATCH", f"{base}/rayclusters/c", body=patch, content_type=merge)
        await asyncio.sleep(2)
        assert (await group(world)).spec.min_member == 5


@virtual
async def test_a_pod_joins_its_role_once_the_gang_names_it() -> None:
    """A PodGang that lists a pod later gives it its subgroup then."""
    async with stage((GROUPER, None)) as world:
        path = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
        head = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "set"}}
        template = {"cliques": [{"name": "work", "spec": {"replicas": 1, "podSpec": {"containers": []}}}]}
        owner = await create(world, path, {**head, "spec": {"replicas": 1, "template": template}})
        role: Json = {"name": "set-0-work", "minReplicas": 1, "podReferences": []}
        await world.client.create(PodGang, {"metadata": {"name": "set-0"}, "spec": {"podgroups": [role]}}, "default")
        await made(world, "p", reference(owner), grove_io__podgang="set-0")
        pod = await world.client.get(Pod, ("default", "p"))
        assert labels.SUBGROUP not in pod.metadata.labels
        role["podReferences"] = [{"namespace": "default", "name": "p"}]
        await world.client.patch(PodGang, ("default", "set-0"), {"spec": {"podgroups": [role]}})
        await asyncio.sleep(2)
        pod = await world.client.get(Pod, ("default", "p"))
        assert pod.metadata.labels[labels.SUBGROUP] == "set-0-work"


@virtual
async def test_a_group_that_somebody_deletes_comes_back() -> None:
    """As long as its workload and its pods are there; no pod has to change for it."""
    async with stage((GROUPER, None)) as world:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
        body = {"metadata": {"name": "w"}, "spec": {"template": template}}
        job = await world.client.create(Job, body, "default")
        await made(world, "w-0", {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": job.uid})
        before = await group(world)
        await world.client.delete(PodGroup, ("default", before.name))
        await asyncio.sleep(10)
        after = await group(world)
        assert (after.name, after.uid != before.uid) == (before.name, True)
