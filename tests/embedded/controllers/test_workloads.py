"""Workload controllers on the embedded cluster, in virtual time."""

from __future__ import annotations

from typing import Any

import msgspec

from spinney.answers.reading import read_cluster
from spinney.answers.workloads import workloads
from spinney.api.apps import Deployment
from spinney.api.batch import CronJob, Job
from spinney.api.core import Event, Namespace, Pod
from spinney.api.meta import Json, Resource
from spinney.embedded.cluster import Cluster
from tests.embedded.virtual import FirstNode, after, get, on_cluster


def template(*command: str, policy: str = "Always", **annotations: str) -> Json:
    """A pod template of one container."""
    container = {"name": "main", "image": "busybox", **({"command": list(command)} if command else {})}
    scripted = {f"spinney.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": scripted},
        "spec": {"restartPolicy": policy, "containers": [container]},
    }


async def create(cluster: Cluster, resource: Resource, name: str, **spec: Any) -> None:
    """Create a workload."""
    await cluster.client().create(resource, {"metadata": {"name": name}, "spec": spec}, "default")


async def pods(cluster: Cluster) -> list[Pod]:
    """All pods."""
    return (await cluster.client().list(Pod, "default")).items


@on_cluster()
async def test_a_deleted_job_leaves_nothing(cluster: Cluster) -> None:
    """Its pods go too, finalizers or not."""
    FirstNode(cluster)
    await create(cluster, Job.resource, "train", parallelism=2, completions=2, template=template(policy="Never"))
    await after(1)
    assert len(await pods(cluster)) == 2
    await cluster.client().delete(Job, ("default", "train"), propagation="Background")
    await after(60)
    assert await pods(cluster) == []


@on_cluster()
async def test_a_settled_deployment_writes_nothing(cluster: Cluster) -> None:
    """At rest, hours pass without a write."""
    FirstNode(cluster)
    selector = {"matchLabels": {"app": "web"}}
    await create(cluster, Deployment.resource, "web", replicas=2, selector=selector, template=template())
    await after(60)
    before = (await cluster.client().list(Pod)).resource_version
    await after(4 * 3600)
    assert (await cluster.client().list(Pod)).resource_version == before


@on_cluster()
async def test_a_cronjob_makes_a_job_at_every_due_time(cluster: Cluster) -> None:
    """Every five minutes for an hour; the last three successes are kept."""
    FirstNode(cluster)
    spec = {"template": template("sleep", "10", policy="Never")}
    await create(cluster, CronJob.resource, "tick", schedule="*/5 * * * *", jobTemplate={"spec": spec})
    await after(299)
    assert (await cluster.client().list(Job, "default")).items == []
    await after(3600)
    jobs = (await cluster.client().list(Job, "default")).items
    assert len(jobs) == 3
    cron_job = await get(cluster, CronJob.resource, "tick")
    assert cron_job["status"]["lastScheduleTime"] == "2026-01-01T01:00:00Z"


@on_cluster()
async def test_a_job_whose_pods_are_refused_has_an_event_as_kubernetes_writes_it(cluster: Cluster) -> None:
    """The Job shows nothing of a refusal by itself: without the event nobody learns of it."""
    refused = template(policy="Never")
    refused["spec"]["priorityClassName"] = "gold"
    await create(cluster, Job.resource, "train", template=refused)
    await after(5)
    events = (await cluster.client().list(Event, "default")).items
    warning = next(event for event in events if event.reason == "FailedCreate")
    assert (warning.type, warning.involved_object.kind, warning.involved_object.name) == ("Warning", "Job", "train")
    assert warning.message.startswith("Error creating: pods")
    assert warning.message.endswith("no PriorityClass with name gold was found")
    (job,) = workloads(await read_cluster(cluster.client(), cluster.clock), "default").items
    assert job.why is not None
    assert job.why.advice == ["Create PriorityClass gold, or name one that exists."]


@on_cluster()
async def test_pods_of_another_namespace_counted_as_those_of_a_job(cluster: Cluster) -> None:
    """Whoever may create pods may name any UID as that of their controller."""
    client = cluster.client()
    await client.create(Namespace, {"metadata": {"name": "other"}})
    await create(cluster, Job.resource, "train", template=template("sleep", "9", policy="Never"))
    await after(1)
    (own,) = await pods(cluster)
    owner = {**msgspec.to_builtins(own.metadata.owner_references[0])}
    tracked = {"name": "strange", "finalizers": ["batch.kubernetes.io/job-tracking"], "ownerReferences": [owner]}
    await client.create(Pod, {"metadata": tracked, "spec": template("sleep", "9", policy="Never")["spec"]}, "other")
    await client.patch(Pod, ("other", "strange"), {"status": {"phase": "Succeeded"}}, subresource="status")
    await client.patch(Job, ("default", "train"), {"metadata": {"labels": {"look": "again"}}})
    await after(1)
    assert not (await get(cluster, Job.resource, "train"))["status"].get("succeeded")
