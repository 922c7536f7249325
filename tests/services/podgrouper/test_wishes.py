"""Whose labels and annotations say how a group is treated."""

from __future__ import annotations

import pytest

from spinney.api.meta import Json
from spinney.services.podgrouper.context import KindDefaults, Settings
from spinney.services.podgrouper.grouping import GroupingError
from tests.services.podgrouper.grouping import OBJECTS, Owners, grouped, lws, lws_pod, member, there, workload


def owner(kind: str, name: str, **labels: str) -> Json:
    """An owner between the pod and the top."""
    return there("example.com/v1", kind, name, labels=labels)


CLASS = "priorityClassName"


@pytest.mark.parametrize(
    ("near", "pod", "spec", "top", "wanted"),
    [
        ("urgent", "build", "", "inference", "urgent"),
        ("", "build", "urgent", "inference", "build"),
        ("", "", "urgent", "inference", "urgent"),
        ("", "", "", "inference", "inference"),
        ("missing", "", "", "inference", "inference"),
        ("", "", "", "", "train"),
    ],
)
async def test_the_class_of_a_chain(near: str, pod: str, spec: str, top: str, wanted: str) -> None:
    """Where a kind has no form of its own: the owner next to the pod, the pod, then the owners above."""
    labelled = member({CLASS: pod} if pod else {}, priorityClassName=spec)
    chain = owner("Part", "part", **({CLASS: near} if near else {}))
    thing = workload("example.com/v1", "Thing", labels={CLASS: top} if top else {})
    assert (await grouped(thing, labelled, None, None, chain)).priority_class == wanted


async def test_a_known_kind_speaks_for_itself() -> None:
    """What stands between a Deployment and its pods has no say."""
    between = there(
        "apps/v1", "ReplicaSet", "rs", labels={CLASS: "build", "kai.scheduler/preemptibility": "preemptible"}
    )
    grouping = await grouped(workload("apps/v1", "Deployment", labels={CLASS: "urgent"}), None, None, None, between)
    assert (grouping.priority_class, grouping.preemptibility) == ("urgent", "")


async def test_defaults_of_kinds() -> None:
    """Of any owner in the chain; a class that does not exist is passed over, and case does not matter."""
    settings = Settings(
        kind_defaults={
            "Part.example.com": KindDefaults(priority_class="missing", preemptibility="Non-Preemptible"),
            "Thing": KindDefaults(priority_class="build"),
        }
    )
    grouping = await grouped(workload("example.com/v1", "Thing"), None, None, settings, owner("Part", "part"))
    assert (grouping.priority_class, grouping.preemptibility) == ("build", "non-preemptible")


async def test_the_user_is_the_owners() -> None:
    """The pod's word counts where the owner has none, on labels and on annotations."""
    pod = member({"user": "pod"}, {"user": "pod"})
    bare = await grouped(workload("batch/v1", "Job"), pod)
    assert (bare.labels["user"], bare.annotations["user"]) == ("pod", "pod")
    top = workload("batch/v1", "Job", labels={"user": "owner"}, annotations={"user": "owner"})
    owned = await grouped(top, pod)
    assert (owned.labels["user"], owned.annotations["user"]) == ("owner", "owner")


async def test_a_group_per_pod_stands_for_its_workload() -> None:
    """The pod owns the group; who the workload is stays readable."""
    grouping = await grouped(workload("apps/v1", "Deployment"))
    assert grouping.owner["kind"] == "Pod"
    assert "kind: Deployment" in grouping.annotations["kai.scheduler/top-owner-metadata"]


async def gang(labels: Json, annotations: Json, spec: Json) -> Json:
    """The group of a gang whose set has these labels and annotations, as it is written."""
    objects = [each for each in OBJECTS if each["kind"] != "PodGang"]
    objects.append(there("scheduler.grove.io/v1alpha1", "PodGang", "g", spec))
    top = workload("grove.io/v1alpha1", "PodCliqueSet", labels=labels, annotations=annotations)
    return (await grouped(top, member({"grove.io/podgang": "g"}), Owners(objects=objects))).spec()


async def test_a_sets_labels_come_before_its_gang() -> None:
    """The class that a label names is the gang's; a preemptibility that does not exist is an error."""
    assert (await gang({CLASS: "urgent"}, {}, {"priorityClassName": "build"}))["priorityClassName"] == "urgent"
    assert (await gang({}, {}, {"priorityClassName": "build"}))["priorityClassName"] == "build"
    with pytest.raises(GroupingError, match="preemptibility is 'maybe'; it must be preemptible or non-preemptible"):
        await gang({"kai.scheduler/preemptibility": "maybe"}, {}, {})


async def test_annotations_fill_what_a_gang_leaves_open() -> None:
    """A gang without a constraint takes the set's, one with a required level its preferred one."""
    wishes = {
        "kai.scheduler/topology": "dc",
        "kai.scheduler/topology-required-placement": "rack",
        "kai.scheduler/topology-preferred-placement": "host",
    }
    whole = {"topology": "dc", "requiredTopologyLevel": "rack", "preferredTopologyLevel": "host"}
    assert (await gang({}, wishes, {}))["topologyConstraint"] == whole
    pack = {"topologyConstraint": {"packConstraint": {"required": "zone"}}}
    assert (await gang({}, wishes, pack))["topologyConstraint"] == {**whole, "requiredTopologyLevel": "zone"}


async def test_two_billion_replicas_filled_the_memory_of_the_grouper() -> None:
    """A workload whose replicas each need a subgroup is refused beyond ten thousand, before any is made."""
    most = 2**31 - 1
    jobs = {"replicatedJobs": [{"name": "a", "replicas": most, "template": {"spec": {"parallelism": 1}}}]}
    with pytest.raises(GroupingError, match=f"{most} replicas; at most 10000"):
        await grouped(workload("jobset.x-k8s.io/v1alpha2", "JobSet", jobs))
    for policy in ("LeaderWorker", "LeaderExcluded"):
        with pytest.raises(GroupingError, match="segments of 2147483646 workers; at most 10000"):
            await grouped(lws(size=most, policy=policy), lws_pod(1))


@pytest.mark.parametrize("replicas", ["x", None, {"a": 1}, [2]])
async def test_a_workload_of_wrong_types_was_told_in_tracebacks_only(replicas: object) -> None:
    """A value of a type that its kind does not have is told about the workload by name, as an event of its pods."""
    jobs = {"replicatedJobs": [{"name": "a", "replicas": replicas}]}
    with pytest.raises(GroupingError, match="JobSet w is not as its kind should be: "):
        await grouped(workload("jobset.x-k8s.io/v1alpha2", "JobSet", jobs))
