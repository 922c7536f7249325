"""YuniKorn: the gang is written on its pods."""

from __future__ import annotations

import json

import pytest

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster
from spinney.backends.served import Served
from spinney.backends.yunikorn import BACKEND, application_id
from tests import make

POD_SPEC: Json = {
    "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
    "initContainers": [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "warm", "resources": {"requests": {"memory": "3Gi"}}},
    ],
    "overhead": {"memory": "1Gi"},
    "nodeSelector": {"zone": "a"},
}


def gang() -> make.GangBuilder:
    """A gang as the operator would make it, with what its backend asked it to carry."""
    builder = make.gang("svc-0", uid="0123456789abcdef").group("x", 2).group("y", 1).group("z", 0, pods=1)
    pcs = make.pcs("svc").label("yunikorn.apache.org/queue", "root.ml").clique("x").typed(PodCliqueSet)
    carried = BACKEND.gang_annotations(pcs, {"svc-0-x": POD_SPEC, "svc-0-y": {"containers": []}})
    for key, value in carried.items():
        builder.annotate(key, value)
    return builder


def prepared(role: str) -> Json:
    """A pod of a role."""
    pod = make.pod("p").label("grove.io/podclique", f"svc-0-{role}").build()
    return BACKEND.prepare(pod, convert(PodGang, gang().build()), Served())


def test_every_pod_carries_the_whole_gang() -> None:
    """The order in which YuniKorn sees pods is not ours, so each has all task groups; minimum 0 is left out."""
    pod = prepared("x")
    assert pod["spec"]["schedulerName"] == "yunikorn"
    assert pod["metadata"]["labels"]["yunikorn.apache.org/app-id"] == "svc-0-01234567"
    assert pod["metadata"]["labels"]["yunikorn.apache.org/queue"] == "root.ml"
    annotations = pod["metadata"]["annotations"]
    assert annotations["yunikorn.apache.org/task-group-name"] == "svc-0-x"
    assert json.loads(annotations["yunikorn.apache.org/task-groups"]) == [
        {
            "name": "svc-0-x",
            "minMember": 2,
            "minResource": {"cpu": "750m", "memory": "4Gi"},
            "nodeSelector": {"zone": "a"},
        },
        {"name": "svc-0-y", "minMember": 1, "minResource": {}},
    ]
    assert annotations["yunikorn.apache.org/schedulingPolicyParameters"] == (
        "placeholderTimeoutInSeconds=900 gangSchedulingStyle=Hard"
    )


def test_a_placeholder_is_as_large_as_its_pod() -> None:
    """Sidecars, init containers and overhead count: a larger pod would lose its place."""
    roles = json.loads(gang().object["metadata"]["annotations"]["grove.io/role-requests"])
    assert roles["svc-0-x"]["minResource"] == {"cpu": "750m", "memory": "4Gi"}


def test_a_role_without_a_minimum_is_in_no_task_group() -> None:
    """Its pods belong to the application and are placed one by one."""
    assert "yunikorn.apache.org/task-group-name" not in prepared("z")["metadata"]["annotations"]


def test_each_attempt_is_an_application_of_its_own() -> None:
    """An application that timed out is dead for YuniKorn."""
    first = convert(PodGang, gang().build())
    second = convert(PodGang, gang().annotate("grove.io/scheduling-attempt", "2").build())
    assert application_id(second) == f"{application_id(first)}-2"
    long = convert(PodGang, make.gang("s" * 80, uid="0123456789abcdef").build())
    assert len(application_id(long)) <= 63


def test_nothing_is_written_and_topology_is_lost() -> None:
    """There is no object, and no way to pack a gang into a domain."""
    translation = BACKEND.translate(convert(PodGang, gang().packed(required="rack").build()), Cluster(Served()))
    assert translation.objects == ()
    assert [loss.asked for loss in translation.losses] == ["rack"]


def test_device_claims_are_refused_unless_the_user_opts_in() -> None:
    """A placeholder reserves no devices."""
    pcs = make.pcs("svc").clique("x", resourceClaims=[{"name": "gpu"}]).build()
    (problem,) = BACKEND.check(convert(PodCliqueSet, pcs), Served())
    assert problem.waivable


def pod_of(attempt: str, reason: str = "", on: str = "") -> Pod:
    """A pod of the gang in some attempt."""
    builder = gang()
    if attempt:
        builder.annotate("grove.io/scheduling-attempt", attempt)
    body = make.pod("p").label("yunikorn.apache.org/app-id", application_id(convert(PodGang, builder.build()))).build()
    body["spec"] |= {"nodeName": on} if on else {}
    body["status"] = {"phase": "Failed" if reason else "Pending", "reason": reason}
    return convert(Pod, body)


def test_a_timed_out_gang_is_tried_again_under_a_new_application() -> None:
    """Only a failure of the present attempt counts, and only pods of earlier ones that run nowhere are made anew."""
    first = convert(PodGang, gang().build())
    second = convert(PodGang, gang().annotate("grove.io/scheduling-attempt", "2").build())
    failed = pod_of("", "ResourceReservationTimeout")
    assert BACKEND.spent(first, [failed])
    assert not BACKEND.spent(second, [failed])
    assert not BACKEND.spent(first, [pod_of("", "Evicted")])
    assert BACKEND.outdated(second, [failed, pod_of("2"), pod_of("", on="n")]) == [failed]


def test_a_placeholder_is_known_by_its_application() -> None:
    """It carries the reason why the gang waits; the pods themselves do not."""
    typed = convert(PodGang, gang().build())
    body = make.pod("tg-svc-0").label("yunikorn.apache.org/app-id", application_id(typed)).build()
    assert BACKEND.reserved_by(convert(Pod, body)) == ""
    body["metadata"]["annotations"] = {"internal.yunikorn.apache.org/placeholder": "true"}
    assert BACKEND.reserved_by(convert(Pod, body)) == BACKEND.reservation(typed)


TREE: Json = {"name": "root", "queues": [{"name": "ml"}, {"name": "team", "queues": [{"name": "a"}]}]}


@pytest.mark.parametrize(
    ("partition", "queue", "beginning"),
    [
        ({"queues": [TREE]}, "root.ml", ""),
        ({"queues": [TREE]}, "root.team.a", ""),
        ({"queues": [TREE]}, "", ""),
        ({"queues": [TREE]}, "root.team", "there is no queue 'root.team' (there are: root.ml, root.team.a)"),
        ({"queues": [TREE]}, "root.gone", "there is no queue 'root.gone' (there are: root.ml, root.team.a)"),
        ({"queues": [TREE], "placementrules": [{"name": "provided", "create": True}]}, "root.gone", ""),
        (None, "root.gone", ""),
    ],
)
def test_a_queue_that_yunikorn_would_refuse_is_told(partition: Json | None, queue: str, beginning: str) -> None:
    """Rules may create queues, and a configuration that nobody may read says nothing."""
    builder = make.gang("svc-0").annotate("yunikorn.apache.org/queue", queue).group("x", 1)
    text = json.dumps({"partitions": [{"name": "default", **partition}]}) if partition is not None else "{"
    settings = {BACKEND.settings[0]: {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": text}}}
    message = BACKEND.missing_queue(builder.typed(PodGang), Cluster(Served(), settings=settings))
    assert message.startswith(beginning)
    assert bool(message) == bool(beginning)


@pytest.mark.parametrize(("rules", "ignored"), [(["tag"], True), (["provided", "tag"], False), ([], False)])
def test_a_queue_that_placement_rules_ignore_is_told_as_lost(rules: list[str], ignored: bool) -> None:
    """The shipped rules place by namespace: a set that names a queue ran elsewhere, without a word."""
    builder = make.gang("svc-0").annotate("yunikorn.apache.org/queue", "root.ml").group("x", 1)
    partition: Json = {"name": "default", "queues": [TREE], "placementrules": [{"name": rule} for rule in rules]}
    config: Json = {"metadata": {"name": "yunikorn-configs", "namespace": "yunikorn"}}
    config["data"] = {"queues.yaml": json.dumps({"partitions": [partition]})}
    cluster = Cluster(Served(), settings={BACKEND.settings[0]: config})
    losses = BACKEND.translate(builder.typed(PodGang), cluster).losses
    assert [(loss.asked, loss.bearable) for loss in losses] == ([("root.ml", True)] if ignored else [])
