"""The board: what changed, for readers that come, go and fall behind."""

from __future__ import annotations

from spinney.web.board import Board, merge
from tests.web.rows import AT, node, queue, table, workload


def test_only_rows_that_differ_are_changes() -> None:
    """Equal rows keep their identity, so that nothing is sent or recorded twice."""
    board = Board("e")
    board.update(merge(board.table, table(workload("a"), workload("b"))), AT)
    before = board.table["workloads"]["default/job.batch/a"]

    delta = board.update(merge(board.table, table(workload("a"), workload("b", ready=0), node("n"))), AT)

    assert delta is not None
    assert list(delta.changed["workloads"]) == ["default/job.batch/b"]
    assert list(delta.changed["nodes"]) == ["n"]
    assert delta.removed == {}
    assert board.table["workloads"]["default/job.batch/a"] is before


def test_nothing_new_is_no_change() -> None:
    """The sequence number stays."""
    board = Board("e")
    board.update(merge(board.table, table(queue("q"))), AT)

    assert board.update(merge(board.table, table(queue("q"))), AT) is None
    assert board.tag == "e-1"


def test_a_reader_gets_what_it_missed_or_hears_that_it_is_too_late() -> None:
    """Changes are kept for a while; a number of the future is another process's."""
    board = Board("e")
    for count in range(300):
        board.update(merge(board.table, table(queue("q", gpus=float(count)))), AT)

    missed = board.since(298)
    assert missed is not None
    assert [delta.seq for delta in missed] == [299, 300]
    assert board.since(300) == []
    assert board.since(1) is None
    assert board.since(301) is None


def test_removed_rows_are_named() -> None:
    """With the row, so that only those hear of it who could see it."""
    board = Board("e")
    board.update(merge(board.table, table(workload("a"))), AT)

    delta = board.update(merge(board.table, table()), AT)

    assert delta is not None
    assert list(delta.removed["workloads"]) == ["default/job.batch/a"]
