"""The refusal that is quoted on a gang is the one that says why."""

from spinney.api.refusals import most_telling

WAITS = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"
NO_ROOM = "0/93 nodes are available: 2 Insufficient nvidia.com/gpu, 91 node(s) didn't match Pod's node affinity."


def test_a_refusal_that_names_nodes_wins_over_pods_that_only_wait_for_it() -> None:
    """kube-scheduler 1.36 refuses one pod for want of room, and lets the others of its gang wait."""
    assert most_telling([WAITS, WAITS, NO_ROOM]) == NO_ROOM


def test_otherwise_the_most_common_refusal() -> None:
    """Schedulers that do not speak of nodes are quoted as they speak of most pods."""
    assert most_telling(["queue is full", "", WAITS, WAITS]) == WAITS
    assert most_telling([""]) == ""
