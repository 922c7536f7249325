"""Stand-in operators create the pods that the real ones would, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api import labels
from spinney.api.core import Event, Pod
from spinney.api.meta import Json, Resource
from spinney.api.workloads import is_suspended, suspension
from spinney.app.operators import start_operators
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.operators.registry import OPERATORS
from spinney.kube.errors import NotFound
from tests.embedded.virtual import FirstNode, after, get, on_cluster

MOST = 2**31 - 1
KINDS = {operator.resource.kind: operator.resource for operator in OPERATORS}


def template(policy: str = "", **script: str) -> Json:
    """A pod template whose simulated containers follow a script."""
    annotations = {f"spinney.dev/{key.replace('_', '-')}": value for key, value in script.items()}
    spec: Json = {"containers": [{"name": "main", "image": "busybox"}]}
    return {"metadata": {"annotations": annotations}, "spec": {**spec, **({"restartPolicy": policy} if policy else {})}}


async def create(cluster: Cluster, kind: str, spec: Json, **metadata: Any) -> None:
    """Create a workload named `w`, with stand-ins and a scheduler that puts every pod on one node."""
    await start_operators(cluster)
    FirstNode(cluster)
    await cluster.client().create(KINDS[kind], {"metadata": {"name": "w", **metadata}, "spec": spec}, "default")
    await after(2)


async def pods(cluster: Cluster) -> dict[str, Pod]:
    """Pods by name."""
    return {pod.name: pod for pod in (await cluster.client().list(Pod, "default")).items}


async def status(cluster: Cluster, kind: str) -> Json:
    """The status of the workload."""
    read: Json = (await get(cluster, KINDS[kind], "w"))["status"]
    return read


def states(of: Json) -> list[str]:
    """The conditions that are True, in order."""
    return [each["type"] for each in of["conditions"] if each["status"] == "True"]


TRAINING = [
    ("PyTorchJob", "pytorchReplicaSpecs", "Master"),
    ("TFJob", "tfReplicaSpecs", "Chief"),
    ("XGBoostJob", "xgbReplicaSpecs", "Master"),
]


@pytest.mark.parametrize(("kind", "field", "chief"), TRAINING)
@on_cluster()
async def test_a_training_job_ends_with_its_chief(cluster: Cluster, kind: str, field: str, chief: str) -> None:
    """Pods by role and index, with the labels that the grouper reads; Succeeded once the chief has."""
    roles = {
        chief: {"replicas": 1, "template": template(run_for="60s")},
        "Worker": {"replicas": 2, "template": template()},
    }
    await create(cluster, kind, {field: roles, "runPolicy": {"cleanPodPolicy": "Running"}})
    by_name = await pods(cluster)
    assert sorted(by_name) == sorted([f"w-{chief.lower()}-0", "w-worker-0", "w-worker-1"])
    own = by_name["w-worker-1"].metadata.labels
    assert (own[labels.TRAINING_REPLICA_TYPE], own[labels.TRAINING_REPLICA_INDEX]) == ("worker", "1")
    running = await status(cluster, kind)
    assert states(running) == ["Created", "Running"]
    assert running["replicaStatuses"]["Worker"] == {"active": 2}
    await after(60)
    assert states(await status(cluster, kind)) == ["Created", "Succeeded"]
    # cleanPodPolicy Running: the workers, which would run for ever, are gone.
    assert sorted(await pods(cluster)) == [f"w-{chief.lower()}-0"]


@on_cluster()
async def test_workers_without_a_chief_all_have_to_end(cluster: Cluster) -> None:
    """A JAXJob has workers only."""
    workers = {"replicas": 2, "template": template(run_for="30s")}
    await create(cluster, "JAXJob", {"jaxReplicaSpecs": {"Worker": workers}})
    await after(20)
    assert "Running" in states(await status(cluster, "JAXJob"))
    await after(20)
    assert states(await status(cluster, "JAXJob"))[-1] == "Succeeded"


@pytest.mark.parametrize(("code", "state"), [("137", "Created"), ("1", "Failed")])
@on_cluster()
async def test_exit_codes_decide_on_another_try(cluster: Cluster, code: str, state: str) -> None:
    """With restart policy ExitCode, 128 and more is tried again; less fails the job."""
    master = {"restartPolicy": "ExitCode", "template": template(run_for="30s", exit_code=code)}
    await create(cluster, "PyTorchJob", {"pytorchReplicaSpecs": {"Master": master}})
    first = (await pods(cluster))["w-master-0"].uid
    await after(31)
    assert state in states(await status(cluster, "PyTorchJob"))
    assert ((await pods(cluster))["w-master-0"].uid != first) is (code == "137")


@on_cluster()
async def test_a_deleted_pod_of_a_training_job_comes_back(cluster: Cluster) -> None:
    """An evicted worker is created again under its name."""
    await create(cluster, "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template()}}})
    first = (await pods(cluster))["w-worker-0"]
    await cluster.client().delete(Pod, first.key)
    await after(60)
    assert (await pods(cluster))["w-worker-0"].uid != first.uid


@on_cluster()
async def test_an_mpi_job_ends_with_its_launcher(cluster: Cluster) -> None:
    """The launcher waits for ready workers where told; workers go when it has ended."""
    roles = {
        "Launcher": {"replicas": 1, "template": template(run_for="60s")},
        "Worker": {"replicas": 2, "template": template(ready_after="30s")},
    }
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "runPolicy": {"cleanPodPolicy": "Running"}}
    await create(cluster, "MPIJob", {**spec, "mpiReplicaSpecs": roles})
    assert sorted(await pods(cluster)) == ["w-worker-0", "w-worker-1"]
    await after(35)
    launcher = next(pod for name, pod in (await pods(cluster)).items() if name.startswith("w-launcher-"))
    assert launcher.metadata.labels[labels.TRAINING_JOB_ROLE] == "launcher"
    assert states(await status(cluster, "MPIJob"))[-1] == "Running"
    await after(60)
    assert states(await status(cluster, "MPIJob"))[-1] == "Succeeded"
    assert list(await pods(cluster)) == [launcher.name]


RAY = {
    "headGroupSpec": {"template": template()},
    "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2, "minReplicas": 1, "template": template()}],
}


@on_cluster()
async def test_a_ray_cluster_replaces_what_ended(cluster: Cluster) -> None:
    """A head and workers; ready once all are, and a failed worker starts again."""
    groups = [{**RAY["workerGroupSpecs"][0], "template": template(policy="Never", run_for="60s", exit_code="1")}]  # type: ignore[index]  # a list
    await create(cluster, "RayCluster", {**RAY, "workerGroupSpecs": groups})
    by_name = await pods(cluster)
    assert sorted(by_name) == ["w-gpu-worker-0", "w-gpu-worker-1", "w-head"]
    assert by_name["w-gpu-worker-0"].metadata.labels[labels.RAY_GROUP] == "gpu"
    ray = await status(cluster, "RayCluster")
    assert (ray["state"], ray["desiredWorkerReplicas"], ray["availableWorkerReplicas"]) == ("ready", 2, 2)
    await after(65)
    assert (await pods(cluster))["w-gpu-worker-0"].uid != by_name["w-gpu-worker-0"].uid


@pytest.mark.parametrize(("code", "outcome"), [("0", "SUCCEEDED"), ("1", "FAILED")])
@on_cluster()
async def test_a_ray_job_runs_as_long_as_its_submitter(cluster: Cluster, code: str, outcome: str) -> None:
    """Annotations of the RayJob say how long, and how it ends; then its cluster is shut down."""
    spec = {"entrypoint": "python train.py", "shutdownAfterJobFinishes": True, "rayClusterSpec": RAY}
    script = {"spinney.dev/run-for": "60s", "spinney.dev/exit-code": code}
    await create(cluster, "RayJob", spec, annotations=script)
    await after(5)
    job = await status(cluster, "RayJob")
    assert (job["jobStatus"], job["jobDeploymentStatus"]) == ("RUNNING", "Running")
    assert f"{job['rayClusterName']}-head" in await pods(cluster)
    await after(600)
    assert (await status(cluster, "RayJob"))["jobStatus"] == outcome
    assert all(name.startswith("w-") and "head" not in name for name in await pods(cluster))
    assert not await get(cluster, KINDS["RayCluster"], job["rayClusterName"])


@on_cluster()
async def test_a_ray_service_serves_once_its_cluster_is_ready(cluster: Cluster) -> None:
    """Its status names the cluster, for the grouper."""
    await create(cluster, "RayService", {"rayClusterConfig": RAY})
    await after(5)
    service = await status(cluster, "RayService")
    assert service["serviceStatus"] == "Running"
    assert f"{service['activeServiceStatus']['rayClusterName']}-head" in await pods(cluster)


def replicated(name: str, replicas: int, **script: str) -> Json:
    """A replicated job of one pod per replica."""
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": template("Never", **script)}}}


@on_cluster()
async def test_a_job_set_starts_in_order_and_completes(cluster: Cluster) -> None:
    """Workers come when the driver is ready; Completed once all Jobs are."""
    jobs = [replicated("driver", 1, ready_after="20s", run_for="60s"), replicated("workers", 2, run_for="60s")]
    await create(cluster, "JobSet", {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs})
    assert [pod.metadata.labels[labels.JOBSET_REPLICATED_JOB] for pod in (await pods(cluster)).values()] == ["driver"]
    await after(25)
    members = (await pods(cluster)).values()
    assert sorted(pod.metadata.labels[labels.JOBSET_JOB_INDEX] for pod in members) == ["0", "0", "1"]
    await after(120)
    assert (await status(cluster, "JobSet"))["terminalState"] == "Completed"


@on_cluster()
async def test_a_job_set_restarts_as_a_whole_until_it_gives_up(cluster: Cluster) -> None:
    """One failed Job starts all of them again, `maxRestarts` times."""
    failing = replicated("workers", 1, run_for="30s", exit_code="1")
    failing["template"]["spec"]["backoffLimit"] = 0
    spec = {"failurePolicy": {"maxRestarts": 1}, "replicatedJobs": [failing, replicated("driver", 1)]}
    await create(cluster, "JobSet", spec)
    driver = next(pod for name, pod in (await pods(cluster)).items() if name.startswith("w-driver"))
    await after(45)
    assert (await status(cluster, "JobSet"))["restarts"] == 1
    again = next(pod for name, pod in (await pods(cluster)).items() if name.startswith("w-driver"))
    assert again.uid != driver.uid
    await after(120)
    assert (await status(cluster, "JobSet"))["terminalState"] == "Failed"
    assert not any(pod.status.phase == "Running" for pod in (await pods(cluster)).values())


@on_cluster()
async def test_a_group_of_a_leader_worker_set_is_replaced_as_a_whole(cluster: Cluster) -> None:
    """Losing one worker starts its group again, and leaves the other group alone."""
    await create(
        cluster, "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}}
    )
    before = await pods(cluster)
    assert sorted(before) == ["w-0", "w-0-1", "w-1", "w-1-1"]
    assert before["w-1-1"].metadata.labels[labels.LWS_GROUP_INDEX] == "1"
    assert before["w-1-1"].metadata.annotations[labels.LWS_SIZE] == "2"
    assert states(await status(cluster, "LeaderWorkerSet")) == ["Available"]
    await cluster.client().delete(Pod, before["w-0-1"].key)
    await after(60)
    now = await pods(cluster)
    changed = {name for name in before if now[name].uid != before[name].uid}
    assert changed == {"w-0", "w-0-1"}
    await cluster.client().patch(KINDS["LeaderWorkerSet"], ("default", "w"), {"spec": {"replicas": 1}})
    await after(60)
    assert sorted(await pods(cluster)) == ["w-0", "w-0-1"]


@on_cluster()
async def test_workers_wait_for_a_ready_leader_where_told(cluster: Cluster) -> None:
    """With start-up policy LeaderReady."""
    workers = {"size": 2, "leaderTemplate": template(ready_after="30s"), "workerTemplate": template()}
    await create(cluster, "LeaderWorkerSet", {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": workers})
    assert list(await pods(cluster)) == ["w-0"]
    await after(40)
    assert sorted(await pods(cluster)) == ["w-0", "w-0-1"]


@on_cluster()
async def test_a_notebook_has_a_pod_until_it_is_stopped(cluster: Cluster) -> None:
    """By the annotation that Kubeflow's dashboard sets."""
    await create(cluster, "Notebook", {"template": template()})
    assert list(await pods(cluster)) == ["w-0"]
    assert (await status(cluster, "Notebook"))["readyReplicas"] == 1
    stop = {"metadata": {"annotations": {"kubeflow-resource-stopped": "now"}}}
    await cluster.client().patch(KINDS["Notebook"], ("default", "w"), stop)
    await after(60)
    assert not await pods(cluster)


SUSPENDED: list[tuple[str, Json]] = [
    ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template()}}}),
    (
        "MPIJob",
        {"mpiReplicaSpecs": {"Launcher": {"template": template()}, "Worker": {"replicas": 1, "template": template()}}},
    ),
    ("RayCluster", RAY),
    ("RayJob", {"rayClusterSpec": RAY}),
    ("JobSet", {"replicatedJobs": [replicated("all", 2)]}),
    ("LeaderWorkerSet", {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}}),
]


@pytest.mark.parametrize(("kind", "spec"), SUSPENDED)
@on_cluster()
async def test_every_kind_can_be_suspended_and_resumed(cluster: Cluster, kind: str, spec: Json) -> None:
    """By the patch that `spinney suspend` and `spinney resume` write."""
    await create(cluster, kind, spec)
    await after(10)
    before = len(await pods(cluster))
    assert before > 0
    await cluster.client().patch(KINDS[kind], ("default", "w"), suspension(kind, True))
    await after(120)
    assert not await pods(cluster)
    assert is_suspended(kind, (await get(cluster, KINDS[kind], "w"))["spec"])
    await cluster.client().patch(KINDS[kind], ("default", "w"), suspension(kind, False, 1))
    await after(30)
    assert len(await pods(cluster)) == before


@pytest.mark.parametrize(("kind", "spec"), SUSPENDED)
@on_cluster()
async def test_a_second_look_writes_nothing(cluster: Cluster, kind: str, spec: Json) -> None:
    """A change that does not matter leaves the workload and its pods as they are."""
    await create(cluster, kind, spec)
    await after(30)
    version = (await get(cluster, KINDS[kind], "w"))["metadata"]["resourceVersion"]
    before = await pods(cluster)
    for pod in before.values():
        await cluster.client().patch(Pod, pod.key, {"metadata": {"annotations": {"seen": "yes"}}})
    await after(30)
    assert (await get(cluster, KINDS[kind], "w"))["metadata"]["resourceVersion"] == version
    assert {pod.uid for pod in (await pods(cluster)).values()} == {pod.uid for pod in before.values()}


@on_cluster()
async def test_what_cannot_be_read_or_created_is_told(cluster: Cluster) -> None:
    """An event on the workload says what is wrong."""
    await create(cluster, "LeaderWorkerSet", {"replicas": "two"})
    refused = {"template": {"spec": {"containers": [{"name": "No Name", "image": "x"}]}}}
    body = {"metadata": {"name": "p"}, "spec": {"pytorchReplicaSpecs": {"Master": refused}}}
    await cluster.client().create(KINDS["PyTorchJob"], body, "default")
    await after(5)
    messages = {event.reason: event.message for event in (await cluster.client().list(Event, "default")).items}
    assert "two" in messages["InvalidSpec"]
    assert "p-master-0" in messages["FailedCreate"]


@on_cluster()
async def test_definitions_of_users_stay(cluster: Cluster) -> None:
    """A real definition that is there already is not touched; a version that nobody serves has no stand-in."""
    crd = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "jobset.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "JobSet", "plural": "jobsets"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    await cluster.client().create(crd, {"metadata": {"name": "jobsets.jobset.x-k8s.io"}, "spec": spec})
    await start_operators(cluster)
    kept = await get(cluster, crd, "jobsets.jobset.x-k8s.io")
    assert [version["name"] for version in kept["spec"]["versions"]] == ["v1"]
    with pytest.raises(NotFound):
        await cluster.client().list(KINDS["JobSet"], "default")


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": MOST}}}),
        ("MPIJob", {"mpiReplicaSpecs": {"Worker": {"replicas": MOST}}}),
        ("JobSet", {"replicatedJobs": [{"name": "a", "replicas": MOST, "template": {}}]}),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 1, "numOfHosts": MOST}]}),
        ("LeaderWorkerSet", {"replicas": 50, "leaderWorkerTemplate": {"size": 50}}),
    ],
)
@on_cluster()
async def test_a_workload_of_two_billion_filled_the_memory(cluster: Cluster, kind: str, spec: Json) -> None:
    """A stand-in says how many it creates at most, and creates none."""
    await create(cluster, kind, spec)
    events = (await cluster.client().list(Event, "default")).items
    assert ["creates at most 2000 for one object" in event.message for event in events] == [True]
    assert await pods(cluster) == {}
