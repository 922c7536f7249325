"""Every kind of the table: whose the group is, how many it waits for, which class it has unless told."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from spinney.api.meta import Json
from spinney.services.podgrouper.grouping import GroupingError
from spinney.services.podgrouper.rules import RULES, SKIPPED
from tests.services.podgrouper.grouping import (
    JOBS,
    OBJECTS,
    RAY_CLUSTER_SPEC,
    RUN,
    Owners,
    grouped,
    leaves,
    lws,
    lws_pod,
    member,
    pytorch,
    workload,
)


class Row(NamedTuple):
    """A workload named `w` with UID `u`, and its group."""

    kind: str
    spec: Json | None = None
    name: str = "pg-w-u"
    least: int | None = 1
    priority: str = "train"
    labels: dict[str, str] | None = None
    status: Json | None = None
    below: Json | None = None


def roles(field: str, **replicas: int) -> Json:
    """The spec of a training job."""
    return {field: {role: {"replicas": count} for role, count in replicas.items()}}


def policy(minimum: int) -> Json:
    """The scheduling policy of a training job."""
    return {"runPolicy": {"schedulingPolicy": {"minAvailable": minimum}}}


def node_count(value: object) -> Json:
    """The spec of an AmlJob."""
    return {"job": {"options": {"envs": {"AZUREML_NODE_COUNT": value}}}}


BY_NAME = {document["metadata"]["name"]: document for document in OBJECTS}
IN_GANG = {"grove.io/podgang": "g"}
IN_SET = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}
ACTIVE = {"activeServiceStatus": {"rayClusterName": "c"}}
IN_REVISION = {"serving.knative.dev/revision": "rev"}


TABLE = [
    Row("v1 Pod"),
    Row("apps/v1 Deployment", name="pg-w-0-abcde-p", priority="inference"),
    Row("apps/v1 ReplicaSet"),
    Row("apps/v1 StatefulSet"),
    Row("batch/v1 Job"),
    Row("batch/v1 CronJob", name="pg-j-j", below=RUN),
    Row("kubeflow.org/v1 TFJob", roles("tfReplicaSpecs", PS=1, Worker=2), least=3),
    Row("kubeflow.org/v1 TFJob", {**roles("tfReplicaSpecs", Worker=3), **policy(2)}, least=2),
    Row("kubeflow.org/v1 XGBoostJob", roles("xgbReplicaSpecs", Master=1, Worker=2), least=3),
    Row("kubeflow.org/v1 JAXJob", roles("jaxReplicaSpecs", Worker=2), least=2),
    Row("kubeflow.org/v1 MPIJob", roles("mpiReplicaSpecs", Launcher=1, Worker=2), least=3),
    Row("kubeflow.org/v2beta1 MPIJob", roles("mpiReplicaSpecs", Launcher=1, Worker=2), least=3),
    Row("kubeflow.org/v1 PyTorchJob", roles("pytorchReplicaSpecs", Master=1, Worker=2), least=3),
    Row("kubeflow.org/v1beta1 Notebook", priority="build"),
    Row("kubeflow.org/v1alpha1 ScheduledWorkflow"),
    Row("ray.io/v1 RayCluster", RAY_CLUSTER_SPEC, least=7),
    Row("ray.io/v1alpha1 RayCluster", RAY_CLUSTER_SPEC, least=7),
    Row("ray.io/v1 RayJob", status={"rayClusterName": "c"}, least=7),
    Row("ray.io/v1alpha1 RayJob", status={"rayClusterName": "c"}, least=7),
    Row("ray.io/v1 RayService", status=ACTIVE, least=7),
    Row("ray.io/v1alpha1 RayService", status={"pendingServiceStatus": {"rayClusterName": "c"}}, least=7),
    Row("jobset.x-k8s.io/v1alpha2 JobSet", JOBS, least=None, labels=IN_SET),
    Row("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 4}}, least=4),
    Row("serving.knative.dev/v1 Service", name="pg-rev-rev", least=2, priority="inference", labels=IN_REVISION),
    Row("amlarc.azureml.com/v1alpha1 AmlJob", node_count(3), least=3),
    Row("amlarc.azureml.com/v1alpha1 AmlJob", node_count("3"), least=3),
    Row("egx.nvidia.io/v1 SPOTRequest", priority="inference"),
    Row("machinelearning.seldon.io/v1 SeldonDeployment"),
    Row("machinelearning.seldon.io/v1alpha2 SeldonDeployment"),
    Row("kubevirt.io/v1 VirtualMachine"),
    Row("kubevirt.io/v1 VirtualMachineInstance"),
    Row("workspace.devfile.io/v1alpha2 DevWorkspace"),
    Row("tekton.dev/v1 PipelineRun"),
    Row("tekton.dev/v1 TaskRun"),
    Row("run.ai/v1 RunaiJob", name="pg-w-0-u"),
    Row("grove.io/v1alpha1 PodCliqueSet", name="pg-g-g", least=2, labels=IN_GANG),
    Row("grove.io/v1alpha1 PodGangSet", name="pg-g-g", least=2, labels=IN_GANG),
    Row("argoproj.io/v1alpha1 Workflow", name="pg-w-0-abcde-p"),
    Row("trainer.kubeflow.org/v1alpha1 TrainJob", name="pg-s-s", least=None, labels=IN_SET, below=BY_NAME["s"]),
    Row("nvidia.com/v1beta1 DynamoGraphDeployment", name="pg-g-g", least=2, labels=IN_GANG, below=BY_NAME["pcs"]),
    Row("run.ai/v2alpha1 TrainingWorkload", name="pg-j-j", below=RUN),
    Row("run.ai/v2alpha1 InteractiveWorkload", name="pg-j-j", below=RUN),
    Row("run.ai/v2alpha1 DistributedWorkload", name="pg-j-j", below=RUN),
    Row("run.ai/v2alpha1 InferenceWorkload", name="pg-j-j", below=RUN),
    Row("run.ai/v2alpha1 DistributedInferenceWorkload", name="pg-j-j", below=RUN),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kind)
async def test_each_kind_has_its_group(row: Row) -> None:
    """The group's name, its minimum and its class, from nothing but the workload."""
    top = workload(*row.kind.split())
    top.update(spec=row.spec or {}, status=row.status or {})
    below = (row.below,) if row.below else ()
    grouping = await grouped(top, member(row.labels), Owners(objects=OBJECTS), None, *below)
    assert (grouping.name, grouping.min_member, grouping.priority_class) == (row.name, row.least, row.priority)


def test_the_table_knows_every_rule() -> None:
    """A kind that is added is added here too."""
    named = {tuple(row.kind.split()) for row in TABLE}
    missing = {rule for rule in RULES if rule not in named}
    skipped = {kind for _, kind in SKIPPED} - {kind for _, kind in named}
    assert (missing, skipped) == (set(), set())


async def test_groups_of_older_releases_are_carried_on() -> None:
    """A Job's pods that had a group each keep it, with nobody to wait for; so does a Run:ai job."""
    job = workload("batch/v1", "Job", annotations={"kai.scheduler/batch-min-member": "4"})
    old = await grouped(job, world=Owners(groups={"pg-w-0-abcde-u": False}))
    assert (old.name, old.min_member) == ("pg-w-0-abcde-u", 1)
    runai = workload("run.ai/v1", "RunaiJob")
    assert (await grouped(runai, world=Owners(groups={"pg-w-u": False}))).name == "pg-w-u"
    runai["spec"] = {"parallelism": 2}
    assert (await grouped(runai, world=Owners(groups={"pg-w-0-abcde-u": False}))).name == "pg-w-0-abcde-u"


async def test_a_job_may_wait_for_nobody() -> None:
    """A minimum of 0 is no gang."""
    job = workload("batch/v1", "Job", annotations={"kai.scheduler/batch-min-member": "0"})
    assert (await grouped(job)).spec()["minMember"] == 0


async def test_a_policys_minimum_counts_the_launcher_too() -> None:
    """So that workers whose launcher waits for them wait for one less."""
    spec = {
        **roles("mpiReplicaSpecs", Launcher=1, Worker=4),
        **policy(3),
        "launcherCreationPolicy": "WaitForWorkersReady",
    }
    assert (await grouped(workload("kubeflow.org/v2beta1", "MPIJob", spec))).min_member == 2


async def test_a_replicated_job_without_replicas_is_left_out() -> None:
    """A subgroup that nobody can be in would make the group invalid."""
    jobs = [*JOBS["replicatedJobs"], {"name": "off", "replicas": 0, "template": {"spec": {}}}]
    grouping = await grouped(workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs}), member(IN_SET))
    assert (list(leaves(grouping)), grouping.min_subgroup) == (["a", "a-replica-0", "a-replica-1"], 1)


async def test_the_minimum_of_a_replica_is_what_its_template_says() -> None:
    """`kai.scheduler/batch-min-member` on a replicated job's template stands for its parallelism."""
    template = {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "2"}}, "spec": {"parallelism": 3}}
    top = workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"name": "a", "template": template}]})
    assert leaves(await grouped(top, member(IN_SET)))["a-replica-0"] == 2


SEGMENTS = {"kai.scheduler/segment-size": "2", "kai.scheduler/segment-topology-required-placement": "rack"}
RACK = {"topology": "dc", "requiredTopologyLevel": "rack"}


@pytest.mark.parametrize(
    ("on_owner", "on_pod", "wanted"),
    [({}, {}, {}), ({"kai.scheduler/topology": "dc"}, {}, RACK), ({}, {"kai.scheduler/topology": "dc"}, RACK)],
)
async def test_a_segments_topology(on_owner: Json, on_pod: Json, wanted: Json) -> None:
    """Each part may stand on the pod, its template or the workload; without the topology's name there is none."""
    top = lws(5)
    top["metadata"]["annotations"] = on_owner
    top["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"metadata": {"annotations": SEGMENTS}}
    labels = lws_pod(3).metadata.labels
    grouping = await grouped(top, member(dict(labels), on_pod))
    assert grouping.subgroups[1].topology.wire() == wanted


async def test_a_pod_without_its_place_is_in_no_segment() -> None:
    """It would wait for ever in none of them: that is an error which names the label."""
    worker = member({"training.kubeflow.org/replica-type": "worker"}, {"kai.scheduler/segment-size": "2"})
    with pytest.raises(GroupingError, match="replica-index is ''; it must be a number"):
        await grouped(pytorch(), worker)
    top = lws(5, "LeaderWorker")
    with pytest.raises(GroupingError, match="worker-index is ''"):
        await grouped(top, member({"leaderworkerset.sigs.k8s.io/group-index": "3"}))
