"""What a what-if tells is what then happens, on random clusters in virtual time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spinney.answers.whatif.changes import AddNodes, Change, DrainNode, RemoveNode, SetLimit, SetPriority, SetQuota
from tests.answers.agreement import Arena, Situation, Work, arena

# Seconds of work, which a busy machine may stretch beyond the usual limit.
pytestmark = pytest.mark.timeout(1800)

QUEUES = ("a", "b", "c")
PRIORITIES = ("train", "build-preemptible", "build")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Arena]:
    with arena() as running:
        yield running


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Small clusters that are about full, with one to three changes at once."""
    sizes = st.sampled_from((4, 8))
    nodes = draw(st.lists(sizes, min_size=1, max_size=4))
    names = QUEUES[: draw(st.integers(1, 3))]
    quotas = st.sampled_from((0.0, 4.0, 8.0))
    queues = [(name, draw(quotas), draw(st.sampled_from((-1.0, -1.0, 8.0, 16.0)))) for name in names]

    def work(name: str) -> Work:
        return Work(
            name,
            draw(st.integers(1, 3)),
            draw(st.sampled_from((1, 2, 4, 8))),
            draw(st.sampled_from(names)),
            draw(st.sampled_from(PRIORITIES)),
        )

    jobs = [work(f"j{number}") for number in range(draw(st.integers(1, 6)))]
    here = st.sampled_from([f"n{number}" for number in range(len(nodes))])
    queue, gpus = st.sampled_from(names), st.sampled_from((0.0, 4.0, 8.0, 16.0))
    kinds: list[st.SearchStrategy[Change | Work]] = [
        st.builds(AddNodes, count=st.integers(1, 2), gpus=st.just(nodes[0])),
        st.builds(DrainNode, node=here),
        st.builds(RemoveNode, node=here),
        st.builds(SetQuota, queue=queue, gpus=gpus),
        st.builds(SetLimit, queue=queue, gpus=gpus),
        st.builds(
            SetPriority,
            workload=st.sampled_from([each.name for each in jobs]),
            priority=st.sampled_from(PRIORITIES),
        ),
        st.just(work("new")),
    ]
    return Situation(nodes, queues, jobs, [draw(draw(st.sampled_from(kinds)))])


# A node is drained, and those who waited behind its pod's queue limit go before the pod that takes its place.
WAITING_BEHIND_A_LIMIT = Situation(
    [4, 8, 8, 4],
    [("a", 0.0, 8.0), ("b", 0.0, -1.0)],
    [
        Work("j0", 2, 1, "b", "train"),
        Work("j1", 1, 2, "b", "train"),
        Work("j2", 1, 8, "a", "train"),
        Work("j3", 3, 1, "a", "train"),
        Work("j4", 1, 1, "a", "train"),
        Work("j5", 1, 1, "a", "train"),
    ],
    [DrainNode(node="n1")],
)

# A Job with a failure policy creates new pods when the evicted ones have ended. They do not take part while others are
# given their places; that they did chose the other of two equal nodes.
REPLACED_WHEN_ENDED = Situation(
    [8, 8],
    [("a", 0.0, -1.0), ("b", 0.0, -1.0)],
    [Work("j0", 2, 8, "a", "build-preemptible"), Work("j1", 3, 4, "a"), Work("j2", 1, 1, "a")],
    [Work("new", 1, 1, "b")],
)

# Without the drained node less is there to share: queue b holds more than its part, and gives back. The drained node
# counted, so nothing was told to be reclaimed.
A_DRAINED_NODE_IS_NOT_SHARED = Situation(
    [4, 8, 8],
    [("a", 0.0, -1.0), ("b", 0.0, -1.0)],
    [*(Work(f"j{number}", 1, 1, "a") for number in range(4)), Work("j4", 1, 8, "b"), Work("j5", 1, 8, "b")],
    [DrainNode(node="n0")],
)


@given(situation=situations())
@example(situation=A_DRAINED_NODE_IS_NOT_SHARED)
@example(situation=REPLACED_WHEN_ENDED)
@example(situation=WAITING_BEHIND_A_LIMIT)
def test_what_happens_is_what_was_told(cluster: Arena, situation: Situation) -> None:
    """The same pods go, and the same pods run on the same nodes afterwards."""
    foretold, happened, answer = cluster.run(cluster.compare(situation))
    assert foretold == happened, answer.text
