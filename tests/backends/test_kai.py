"""KAI: one PodGroup per gang."""

from __future__ import annotations

import pytest
import yaml

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster
from spinney.backends.kai import BACKEND
from spinney.backends.served import Served
from spinney.kube.difference import without_none
from tests import make

SERVED = Served(frozenset({PodGroup.resource}))


def written(gang: make.GangBuilder) -> Json:
    """The PodGroup as it would be created."""
    (wanted,) = BACKEND.translate(convert(PodGang, gang.build()), Cluster(SERVED)).objects
    assert wanted.resource == PodGroup.resource
    body: Json = without_none(wanted.body)
    return body


def test_the_example_of_the_contract() -> None:
    """1 master and 4 workers with minAvailable 3: minMember 4, subgroups of 1 and 3."""
    gang = make.gang("train-0", uid="u1").backend("kai").group("master", 1).group("workers", 3, pods=4)
    body = written(gang)
    owner = yaml.safe_load(body["metadata"]["annotations"].pop("kai.scheduler/top-owner-metadata"))
    assert owner == {
        "name": "train-0",
        "uid": "u1",
        "group": "scheduler.grove.io",
        "version": "v1alpha1",
        "kind": "PodGang",
    }
    assert body == {
        "metadata": {
            "name": "pg-train-0-u1",
            "namespace": "default",
            "labels": {"grove.io/scheduler-backend": "kai"},
            "annotations": {},
            "ownerReferences": [
                {
                    "apiVersion": "scheduler.grove.io/v1alpha1",
                    "kind": "PodGang",
                    "name": "train-0",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "minMember": 4,
            "queue": "default-queue",
            "subGroups": [{"name": "train-0-master", "minMember": 1}, {"name": "train-0-workers", "minMember": 3}],
        },
    }


@pytest.mark.parametrize(
    ("on_set", "on_cliques", "expected"),
    [
        ("", [], {}),
        ("team", [], {"kai.scheduler/queue": "team"}),
        ("", ["test", "test"], {"kai.scheduler/queue": "test"}),
        ("team", ["team", ""], {"kai.scheduler/queue": "team"}),
    ],
)
def test_the_queue_is_read_from_the_set_or_its_cliques(on_set: str, on_cliques: list[str], expected: Json) -> None:
    """The set's own label first, else what its cliques agree on."""
    assert BACKEND.gang_annotations(queued(on_set, on_cliques), {}) == expected


def queued(on_set: str, on_cliques: list[str]) -> PodCliqueSet:
    """A set with queue labels on itself and on its cliques."""
    builder = make.pcs("train")
    if on_set:
        builder.label("kai.scheduler/queue", on_set)
    for index, queue in enumerate(on_cliques):
        builder.clique(f"c{index}")
        if queue:
            builder.object["spec"]["template"]["cliques"][-1]["labels"] = {"kai.scheduler/queue": queue}
    return convert(PodCliqueSet, builder.build())


def test_different_queues_are_refused() -> None:
    """A gang is in one queue; the message says where each was found."""
    (problem,) = BACKEND.check(queued("a", ["b"]), SERVED)
    assert "'a' on the set; 'b' on clique c0" in problem.message
    assert not problem.waivable


def test_preemption_settings_of_a_set_were_lost_on_the_way_to_its_group() -> None:
    """As for a Job: the label and the annotations of the workload are in its PodGroup, and go with them."""
    gang = make.gang("train-0", uid="u1").label("kai.scheduler/preemptibility", "non-preemptible")
    gang.annotate("kai.scheduler/preemption-delay", "2m").annotate("kai.scheduler/staleness-grace-period", "-1s")
    spec = written(gang)["spec"]
    assert (spec["preemptibility"], spec["preemptionDelay"], spec["stalenessGracePeriod"]) == (
        "non-preemptible",
        "2m",
        "-1s",
    )
    (unsaid,) = BACKEND.translate(convert(PodGang, make.gang("train-0").build()), Cluster(SERVED)).objects
    assert unsaid.body["spec"]["preemptibility"] is None


def test_preemption_settings_that_cannot_be_read_are_refused() -> None:
    """They counted as not set, and nobody was told."""
    built = make.pcs("train").clique("a").label("kai.scheduler/preemptibility", "maybe")
    built.annotate("kai.scheduler/preemption-delay", "-2m").annotate("kai.scheduler/staleness-grace-period", "soon")
    problems = BACKEND.check(convert(PodCliqueSet, built.build()), SERVED)
    assert [problem.field for problem in problems] == [
        "metadata.labels[kai.scheduler/preemptibility]",
        "metadata.annotations[kai.scheduler/preemption-delay]",
        "metadata.annotations[kai.scheduler/staleness-grace-period]",
    ]


def test_a_part_of_a_gpu_that_cannot_be_is_refused_with_the_set() -> None:
    """The set was stored, and its pods were refused for ever."""
    built = make.pcs("train").clique("a").clique("b").build()
    built["spec"]["template"]["cliques"][1]["annotations"] = {"gpu-fraction": "1.5"}
    (problem,) = BACKEND.check(convert(PodCliqueSet, built), SERVED)
    assert problem.field == "spec.template.cliques[1].annotations"
    assert "gpu-fraction is '1.5'; it must be a number above 0 and below 1" in problem.message


def test_a_pod_joins_its_subgroup_and_is_left_alone_by_the_grouper() -> None:
    """Membership is an annotation and a label; the pod handed in stays as it was."""
    gang = convert(PodGang, make.gang("train-0", uid="u1").group("w", 1).build())
    pod = make.pod("p").label("grove.io/podclique", "train-0-w").scheduler("grove-scheduler").build()
    prepared = BACKEND.prepare(pod, gang, SERVED)
    assert prepared["spec"]["schedulerName"] == "kai-scheduler"
    assert prepared["metadata"]["labels"]["kai.scheduler/subgroup-name"] == "train-0-w"
    assert prepared["metadata"]["annotations"] == {
        "pod-group-name": "pg-train-0-u1",
        "kai.scheduler/skip-podgrouper": "true",
    }
    assert pod["spec"]["schedulerName"] == "grove-scheduler"
    assert "annotations" not in pod["metadata"]


BINDING = convert(
    ClusterTopologyBinding,
    {
        "metadata": {"name": "pods", "uid": "b1"},
        "spec": {"levels": [{"domain": "zone", "key": "z"}, {"domain": "rack", "key": "r"}]},
    },
)


def test_a_binding_becomes_a_topology_of_the_same_name() -> None:
    """Levels keep their order, broadest first."""
    wanted = BACKEND.topology(BINDING)
    assert wanted is not None
    assert wanted.name == "pods"
    assert wanted.body["spec"] == {"levels": [{"nodeLabel": "z"}, {"nodeLabel": "r"}]}


@pytest.mark.parametrize(
    ("levels", "drift"),
    [
        (["z", "r"], ""),
        (["r", "z"], "Topology pods has the levels ['r', 'z'], the binding ['z', 'r']"),
        (None, "Topology pods does not exist"),
    ],
)
def test_drift_says_what_differs(levels: list[str] | None, drift: str) -> None:
    """The scheduler's topology must have the binding's levels."""
    topologies = [
        {"metadata": {"name": "pods"}, "spec": {"levels": [{"nodeLabel": level} for level in levels]}}
        for levels in ([levels] if levels is not None else [])
    ]
    assert BACKEND.topology_drift(BINDING, "pods", topologies) == drift
