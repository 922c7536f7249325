"""Each kind of workload and the PodGroup it asks for."""

from __future__ import annotations

import pytest
import yaml

from spinney.api.kai import PodGroup
from spinney.api.meta import Json, convert
from spinney.services.podgrouper.context import KindDefaults, Settings
from spinney.services.podgrouper.defaults import top_owner_metadata
from spinney.services.podgrouper.grouping import GroupingError
from spinney.services.podgrouper.plan import plan_group
from tests import make
from tests.services.podgrouper.grouping import (
    RAY_CLUSTER_SPEC,
    Owners,
    grouped,
    leaves,
    lws,
    lws_pod,
    member,
    pytorch,
    workload,
)


async def test_an_unknown_owner_gets_one_group_of_its_own() -> None:
    """Name, owner and defaults of the group for a workload that no rule knows."""
    grouping = await grouped(workload("example.com/v1", "Thing", labels={"a": "b"}))
    assert grouping.name == "pg-w-u"
    assert grouping.owner == {"apiVersion": "example.com/v1", "kind": "Thing", "name": "w", "uid": "u"}
    assert grouping.labels == {"a": "b"}
    assert grouping.spec() == {"queue": "default-queue", "priorityClassName": "train", "minMember": 1}
    assert "kind: Thing" in grouping.annotations["kai.scheduler/top-owner-metadata"]


@pytest.mark.parametrize(
    ("owner", "pod", "queue"),
    [
        ({"kai.scheduler/queue": "a"}, {"kai.scheduler/queue": "b"}, "a"),
        ({}, {"kai.scheduler/queue": "b"}, "b"),
        ({"project": "p"}, {}, "p"),
        ({"project": "p"}, {"kai.scheduler/node-pool": "pool"}, "p-pool"),
        ({}, {}, "default-queue"),
    ],
)
async def test_where_the_queue_comes_from(owner: dict[str, str], pod: dict[str, str], queue: str) -> None:
    """The owner's label, the pod's, the project of either, else the default queue."""
    assert (await grouped(workload("batch/v1", "Job", labels=owner), member(pod))).queue == queue


@pytest.mark.parametrize(
    ("owner", "pod", "spec", "wanted"),
    [
        ({"priorityClassName": "urgent"}, {"priorityClassName": "build"}, {}, "urgent"),
        ({"priorityClassName": "missing"}, {"priorityClassName": "build"}, {}, "build"),
        ({}, {}, {"priorityClassName": "inference"}, "inference"),
        ({}, {}, {}, "train"),
    ],
)
async def test_where_the_priority_comes_from(owner: Json, pod: Json, spec: Json, wanted: str) -> None:
    """The first class that exists: the owner's label, the pod's label, the pod's own class, the kind's default."""
    assert (await grouped(workload("batch/v1", "Job", labels=owner), member(pod, **spec))).priority_class == wanted


async def test_defaults_by_kind() -> None:
    """The defaults ConfigMap speaks for a kind where nobody else does."""
    settings = Settings(
        kind_defaults={"Job.batch": KindDefaults(priority_class="build", preemptibility="non-preemptible")}
    )
    grouping = await grouped(workload("batch/v1", "Job"), settings=settings)
    assert (grouping.priority_class, grouping.preemptibility) == ("build", "non-preemptible")


async def test_durations_that_cannot_be_read_are_ignored() -> None:
    """A bad value on the owner gives way to a good one on the pod; a delay may not be negative, a grace period may."""
    top = workload("batch/v1", "Job", annotations={"kai.scheduler/preemption-delay": "soon"})
    pod = member(annotations={"kai.scheduler/preemption-delay": "5m", "kai.scheduler/staleness-grace-period": "-1s"})
    grouping = await grouped(top, pod)
    assert (grouping.preemption_delay, grouping.staleness_grace) == ("5m", "-1s")
    late = await grouped(None, member(annotations={"kai.scheduler/preemption-delay": "-5m"}))
    assert late.preemption_delay == ""


async def test_pods_of_a_spark_application_share_a_group() -> None:
    """Driver and executors have no common owner: the selector names their group."""
    pod = member({"spark-app-name": "app", "spark-app-selector": "spark-1"})
    assert (await grouped(None, pod)).name == "spark-1"


async def test_each_pod_of_a_deployment_is_a_group() -> None:
    """Replicas of a service do not wait for each other."""
    grouping = await grouped(workload("apps/v1", "Deployment"))
    assert (grouping.name, grouping.owner["kind"], grouping.priority_class) == ("pg-w-0-abcde-p", "Pod", "inference")


async def test_a_job_may_ask_for_a_minimum() -> None:
    """`kai.scheduler/batch-min-member` on the Job is its gang's size; nonsense is an error that says so."""
    job = workload("batch/v1", "Job", annotations={"kai.scheduler/batch-min-member": "4"})
    assert (await grouped(job)).min_member == 4
    with pytest.raises(GroupingError, match="batch-min-member is 'many'"):
        await grouped(workload("batch/v1", "Job", annotations={"kai.scheduler/batch-min-member": "many"}))


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        ("XGBoostJob", {"xgbReplicaSpecs": {"Worker": {"replicas": 2}}}, "lacks Master"),
        ("TFJob", {}, "lacks at least one role"),
        ("TFJob", {"tfReplicaSpecs": {"Worker": {"replicas": 0}}}, "Worker asks for no replicas"),
    ],
)
async def test_training_jobs_that_cannot_be_grouped(kind: str, spec: Json, says: str) -> None:
    """A role that is missing or empty is an error, not a gang of nobody."""
    with pytest.raises(GroupingError, match=says):
        await grouped(workload("kubeflow.org/v1", kind, spec))


async def test_mpi_workers_do_not_wait_for_a_launcher_that_waits_for_them() -> None:
    """Under WaitForWorkersReady the launcher counts only once it lives."""
    spec = {
        "mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}},
        "launcherCreationPolicy": "WaitForWorkersReady",
    }
    top = workload("kubeflow.org/v2beta1", "MPIJob", spec)
    assert (await grouped(top)).min_member == 2
    launcher = make.pod("w-launcher").label("training.kubeflow.org/job-name", "w")
    launcher.label("training.kubeflow.org/job-role", "launcher")
    assert (await grouped(top, world=Owners(running=[launcher.build()]))).min_member == 3


async def test_pytorch_roles_are_subgroups() -> None:
    """Master and workers each have a minimum; elastic jobs need fewer workers."""
    pod = member({"training.kubeflow.org/replica-type": "worker"})
    grouping = await grouped(pytorch(), pod)
    assert (grouping.min_member, leaves(grouping), grouping.pod_subgroup) == (5, {"master": 1, "worker": 4}, "worker")
    elastic = await grouped(pytorch(elasticPolicy={"minReplicas": 3}), pod)
    assert (elastic.min_member, leaves(elastic)) == (3, {"master": 1, "worker": 2})


async def test_pytorch_workers_in_segments() -> None:
    """Segments of a fixed size, the last one smaller; each may be bound to one domain."""
    annotations = {
        "kai.scheduler/segment-size": "3",
        "kai.scheduler/topology": "dc",
        "kai.scheduler/segment-topology-required-placement": "rack",
    }
    top = pytorch(workers=7)
    top["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"] = annotations
    pod = member({"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "4"})
    grouping = await grouped(top, pod)
    assert leaves(grouping) == {"master": 1, "worker": None, "worker-0": 3, "worker-1": 3, "worker-2": 1}
    assert grouping.pod_subgroup == "worker-1"
    parent, first = grouping.subgroups[1], grouping.subgroups[2]
    assert (parent.min_subgroup, first.parent) == (3, "worker")
    assert first.topology.wire() == {"topology": "dc", "requiredTopologyLevel": "rack"}


async def test_a_segment_size_of_zero_is_refused() -> None:
    """Nothing is divided by zero."""
    with pytest.raises(GroupingError, match="at least 1"):
        await grouped(pytorch(), member(annotations={"kai.scheduler/segment-size": "0"}))


async def test_a_group_with_subgroups_that_is_as_wanted_is_not_written_again() -> None:
    """Each pod of the workload looks at the group; none of them has anything to change."""
    grouping = await grouped(pytorch(), member({"training.kubeflow.org/replica-type": "worker"}))
    created = plan_group(None, grouping, Settings())
    assert created is not None
    assert created.body["spec"]["subGroups"]
    assert plan_group(convert(PodGroup, created.body), grouping, Settings()) is None


async def test_ray_groups_are_subgroups() -> None:
    """A head and each worker group that is not suspended, with its minimum times its hosts."""
    pod = member({"ray.io/group": "small"})
    grouping = await grouped(workload("ray.io/v1", "RayCluster", RAY_CLUSTER_SPEC), pod)
    assert leaves(grouping) == {"headgroup": 1, "small": 2, "worker-group-1": 4}
    assert (grouping.min_member, grouping.pod_subgroup) == (7, "small")


async def test_a_ray_job_is_grouped_by_its_cluster() -> None:
    """The cluster's name is in the job's status; before that there is nothing to group by."""
    cluster = {**workload("ray.io/v1", "RayCluster", RAY_CLUSTER_SPEC)}
    cluster["metadata"] = {"name": "c", "uid": "c", "namespace": "default"}
    top = workload("ray.io/v1", "RayJob")
    with pytest.raises(GroupingError, match="names no RayCluster yet"):
        await grouped(top)
    grouping = await grouped({**top, "status": {"rayClusterName": "c"}}, world=Owners(objects=[cluster]))
    assert (grouping.name, grouping.min_member) == ("pg-w-u", 7)


async def test_a_ray_group_made_flat_stays_flat() -> None:
    """Pods of an older release carry no subgroup label."""
    top = workload("ray.io/v1", "RayCluster", RAY_CLUSTER_SPEC)
    assert (await grouped(top, world=Owners(groups={"pg-w-u": False}))).subgroups == ()


async def test_job_sets_are_trees() -> None:
    """A parent per replicated job, a leaf per replica, and a pod's place by its labels."""
    jobs = [
        {"name": "driver", "template": {"spec": {}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 4}}},
    ]
    pod = member({"jobset.sigs.k8s.io/replicatedjob-name": "workers", "jobset.sigs.k8s.io/job-index": "1"})
    top = workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    grouping = await grouped(top, pod)
    assert grouping.spec()["minSubGroup"] == 2
    assert "minMember" not in grouping.spec()
    assert leaves(grouping) == {
        "driver": None,
        "driver-replica-0": 1,
        "workers": None,
        "workers-replica-0": 4,
        "workers-replica-1": 4,
    }
    assert grouping.pod_subgroup == "workers-replica-1"
    in_order = {**top, "spec": {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "InOrder"}}}
    assert (await grouped(in_order, pod)).min_subgroup == 1


async def test_each_group_of_a_leader_worker_set_is_a_gang() -> None:
    """The group's index is in its name; the leader and the workers are subgroups."""
    grouping = await grouped(lws(), lws_pod(2))
    assert (grouping.name, grouping.min_member) == ("pg-w-u-group-3", 5)
    assert (leaves(grouping), grouping.pod_subgroup) == ({"leader": 1, "workers": 4}, "workers")


async def test_a_leader_that_must_be_ready_first_does_not_wait() -> None:
    """Under LeaderReady the workers come only after the leader runs."""
    top = lws(startupPolicy="LeaderReady")
    assert (await grouped(top, lws_pod(0))).min_member == 1
    assert (await grouped(top, lws_pod(0, nodeName="n"))).min_member == 5


@pytest.mark.parametrize(
    ("policy", "size", "worker", "wanted", "leaf"),
    [
        ("LeaderWorker", 5, 3, {"segment-0": None, "segment-1": 2, "leader": 1, "workers": 2}, "segment-1"),
        (
            "LeaderWorker",
            6,
            1,
            {"segment-0": None, "segment-1": 2, "segment-2": 2, "leader": 1, "workers": 1},
            "workers",
        ),
        ("LeaderExcluded", 5, 0, {"leader": 1, "segment-0": 2, "segment-1": 2}, "leader"),
    ],
)
async def test_leader_worker_sets_in_segments(policy: str, size: int, worker: int, wanted: Json, leaf: str) -> None:
    """Segments of two; where the workers fill them evenly the leader is an extra of the first."""
    grouping = await grouped(lws(size, policy), lws_pod(worker))
    assert (leaves(grouping), grouping.pod_subgroup) == (wanted, leaf)


async def test_knative_groups_by_revision() -> None:
    """A revision is a gang of its minimal scale; revisions that were grouped per pod stay so."""
    revision = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Revision",
        "metadata": {"name": "rev", "uid": "r", "annotations": {"autoscaling.knative.dev/min-scale": "3"}},
    }
    pod = member({"serving.knative.dev/revision": "rev"})
    top = workload("serving.knative.dev/v1", "Service")
    grouping = await grouped(top, pod, Owners(objects=[revision]))
    assert (grouping.name, grouping.min_member, grouping.priority_class) == ("pg-rev-r", 3, "inference")
    sibling = make.pod("old").label("serving.knative.dev/revision", "rev").annotate("pod-group-name", "pg-old-1")
    legacy = await grouped(top, pod, Owners(objects=[revision], running=[sibling.build()]))
    assert legacy.name == "pg-w-0-abcde-p"


async def test_a_workflow_is_skipped_for_what_it_starts() -> None:
    """The owner below groups the pod, with the workflow's labels where it has none of its own."""
    job = {
        **workload("batch/v1", "Job", labels={"a": "job"}),
        "metadata": {"name": "j", "uid": "j", "labels": {"a": "job"}},
    }
    top = workload("argoproj.io/v1alpha1", "Workflow", labels={"a": "flow", "kai.scheduler/queue": "q"})
    grouping = await grouped(top, None, Owners(objects=[job]), None, job)
    assert (grouping.name, grouping.queue, grouping.labels["a"]) == ("pg-j-j", "q", "job")


async def test_a_pod_clique_set_is_grouped_by_its_gang() -> None:
    """The PodGang owns the group; its roles are subgroups under its group configurations."""
    gang = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "w-0", "uid": "g", "annotations": {"grove.io/topology-name": "dc"}},
        "spec": {
            "podgroups": [
                {
                    "name": "w-0-a",
                    "minReplicas": 2,
                    "podReferences": [{"namespace": "default", "name": "w-0-abcde"}],
                    "topologyConstraint": {"packConstraint": {"required": "rack"}},
                },
                {"name": "w-0-b", "minReplicas": 1, "podReferences": []},
            ],
            "topologyConstraintGroupConfigs": [
                {
                    "name": "pair",
                    "podGroupNames": ["w-0-a"],
                    "topologyConstraint": {"packConstraint": {"preferred": "row"}},
                }
            ],
            "priorityClassName": "inference",
        },
    }
    pod = member({"grove.io/podgang": "w-0"})
    top = workload("grove.io/v1alpha1", "PodCliqueSet", labels={"kai.scheduler/queue": "q"})
    grouping = await grouped(top, pod, Owners(objects=[gang]))
    assert (grouping.name, grouping.owner["kind"], grouping.queue) == ("pg-w-0-g", "PodGang", "q")
    assert (grouping.min_member, grouping.pod_subgroup, grouping.priority_class) == (3, "w-0-a", "inference")
    assert leaves(grouping) == {"pair": None, "w-0-a": 2, "w-0-b": 1}
    assert grouping.subgroups[1].topology.wire() == {"topology": "dc", "requiredTopologyLevel": "rack"}


@pytest.mark.parametrize(
    "name", ["plain", "1234", "1e5", "0x1f", "no", "true", "a.b-c", "1-2", "2026-01-01", "9f8e7d6c-1"]
)
def test_the_top_owner_is_yaml_whatever_its_name(name: str) -> None:
    """Names that look like numbers, dates or booleans are read back as the text they are."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "uid": f"{name}-0"}}
    read = yaml.safe_load(top_owner_metadata(owner))
    assert read == {"name": name, "uid": f"{name}-0", "group": "batch", "version": "v1", "kind": "Job"}


async def test_reviewed_queues_are_those_of_pods() -> None:
    """Where the use of queues is reviewed, a pod's label comes before its owner's, which nobody has looked at."""
    top = workload("batch/v1", "Job", labels={"kai.scheduler/queue": "owners"})
    pod = member({"kai.scheduler/queue": "pods"})
    assert (await grouped(top, pod)).queue == "owners"
    assert (await grouped(top, pod, settings=Settings(pods_name_queues=True))).queue == "pods"


async def test_a_long_name_still_makes_a_group() -> None:
    """Names end at 253 characters; the UID is whole."""
    top = workload("batch/v1", "Job")
    top["metadata"].update(name="x" * 253, uid="0a3be662-4b08-4e11-bed9-1bb971871853")
    name = (await grouped(top)).name
    assert (len(name), name[:5], name[-37:]) == (253, "pg-xx", "-0a3be662-4b08-4e11-bed9-1bb971871853")
