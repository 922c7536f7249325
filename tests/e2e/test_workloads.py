"""Workloads of other projects, end to end in virtual time: their operators are played, everything of ours is real."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api import labels
from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json
from spinney.embedded.nodes.profile import Profile
from tests import data, make
from tests.e2e.installation import Installed, documents, end_to_end

NODES = Profile(count=2, gpus=8, racks=1, blocks=1)
QUEUE = {labels.QUEUE: "default-queue"}
ONE_POD: Json = {"spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "main", "image": "busybox"}]}}


async def define(held: Installed, definition: Json) -> None:
    """Serve a kind."""
    await held.apply(definition)

    async def served() -> bool:
        crd = await held.client.get(CustomResourceDefinition, definition["metadata"]["name"])
        return is_true(crd.status.conditions, "Established")

    await held.eventually(served)


async def serve(held: Installed, api_version: str, *kinds: str, scope: str = "Namespaced") -> None:
    """Serve kinds that may hold anything."""
    group, _, version = api_version.partition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    for kind in kinds:
        plural = f"{kind.lower()}s"
        names = {"kind": kind, "plural": plural, "singular": kind.lower()}
        await define(
            held,
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
            },
        )


async def put(
    held: Installed, api_version: str, kind: str, name: str, owner: Json | None = None, **parts: Json
) -> Json:
    """A workload, or something between a workload and its pods; returns the reference that names it as an owner."""
    metadata: Json = {"name": name, "labels": parts.pop("labels", {}), "annotations": parts.pop("annotations", {})}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    resource = await held.resource(api_version, kind)
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}
    made: Json = await held.client.create(resource, body, "default")
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": made["metadata"]["uid"],
        "controller": True,
    }


async def pods(held: Installed, owner: Json, *names: str, marks: dict[str, str] | None = None) -> None:
    """What an operator makes of a workload: one-GPU pods with its labels."""
    for name in names:
        built = make.pod(name).scheduler(labels.KAI_SCHEDULER).gpus(1)
        for key, value in (marks or {}).items():
            built.label(key, value)
        document = built.build()
        document["metadata"]["ownerReferences"] = [owner]
        await held.client.create(Pod, document, "default")


async def groups(held: Installed) -> dict[str, tuple[int | None, dict[str, int | None]]]:
    """Every group without its UID: its minimum, and the minimum of each subgroup that holds pods."""
    by_owner = {}
    for group in (await held.client.list(PodGroup, "default")).items:
        parents = {subgroup.parent for subgroup in group.spec.sub_groups}
        leaves = {each.name: each.min_member for each in group.spec.sub_groups if each.name not in parents}
        least = group.spec.min_member if group.spec.min_member is not None else group.spec.min_sub_group
        by_owner[group.metadata.annotations[labels.TOP_OWNER].split("\n")[0].removeprefix("name: ")] = (least, leaves)
    return by_owner


async def subgroups(held: Installed, prefix: str) -> dict[str, str]:
    """The subgroup of each pod."""
    return {pod.name: pod.metadata.labels.get(labels.SUBGROUP, "") for pod in await held.pods(prefix)}


TEMPLATE = {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}


KUBEFLOW: tuple[tuple[str, str, str, dict[str, int], dict[str, int]], ...] = (
    ("TFJob", "v1", "tfReplicaSpecs", {"PS": 1, "Worker": 2}, {}),
    ("XGBoostJob", "v1", "xgbReplicaSpecs", {"Master": 1, "Worker": 2}, {}),
    ("JAXJob", "v1", "jaxReplicaSpecs", {"Worker": 3}, {}),
    ("MPIJob", "v1", "mpiReplicaSpecs", {"Launcher": 1, "Worker": 2}, {}),
    ("PyTorchJob", "v1", "pytorchReplicaSpecs", {"Master": 1, "Worker": 2}, {"master": 1, "worker": 2}),
)


@end_to_end(NODES)
async def test_kubeflow(held: Installed) -> None:
    """Of every kind two of three pods wait for the third; then all of them run."""
    last: list[tuple[Json, str, dict[str, str]]] = []
    for kind, version, field, roles, _ in KUBEFLOW:
        await serve(held, f"kubeflow.org/{version}", kind)
        spec = {field: {role: {"replicas": count, **TEMPLATE} for role, count in roles.items()}}
        job = await put(held, f"kubeflow.org/{version}", kind, kind.lower(), labels=QUEUE, spec=spec)
        places = [(role.lower(), index) for role, count in roles.items() for index in range(count)]
        named = [(f"{kind.lower()}-{role}-{index}", {labels.TRAINING_REPLICA_TYPE: role}) for role, index in places]
        for name, marks in named[:2]:
            await pods(held, job, name, marks=marks)
        last.append((job, *named[2]))
    await asyncio.sleep(30)
    assert await held.running() == []
    for job, name, marks in last:
        await pods(held, job, name, marks=marks)
    await held.runs("", 3 * len(KUBEFLOW))
    assert await groups(held) == {kind.lower(): (3, leaves) for kind, _, _, _, leaves in KUBEFLOW}


@end_to_end(NODES)
async def test_an_mpi_job_whose_launcher_waits_for_its_workers(held: Installed) -> None:
    """The workers do not wait for a launcher that comes only when they run; then it counts."""
    await serve(held, "kubeflow.org/v2beta1", "MPIJob")
    roles = {role: {"replicas": count, **TEMPLATE} for role, count in (("Launcher", 1), ("Worker", 2))}
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": roles}
    job = await put(held, "kubeflow.org/v2beta1", "MPIJob", "mpi", labels=QUEUE, spec=spec)
    marks = {labels.TRAINING_JOB_NAME: "mpi"}
    await pods(held, job, "mpi-worker-0", "mpi-worker-1", marks={**marks, labels.TRAINING_JOB_ROLE: "worker"})
    await held.runs("mpi", 2)
    assert await groups(held) == {"mpi": (2, {})}
    await pods(held, job, "mpi-launcher", marks={**marks, labels.TRAINING_JOB_ROLE: "launcher"})
    await held.runs("mpi", 3)
    assert await groups(held) == {"mpi": (3, {})}


RAY = {
    "headGroupSpec": TEMPLATE,
    "workerGroupSpecs": [
        {"groupName": "GPU_Workers", "replicas": 2, "minReplicas": 1, **TEMPLATE},
        {"groupName": "none", "replicas": 0, **TEMPLATE},
    ],
}


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_ray(kind: str) -> None:
    """Head and worker groups are subgroups, also with names that Kubernetes would not take, and whoever is on top."""

    @end_to_end(NODES)
    async def test(held: Installed) -> None:
        await serve(held, "ray.io/v1", *{kind, "RayCluster"})
        top = None
        if kind != "RayCluster":
            named = {"rayClusterName": "cluster"}
            status = named if kind == "RayJob" else {"pendingServiceStatus": named}
            top = await put(held, "ray.io/v1", kind, "top", labels=QUEUE, spec={}, status=status)
        cluster = await put(held, "ray.io/v1", "RayCluster", "cluster", top, labels=QUEUE, spec=RAY)
        await pods(held, cluster, "ray-head", marks={labels.RAY_GROUP: "headgroup"})
        await asyncio.sleep(20)
        assert await held.running("ray") == []
        await pods(held, cluster, "ray-worker-0", "ray-worker-1", marks={labels.RAY_GROUP: "GPU_Workers"})
        await held.runs("ray", 3)
        name = "cluster" if top is None else "top"
        assert await groups(held) == {name: (2, {"headgroup": 1, "gpu-workers": 1})}
        assert (await subgroups(held, "ray"))["ray-worker-0"] == "gpu-workers"

    test()


@end_to_end(NODES)
async def test_a_job_set_below_a_train_job(held: Installed) -> None:
    """The training job only starts the JobSet, whose replicas are the gang; its labels count all the same."""
    await serve(held, "trainer.kubeflow.org/v1alpha1", "TrainJob")
    await serve(held, "jobset.x-k8s.io/v1alpha2", "JobSet")
    marks = {**QUEUE, labels.PRIORITY_CLASS: "build-preemptible"}
    top = await put(held, "trainer.kubeflow.org/v1alpha1", "TrainJob", "tune", labels=marks, spec={})
    spec = {"replicatedJobs": [{"name": "node", "replicas": 2, "template": {"spec": {"parallelism": 2}}}]}
    job_set = await put(held, "jobset.x-k8s.io/v1alpha2", "JobSet", "tune", top, spec=spec)
    for replica in range(2):
        where = {labels.JOBSET_REPLICATED_JOB: "node", labels.JOBSET_JOB_INDEX: str(replica)}
        await put(held, "batch/v1", "Job", f"tune-node-{replica}", job_set, spec=_two_pods(where))
    await held.runs("tune", 4)
    assert await groups(held) == {"tune": (1, {"node-replica-0": 2, "node-replica-1": 2})}
    group = (await held.client.list(PodGroup, "default")).items[0]
    assert group.spec.priority_class_name == "build-preemptible"


def _two_pods(marks: dict[str, str]) -> Json:
    spec = make.pod("any").scheduler(labels.KAI_SCHEDULER).gpus(1).build()["spec"]
    template = {"metadata": {"labels": marks}, "spec": {**spec, "restartPolicy": "Never"}}
    return {"parallelism": 2, "completions": 2, "template": template}


@end_to_end(NODES)
async def test_a_leader_worker_set(held: Installed) -> None:
    """Each group of a leader and its workers is a gang of its own."""
    await serve(held, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 3}}
    top = await put(held, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "lws", labels=QUEUE, spec=spec)
    for group in ("0", "1"):
        for index in ("0", "1", "2"):
            where = {labels.LWS_GROUP_INDEX: group, labels.LWS_WORKER_INDEX: index}
            await pods(held, top, f"lws-{group}-{index}", marks=where)
    await held.runs("lws", 6)
    names = sorted(group.name for group in (await held.client.list(PodGroup, "default")).items)
    assert [name.rpartition("-")[2] for name in names] == ["0", "1"]
    assert await subgroups(held, "lws-0") == {"lws-0-0": "leader", "lws-0-1": "workers", "lws-0-2": "workers"}


@end_to_end(NODES)
async def test_a_knative_service(held: Installed) -> None:
    """One group per revision, as large as its smallest scale, for inference."""
    await serve(held, "serving.knative.dev/v1", "Service", "Configuration", "Revision")
    top = await put(held, "serving.knative.dev/v1", "Service", "web", labels=QUEUE, spec={})
    configuration = await put(held, "serving.knative.dev/v1", "Configuration", "web", top, spec={})
    marks = {"autoscaling.knative.dev/min-scale": "2"}
    revision = await put(
        held, "serving.knative.dev/v1", "Revision", "web-1", configuration, annotations=marks, labels=QUEUE, spec={}
    )
    await pods(held, revision, "web-a", marks={labels.KNATIVE_REVISION: "web-1"})
    await asyncio.sleep(20)
    assert await held.running("web") == []
    await pods(held, revision, "web-b", marks={labels.KNATIVE_REVISION: "web-1"})
    # Inference is not preemptible, and the queue has no quota: it may start with one.
    await held.lend("default-queue", 4)
    await held.runs("web", 2)
    assert await groups(held) == {"web-1": (2, {})}


ONE_GROUP = (
    ("machinelearning.seldon.io/v1", "SeldonDeployment"),
    ("kubevirt.io/v1", "VirtualMachineInstance"),
    ("tekton.dev/v1", "TaskRun"),
    ("workspace.devfile.io/v1alpha2", "DevWorkspace"),
    ("kubeflow.org/v1alpha1", "ScheduledWorkflow"),
    ("kubeflow.org/v1beta1", "Notebook"),
)


@end_to_end(NODES)
async def test_kinds_with_one_group_for_all(held: Installed) -> None:
    """There is one group per workload, and we may read it; a notebook is somebody at work and needs a quota."""
    await held.lend("default-queue", 4)
    for api_version, kind in ONE_GROUP:
        await serve(held, api_version, kind)
        top = await put(held, api_version, kind, kind.lower(), labels=QUEUE, spec={})
        await pods(held, top, f"{kind.lower()}-0", f"{kind.lower()}-1")
    await held.runs("", 2 * len(ONE_GROUP))
    assert await groups(held) == {kind.lower(): (1, {}) for _, kind in ONE_GROUP}
    by_owner = {each.metadata.name.split("-")[1]: each for each in (await held.client.list(PodGroup, "default")).items}
    assert by_owner["notebook"].spec.priority_class_name == "build"


@end_to_end(NODES)
async def test_pods_of_an_argo_workflow_stand_for_themselves(held: Installed) -> None:
    """The workflow only starts them; its queue holds for each."""
    await serve(held, "argoproj.io/v1alpha1", "Workflow")
    top = await put(held, "argoproj.io/v1alpha1", "Workflow", "flow", labels=QUEUE, spec={})
    await pods(held, top, "flow-a", "flow-b")
    await held.runs("flow", 2)
    assert await groups(held) == {"flow-a": (1, {}), "flow-b": (1, {})}


@end_to_end(NODES)
async def test_a_spark_application_is_one_group(held: Installed) -> None:
    """Driver and executors share the group that their selector names."""
    for name in ("driver", "exec-1"):
        pod = make.pod(f"spark-{name}").scheduler(labels.KAI_SCHEDULER).gpus(1).label(labels.QUEUE, "default-queue")
        await held.apply(pod.label("spark-app-name", "pi").label("spark-app-selector", "spark-1234").build())
    await held.runs("spark", 2)
    assert [group.name for group in (await held.client.list(PodGroup, "default")).items] == ["spark-1234"]


@end_to_end(NODES)
async def test_an_owner_that_we_may_not_read(held: Installed) -> None:
    """The pod is grouped by the last owner that we may read: here by itself."""
    await serve(held, "example.com/v1", "Secretive")
    top = await put(held, "example.com/v1", "Secretive", "hidden", spec={})
    await pods(held, top, "hidden-0", marks=QUEUE)
    await held.runs("hidden", 1)
    assert await groups(held) == {"hidden-0": (1, {})}


@end_to_end(NODES)
async def test_the_karta_sample(held: Installed) -> None:
    """Upstream's own example, unchanged: a kind without a rule is grouped as its Karta says."""
    folder = data.path("samples/kai/test/e2e/suites/integrations/third_party/karta")
    await serve(held, "run.ai/v1alpha1", "Karta", scope="Cluster")
    await define(held, documents(folder / "customjobs_crd.yaml")[0])
    await held.may("pod-grouper", "e2e.example.com", "customjobs")
    await held.apply_file(folder / "customjob_karta.yaml")
    spec = {"coordinator": {"replicas": 1}, "worker": {"replicas": 2}}
    job = await put(held, "e2e.example.com/v1", "CustomJob", "custom", labels=QUEUE, spec=spec)
    for name, role in (("custom-c", "coordinator"), ("custom-w-0", "worker")):
        await pods(held, job, name, marks={"e2e.example.com/role": role})
    await asyncio.sleep(20)
    assert await held.running("custom") == []
    await pods(held, job, "custom-w-1", marks={"e2e.example.com/role": "worker"})
    await held.runs("custom", 3)
    assert await groups(held) == {"custom": (2, {"coordinator": 1, "worker": 2})}


@end_to_end(NODES, operators=True, stand_in=True)
async def test_the_pytorch_sample(held: Installed) -> None:
    """As with the training operator: a minimum of 3, one of them the master."""
    await held.apply_file(data.path("samples/kai/docs/batch/pytorch-job.yaml"))
    name = "pytorch-dist-mnist-nccl"
    await held.runs(name, 3)
    assert await groups(held) == {name: (3, {"master": 1, "worker": 2})}


@end_to_end(NODES, operators=True, stand_in=True)
async def test_the_ray_sample(held: Installed) -> None:
    """As with KubeRay: a minimum of 2, of 3 pods with a GPU; the submitter is no member of the gang."""
    await held.apply_file(data.path("samples/kai/examples/ray/ray-job.yaml"))
    await held.runs("rayjob-sample", 4)
    assert await groups(held) == {"rayjob-sample": (2, {"headgroup": 1, "gpu-workers": 1})}


OTHERS = [
    {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": ONE_POD},
                "Worker": {"replicas": 2, "template": ONE_POD},
            }
        },
    },
    {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": ONE_POD}},
    },
    {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "spec": {"replicatedJobs": [{"name": "all", "replicas": 2, "template": {"spec": {"template": ONE_POD}}}]},
    },
    {"apiVersion": "kubeflow.org/v1beta1", "kind": "Notebook", "spec": {"template": ONE_POD}},
]
GANGS = {
    "mpijob": (3, {}),
    "leaderworkerset": (2, {"leader": 1, "workers": 1}),
    "jobset": (1, {"all-replica-0": 1, "all-replica-1": 1}),
    "notebook": (1, {}),
}


@end_to_end(NODES, operators=True)
async def test_kinds_of_stand_ins_are_grouped_as_gangs(held: Installed) -> None:
    """Our grouper finds in their pods what it finds in those of the real operators."""
    for document in OTHERS:
        metadata = {"name": str(document["kind"]).lower(), "labels": QUEUE}
        await held.apply({**document, "metadata": metadata})
    for name, count in (("mpijob", 3), ("leaderworkerset", 4), ("jobset", 2), ("notebook", 1)):
        await held.runs(name, count)
    assert await groups(held) == GANGS
