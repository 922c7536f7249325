"""The scheduler's state, checked after every step: slow, and so for tests only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.transaction import Transaction
from spinney.scheduler.state.validation import validate_state

CHANGES = ("set_node", "drop_node", "set_job", "drop_job", "set_task", "drop_task", "set_queue", "drop_queue")
MOVES = ("bind", "bind_all", "wait", "wait_all", "evict", "evict_all", "cancel_eviction", "delay", "settle", "rollback")


@contextmanager
def validated_changes() -> Iterator[None]:
    """Check a state after every node, job, task and queue that comes, changes or goes."""
    with _checked(State, CHANGES, validate_state):
        yield


@contextmanager
def validated_moves(moves: tuple[str, ...] = MOVES) -> Iterator[None]:
    """Check a state after every move of a cycle, or after some kinds of them."""
    with _checked(Transaction, moves, lambda transaction: validate_state(transaction.state, transaction.done)):
        yield


@contextmanager
def _checked(owner: type[Any], names: tuple[str, ...], check: Callable[[Any], None]) -> Iterator[None]:
    originals = {name: getattr(owner, name) for name in names}
    for name, method in originals.items():
        setattr(owner, name, _with_check(method, check))
    try:
        yield
    finally:
        for name, method in originals.items():
            setattr(owner, name, method)


def _with_check(method: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    @wraps(method)
    def checked(self: Any, *args: Any) -> Any:
        answer = method(self, *args)
        check(self)
        return answer

    return checked
