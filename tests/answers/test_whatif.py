"""What-if questions on small clusters: what starts, who has to go, what still waits."""

from __future__ import annotations

import msgspec
import pytest

from spinney.answers.model import WhatIf
from spinney.answers.whatif.applying import Created
from spinney.answers.whatif.changes import (
    AddNodes,
    Change,
    ChangeError,
    Create,
    DrainNode,
    RemoveNode,
    SetConfig,
    SetLimit,
    SetPriority,
    SetQuota,
    read_request,
)
from spinney.answers.whatif.difference import whatif
from spinney.scheduler.plan import plan
from tests.answers.scene import Scene


def ask(scene: Scene, *changes: Change) -> WhatIf:
    return whatif(scene.cluster(), changes)


def started(answer: WhatIf) -> dict[str, list[str]]:
    return {str(each.workload): list(each.nodes) for each in answer.starts}


def test_new_nodes_let_a_waiting_gang_start() -> None:
    """A gang that fits on no node of today starts on nodes like those that are there."""
    scene = Scene().nodes(1).queue("team").job("busy", 1, 8, on="n0").job("late", 2, 8)
    answer = ask(scene, AddNodes(count=2, gpus=8))
    assert started(answer) == {"job/late": ["new-0", "new-1"]}
    assert not answer.still_waiting
    assert not answer.evicted


def test_nothing_is_different_without_changes() -> None:
    """What happens anyway is no difference."""
    answer = ask(Scene().nodes(1).queue("team").job("early", 1, 8).job("late", 1, 8))
    assert not answer.starts
    assert not answer.evicted
    assert not answer.shares
    assert [str(each.workload) for each in answer.still_waiting] == ["job/late"]


def test_a_raised_limit_lets_the_next_gang_start() -> None:
    """The limit that held it back is named for what still waits."""
    scene = Scene().nodes(2).queue("team", limit=8).job("busy", 1, 8, on="n0").job("late", 1, 8)
    assert ask(scene).still_waiting[0].why.code == "OverLimit"
    answer = ask(scene, SetLimit(queue="team", gpus=16))
    assert started(answer) == {"job/late": ["n1"]}


def test_a_raised_quota_takes_back_what_others_borrowed() -> None:
    """Reclaim names the victim, for whom it goes, and the fair shares on both sides."""
    scene = Scene().nodes(1).queue("a", quota=0).queue("b", quota=0, overQuotaWeight=0)
    scene.job("lender", 2, 4, on="n0", queue="a").job("owner", 1, 8, queue="b")
    answer = ask(scene, SetQuota(queue="b", gpus=8))
    assert started(answer) == {"job/owner": ["n0"]}
    assert {each.right for each in answer.evicted} == {"reclaim"}
    assert {str(each.beneficiary) for each in answer.evicted} == {"job/owner"}
    assert [str(each.workload) for each in answer.still_waiting if each.worse] == ["job/lender"]
    share = next(each for each in answer.shares if each.queue == "b")
    assert (share.before.gpu, share.after.gpu) == (0, 8)


def test_a_higher_priority_preempts_inside_the_queue() -> None:
    """A number counts as a priority, and the job that goes waits afterwards."""
    scene = Scene().nodes(1).queue("team").job("busy", 1, 8, on="n0").job("urgent", 1, 8)
    answer = ask(scene, SetPriority(workload="job/urgent", priority="90"))
    assert started(answer) == {"job/urgent": ["n0"]}
    assert [(each.right, each.pod) for each in answer.evicted] == [("preempt", "default/busy-0")]


def test_a_drained_node_moves_its_pods_where_there_is_room() -> None:
    """Pods of controllers come back elsewhere; the rest waits."""
    scene = Scene().nodes(2).queue("team").job("a", 1, 8, on="n0")
    answer = ask(scene, DrainNode(node="n0"))
    assert [(each.pod, each.node, each.to, each.right) for each in answer.moved] == [
        ("default/a-0", "n0", "n1", "drain")
    ]
    scene.job("b", 1, 8, on="n1")
    answer = ask(scene, DrainNode(node="n0"))
    assert [each.pod for each in answer.evicted] == ["default/a-0"]
    assert [(str(each.workload), each.worse) for each in answer.still_waiting] == [("job/a", True)]


def test_a_removed_node_takes_bare_pods_with_it() -> None:
    """Nobody creates a bare pod again."""
    scene = Scene().nodes(2).queue("team")
    scene.add(
        {
            "apiVersion": "scheduling.run.ai/v2alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "pg", "namespace": "default"},
            "spec": {"minMember": 1, "queue": "team"},
        },
        scene.member("lonely", "pg", 1, on="n0"),
    )
    answer = ask(scene, RemoveNode(node="n0"))
    assert [(each.pod, each.to, each.right) for each in answer.evicted] == [("default/lonely", None, "node-removed")]


def test_a_scheduler_configuration_is_tried() -> None:
    """Without reclaim nobody has to go, whatever the quotas say."""
    scene = Scene().nodes(1).queue("a", quota=0).queue("b", quota=0, overQuotaWeight=0)
    scene.job("lender", 2, 4, on="n0", queue="a").job("owner", 1, 8, queue="b")
    answer = ask(scene, SetQuota(queue="b", gpus=8), SetConfig(config={"actions": "allocate"}))
    assert not answer.starts
    assert not answer.evicted


def test_queues_and_nodes_of_a_file_are_tried() -> None:
    """What is no workload needs nobody who expands it."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "extra"},
        "status": {"allocatable": {"cpu": "64", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}},
    }
    scene = Scene().nodes(1).queue("team").job("busy", 1, 8, on="n0").job("late", 1, 8)
    assert started(ask(scene, Create(objects=[node]))) == {"job/late": ["extra"]}


def test_created_workloads_are_those_that_the_caller_expands() -> None:
    """The what-if itself knows no controller: the pods and PodGroups come from whoever runs them."""
    new = Scene().job("new", 2, 4).cluster()
    created = Created(pods=list(new.pods), groups=list(new.groups), owners=list(new.owners))
    cluster = Scene().nodes(1).queue("team").cluster()
    answer = whatif(cluster, [Create(objects=[{"kind": "Job"}])], lambda _, documents: created)
    assert started(answer) == {"job/new": ["n0"]}
    assert answer.starts[0].gpus == 8
    assert answer.starts[0].before is None


def test_the_cluster_is_the_same_afterwards() -> None:
    """The same question gets the same answer, and a plan of the state is the plan from before."""
    scene = Scene().nodes(2).queue("team").job("a", 1, 8, on="n0").job("b", 2, 8)
    cluster = scene.cluster()
    assert cluster.schedule is not None
    changes = [AddNodes(count=1, gpus=8), DrainNode(node="n0"), SetQuota(queue="team", gpus=4)]
    assert whatif(cluster, changes) == whatif(cluster, changes)
    again = plan(cluster.schedule.state, cluster.schedule.config, cluster.schedule.plan.now)
    assert again.decisions == cluster.schedule.plan.decisions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (SetQuota(queue="nope", gpus=1), "there is no queue nope; there are team"),
        (DrainNode(node="nope"), "there is no node nope; there are n0"),
        (RemoveNode(node="nope"), "there is no node nope; there are n0"),
        (SetPriority(workload="job/nope", priority="1"), "there is no gang of job/nope"),
        (SetPriority(workload="job/a", priority="huge"), "neither a number nor a PriorityClass"),
        (SetConfig(config={"actions": "dance"}), "action dance is unknown"),
        (AddNodes(count=0, gpus=8), "at least one node"),
        (Create(objects=[{"kind": "Job"}]), "workloads cannot be tried here"),
    ],
)
def test_unknown_names_are_refused(change: Change, message: str) -> None:
    """An error says what there is instead."""
    with pytest.raises(ChangeError, match=message):
        ask(Scene().nodes(1).queue("team").job("a"), change)


def test_a_request_is_json_with_typed_changes() -> None:
    """The dashboard sends what the command line builds."""
    body = (
        b'{"changes": [{"type": "addNodes", "count": 4, "gpus": 8}, {"type": "setQuota", "queue": "q", "gpus": null}]}'
    )
    assert read_request(body).changes == [AddNodes(count=4, gpus=8), SetQuota(queue="q", gpus=None)]
    with pytest.raises(ChangeError, match=r"missing required field `node`"):
        read_request(b'{"changes": [{"type": "drainNode"}]}')


def test_a_request_may_bring_a_manifest() -> None:
    """The objects of pasted YAML, those of a List too; what is no YAML or empty is told."""
    body = {"changes": [{"type": "create", "manifest": "kind: List\nitems: [{kind: Job}]\n---\nkind: Pod\n"}]}
    assert read_request(msgspec.json.encode(body)).changes == [Create(objects=[{"kind": "Job"}, {"kind": "Pod"}])]
    for manifest, message in (("a: [", "not YAML: line"), ("# nothing", "no object in it")):
        body = {"changes": [{"type": "create", "manifest": manifest}]}
        with pytest.raises(ChangeError, match=message):
            read_request(msgspec.json.encode(body))
