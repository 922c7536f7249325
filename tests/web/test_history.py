"""The time machine: any moment of the last hour, within bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spinney.answers.model import Queue
from spinney.web.board import Board, merge
from spinney.web.history import History
from spinney.web.rows import Table
from tests.web.rows import AT, queue, table, workload

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def gpus(tables: Table | None) -> float | None:
    """What queue q used."""
    assert tables is not None
    row = tables["queues"]["q"]
    assert isinstance(row, Queue)
    return row.allocated.gpu


def recorded(moments: int, minutes: int = 60, megabytes: int = 64) -> History:
    """A record of a queue that uses one GPU more every ten seconds."""
    board, history = Board("e"), History(minutes, megabytes)
    for count in range(moments):
        board.update(merge(board.table, table(queue("q", gpus=float(count)), workload("a"))), AT)
        history.record(START + timedelta(seconds=10 * count), board.table)
    return history


def test_every_moment_comes_back_as_it_was() -> None:
    """Between two records the earlier one holds; workloads that did not change are there as well."""
    history = recorded(100)
    for count in (0, 1, 29, 30, 31, 60, 99):
        assert gpus(history.at(START + timedelta(seconds=10 * count))) == count
        tables = history.at(START + timedelta(seconds=10 * count + 9))
        assert gpus(tables) == count
        assert tables is not None
        assert list(tables["workloads"]) == ["default/job.batch/a"]


def test_a_row_that_went_is_gone_afterwards_and_there_before() -> None:
    """Removals are recorded."""
    board, history = Board("e"), History(60, 64)
    board.update(merge(board.table, table(workload("a"))), AT)
    history.record(START, board.table)
    board.update(merge(board.table, table()), AT)
    history.record(START + timedelta(seconds=10), board.table)

    before, after = history.at(START), history.at(START + timedelta(seconds=10))
    assert before is not None
    assert after is not None
    assert len(before["workloads"]) == 1
    assert len(after["workloads"]) == 0


def test_what_is_too_old_is_forgotten() -> None:
    """And a moment before the first record is not known."""
    history = recorded(200, minutes=10)

    assert history.at(START) is None
    assert gpus(history.at(START + timedelta(seconds=1990))) == 199
    assert history.moments[0] >= START + timedelta(seconds=1390)
    assert len(history.samples) <= 61


def test_the_record_stays_within_its_size() -> None:
    """However much changes: the oldest goes first."""
    board, history = Board("e"), History(600, 1)
    for count in range(400):
        rows = [workload(f"{count}-{index}-{'x' * 40}{index * count}") for index in range(40)]
        board.update(merge(board.table, table(*rows)), AT)
        history.record(START + timedelta(seconds=10 * count), board.table)

    assert history.size <= 1 << 20
    assert history.at(START + timedelta(seconds=3990)) is not None


def test_changes_that_come_quickly_are_recorded_together() -> None:
    """Not more than one record in two seconds."""
    board, history = Board("e"), History(60, 64)
    for count in range(10):
        board.update(merge(board.table, table(queue("q", gpus=float(count)))), AT)
        history.record(START + timedelta(milliseconds=500 * count), board.table)

    assert len(history.moments) == 3
