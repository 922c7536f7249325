"""What a user sees of rows: what kubectl would list for them, and nothing else."""

from __future__ import annotations

from msgspec.structs import replace

from spinney.answers.model import Eviction, Node, WorkloadRef, WorkloadTree
from spinney.api.meta import Resource
from spinney.web.rights import EVERYTHING, Scope
from spinney.web.rows import key_of
from spinney.web.visible import EVENTS, NODES, PODS, QUEUES, unread, visible, visible_tree
from tests.web.rows import event, node, queue, table, workload

JOBS = Resource("batch/v1", "Job", "jobs")
KINDS = {("batch/v1", "Job"): JOBS}
ROWS = table(workload("a", "mine"), workload("b", "theirs"), node("n", "mine", "theirs"), queue("q"), event("theirs"))


def names(kind: str, scope: Scope) -> list[str]:
    """The keys that a scope lets through."""
    return [key for key, _ in visible(ROWS[kind], scope, KINDS)]  # type: ignore[index]  # a kind


def test_workloads_need_both_their_kind_and_pods() -> None:
    """In their own namespace."""
    both = Scope(somewhere=frozenset({(JOBS, "mine"), (PODS, "mine")}))
    only_pods = Scope(everywhere=frozenset({PODS}))
    assert names("workloads", both) == ["mine/job.batch/a"]
    assert names("workloads", only_pods) == []
    assert len(names("workloads", EVERYTHING)) == 2


def test_a_kind_that_is_not_known_is_hidden() -> None:
    """Who cannot be asked about is not shown."""
    scope = Scope(everywhere=frozenset({PODS, JOBS}))
    assert [key for key, _ in visible(ROWS["workloads"], scope, {})] == []


def test_a_node_shows_only_pods_that_may_be_listed() -> None:
    """Nothing tells of the others: neither names nor the amounts that they use."""
    scope = Scope(everywhere=frozenset({NODES}), somewhere=frozenset({(PODS, "mine")}))
    (seen,) = (row for _, row in visible(ROWS["nodes"], scope, KINDS))
    assert isinstance(seen, Node)
    assert [[sharer.namespace for sharer in gpu.sharers] for gpu in seen.gpus] == [["mine"], [], []]
    assert [gpu.used for gpu in seen.gpus] == [1.0, 0, 0]
    assert (seen.pods, seen.allocated.gpu, seen.allocated.cpu) == (1, 1.0, None)


def test_without_rights_there_is_nothing_and_a_reason() -> None:
    """A list is never silently empty."""
    nobody = Scope()
    for kind in ("workloads", "nodes", "queues", "events"):
        assert names(kind, nobody) == []
        (missing,) = unread(kind, nobody, ["mine", "theirs"])  # type: ignore[arg-type]  # a kind
        assert missing.text.startswith("You may not list")


def test_queues_and_events_by_their_own_rights() -> None:
    """Events by namespace."""
    assert names("queues", Scope(everywhere=frozenset({QUEUES}))) == ["q"]
    assert len(names("events", Scope(somewhere=frozenset({(EVENTS, "theirs")})))) == 1
    assert names("events", Scope(somewhere=frozenset({(EVENTS, "mine")}))) == []


def test_an_eviction_names_whom_it_was_for_only_to_who_may_look_there() -> None:
    """Others see the queue that the place went to."""
    row = Eviction(
        at="2026-05-04T12:00:00Z",
        pod="mine/a",
        workload=None,
        queue="poor",
        by_workload=WorkloadRef(kind="Job", api_version="batch/v1", namespace="theirs", name="moon"),
        by_queue="rich",
        right="reclaim",
        text="Pod a was evicted by reclaim for theirs/pg-moon",
    )
    own = Scope(somewhere=frozenset({(EVENTS, "mine"), (PODS, "mine")}))
    both = Scope(everywhere=frozenset({PODS}), somewhere=frozenset({(EVENTS, "mine")}))
    for scope, named in ((own, False), (both, True)):
        (seen,) = (row_seen for _, row_seen in visible({"key": row}, scope, KINDS))
        assert isinstance(seen, Eviction)
        assert (seen.by_workload is not None, "moon" in seen.text, seen.by_queue) == (named, named, "rich")


def test_the_events_of_a_workload_were_shown_without_the_right_to_list_events() -> None:
    """On its own page, too; an eviction names whom it was for, and is left to the list of evictions."""
    ordinary, evicted = event("mine"), replace(event("mine", "Pod a was evicted for theirs/moon"), reason="Evict")
    tree = WorkloadTree(workload=workload("a", "mine"), events=[ordinary, evicted])
    in_mine = frozenset({(PODS, "mine"), (EVENTS, "mine")})
    assert visible_tree(tree, Scope(somewhere=frozenset({(PODS, "mine")}))).events == []
    assert visible_tree(tree, Scope(somewhere=in_mine)).events == [ordinary]
    assert visible_tree(tree, Scope(everywhere=frozenset({PODS, EVENTS}))).events == [ordinary, evicted]


def test_an_event_took_the_place_of_one_in_another_namespace() -> None:
    """Both stay, though they say the same of pods of one name at one moment."""
    mine, theirs = (replace(event(namespace), object="pod/a") for namespace in ("mine", "theirs"))
    assert key_of(mine) != key_of(theirs)
