"""Every reason that nodes can have is a sentence, and what is missing has a remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.api.missing import Lack, Missing
from spinney.scheduler.state.problems import NodeRefusal, NoDomain, NoRoom, OverLimit
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import Constraint
from spinney.scheduler.why import texts
from spinney.scheduler.why.advice import advice, eviction_helps
from spinney.scheduler.why.blocker import sentence as sentence_of


def no_room(*refusals: NodeRefusal) -> NoRoom:
    """A task that three nodes refuse for each reason."""
    return NoRoom("default/a", "", 0, 1, False, False, tuple((refusal, 3) for refusal in refusals), needed=(0, 0, 1))


@pytest.mark.parametrize("code", Code)
def test_every_refusal_has_a_sentence_and_advice(code: Code) -> None:
    """The sentence is complete, and somebody can do something about it."""
    problem = no_room(Refusal(code, "subject", "detail"))
    assert "{" not in texts.message(problem).replace("{subject: detail}", "")
    assert texts.message(problem).startswith("Resources were not found for pod default/a due to: ")
    assert advice(problem)


def test_one_pod_beyond_the_minimum_was_to_get_room_for_three() -> None:
    """It starts alone: the minimum of its group concerns only a gang that has not started."""
    refusals = ((Refusal(Code.RESOURCE, "GPUs"), 2),)
    beyond = NoRoom("default/a", "", 0, 3, False, False, refusals, needed=(0, 0, 2))
    assert advice(beyond) == "free or add room for 1 more pod with 2 GPUs on one node"
    assert advice(replace(beyond, gang=True)).startswith("free or add room for 3 more pods")


@pytest.mark.parametrize("lack", Lack)
def test_what_is_missing_has_a_remedy(lack: Lack) -> None:
    """No eviction helps a pod that lacks something on every node."""
    problem = no_room(Missing(lack, "thing"))
    assert texts.refusal(Missing(lack, "thing")) == str(Missing(lack, "thing"))
    assert advice(problem)
    assert not eviction_helps(problem)


@pytest.mark.parametrize(
    ("refusal", "sentence"),
    [
        (Refusal(Code.RESOURCE, "gpu"), "node(s) didn't have enough resources: GPUs"),
        (Refusal(Code.RESOURCE, "example.com/nic"), "node(s) didn't have enough resources: example.com/nic"),
        (Refusal(Code.TAINT, "dedicated", "ml"), "node(s) had untolerated taint {dedicated: ml}"),
        (Refusal(Code.OTHER, "a {strange} rule"), "a {strange} rule"),
        (
            OverLimit("team", 2, 4.0, 4.0, (0.0, 0.0, 0.5)),
            "node does not have enough capacity. Reason: OverLimit, Details: team quota has reached the allowable "
            "limit of GPUs. Limit is 4 GPUs, currently 4 GPUs allocated and workload requested 0.5 GPUs",
        ),
    ],
)
def test_sentences(refusal: NodeRefusal, sentence: str) -> None:
    """The words are upstream's."""
    assert texts.refusal(refusal) == sentence


def test_eviction_helps_where_a_node_lacks_only_room() -> None:
    """Nodes that refuse the pod itself keep refusing it, whoever leaves."""
    assert eviction_helps(no_room(Refusal(Code.TAINT, "a"), Refusal(Code.RESOURCE, "gpu")))
    assert not eviction_helps(no_room(Refusal(Code.TAINT, "a"), Refusal(Code.NODE_UNSCHEDULABLE)))


def test_nobody_is_told_to_free_room_for_fewer_than_no_pods() -> None:
    """Another domain would hold a surplus pod, but not the gang that runs elsewhere: "free room for -1 more there"."""
    problem = NoDomain("job", Constraint("tree", "rack"), "decode", tasks=1, best=2, domain="rack-2", most=8)
    assert (
        sentence_of(problem)
        == "1 pod of decode must share one rack with the rest of the gang, and there is no room there"
    )
    relaxed = "or ask for rack as preferred instead of required"
    assert advice(problem) == f"free room for 1 pod in the rack where the rest of its gang is, {relaxed}"
