"""Workload controllers on the embedded cluster, in virtual time."""

from __future__ import annotations

from typing import Any

import msgspec

from spinney.answers.reading import read_cluster
from spinney.answers.workloads import workloads
from spinney.api.apps import Deployment, ReplicaSet
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


def conditions(document: Json) -> set[str]:
    """The conditions that are True."""
    return {c["type"] for c in document["status"].get("conditions", []) if c["status"] == "True"}


@on_cluster()
async def test_a_job_runs_its_pods_and_completes(cluster: Cluster) -> None:
    """Three completions, two at a time, each 10 s: done after 20 s, and each pod let go."""
    FirstNode(cluster)
    await create(
        cluster,
        Job.resource,
        "train",
        completions=3,
        parallelism=2,
        template=template("sleep", "10", policy="Never"),
    )
    await after(1)
    assert (await get(cluster, Job.resource, "train"))["status"]["active"] == 2
    await after(10)
    assert (await get(cluster, Job.resource, "train"))["status"]["succeeded"] == 2
    await after(10)
    job = await get(cluster, Job.resource, "train")
    assert job["status"]["succeeded"] == 3
    assert conditions(job) == {"SuccessCriteriaMet", "Complete"}
    assert not any(pod.metadata.finalizers for pod in await pods(cluster))


@on_cluster()
async def test_a_job_that_keeps_failing_fails(cluster: Cluster) -> None:
    """Two tries with a back-off between them, then the limit."""
    FirstNode(cluster)
    await create(cluster, Job.resource, "train", backoffLimit=1, template=template(policy="Never", exit_code="1"))
    await after(5)
    assert (await get(cluster, Job.resource, "train"))["status"]["failed"] == 1
    await after(10)
    job = await get(cluster, Job.resource, "train")
    assert (job["status"]["failed"], conditions(job)) == (2, {"FailureTarget", "Failed"})


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
async def test_a_deployment_rolls_to_a_new_template(cluster: Cluster) -> None:
    """Never fewer available than allowed; in the end one ReplicaSet holds all pods and the old one is kept empty."""
    FirstNode(cluster)
    selector = {"matchLabels": {"app": "web"}}
    await create(cluster, Deployment.resource, "web", replicas=4, selector=selector, template=template())
    await after(5)
    deployment = await get(cluster, Deployment.resource, "web")
    assert deployment["status"]["availableReplicas"] == 4
    assert conditions(deployment) == {"Available", "Progressing"}

    containers = [{"name": "main", "image": "busybox:2"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await cluster.client().patch(Deployment, ("default", "web"), patch)
    await after(5)
    deployment = await get(cluster, Deployment.resource, "web")
    assert (deployment["status"]["updatedReplicas"], deployment["status"]["availableReplicas"]) == (4, 4)
    sets = (await cluster.client().list(ReplicaSet, "default")).items
    assert sorted(each.spec.replicas for each in sets) == [0, 4]
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


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
async def test_a_lost_pod_is_replaced(cluster: Cluster) -> None:
    """The ReplicaSet makes a new one."""
    FirstNode(cluster)
    selector = {"matchLabels": {"app": "web"}}
    await create(cluster, ReplicaSet.resource, "web", replicas=2, selector=selector, template=template())
    await after(1)
    first = {pod.name for pod in await pods(cluster)}
    await cluster.client().delete(Pod, ("default", sorted(first)[0]))
    await after(5)
    second = {pod.name for pod in await pods(cluster)}
    assert (len(second), len(first & second)) == (2, 1)


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
