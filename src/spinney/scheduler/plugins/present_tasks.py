"""The tasks that rules between pods look at: those on nodes, without evicted ones."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import PodTerm
from spinney.scheduler.state.tasks import Task


def selected(cycle: Cycle, term: PodTerm, task: Task) -> Iterator[Task]:
    """Yield other tasks on nodes that a term of a task selects."""
    for other in cycle.state.selection(term, task.spec.namespace).values():
        if other is not task and is_present(cycle, other):
            yield other


def is_present(cycle: Cycle, task: Task) -> bool:
    """Whether a task is on a node and stays there."""
    here = task.node >= 0 and task.status & st.ACTIVE != 0
    return here and all(rule(task) for rule in cycle.hooks.presence)
