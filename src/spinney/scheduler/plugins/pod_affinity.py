"""Rules between pods: affinity, anti-affinity, spreading and host ports; evicted tasks do not count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scores
from spinney.scheduler.plugins.present_tasks import is_present, selected
from spinney.scheduler.plugins.topology_spread import within_skew
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import EVERY_ADDRESS
from spinney.scheduler.state.tasks import Task

# As much as a whole step of topology and sharing together: what pods prefer of each other comes first.
PREFERENCE = 1_000_000.0


def mask(cycle: Cycle, task: Task, rows: Rows) -> tuple[Mask, Refusal] | None:
    """Nodes where a task breaks no rule of its own and none of others."""
    rules, state = task.cls.constraints, cycle.state
    plain = not (rules.affinity or rules.anti_affinity or rules.spread or rules.host_ports)
    if plain and not state.repelling:
        return None
    result = np.ones(len(rows), dtype=np.bool_)
    for term in rules.affinity:
        matching = list(selected(cycle, term, task))
        # The first pod of a group that wants to be near its own kind may start anywhere that has the label.
        if not matching and term.matches_task(task.spec, task.spec.namespace):
            result &= cycle.nodes.codes(term.topology_key)[rows] >= 0
        else:
            result &= _near(cycle, term.topology_key, matching, rows)
    for term in rules.anti_affinity:
        result &= ~_near(cycle, term.topology_key, selected(cycle, term, task), rows)
    for other in state.repelling.values():
        if other is task or not is_present(cycle, other):
            continue
        for term in other.cls.constraints.anti_affinity:
            if term.matches_task(task.spec, other.spec.namespace):
                result &= ~_near(cycle, term.topology_key, [other], rows)
    for spread in rules.spread:
        if spread.hard:
            result &= within_skew(cycle, spread, task, rows)
    if rules.host_ports:
        result &= _free_ports(cycle, task, rows)
    return result, Refusal(Code.POD_AFFINITY)


def preference_scores(cycle: Cycle, task: Task, rows: Rows) -> Scores | None:
    """Score nodes by preferred affinity and anti-affinity, of the task and of pods on nodes."""
    liked = list(_preferred_terms(cycle, task))
    if not liked:
        return None
    total = np.zeros(len(rows))
    for weight, key, row in liked:
        codes = cycle.nodes.codes(key)
        if codes[row] >= 0:
            total += np.where(codes[rows] == codes[row], weight, 0.0)
    return PREFERENCE * total


def _preferred_terms(cycle: Cycle, task: Task) -> Iterator[tuple[float, str, int]]:
    """Yield weight, topology key and node of every preferred term between a task and a pod on a node."""
    for weight, term in task.cls.constraints.preferred:
        for other in selected(cycle, term, task):
            yield weight, term.topology_key, other.node
    for other in cycle.state.preferring.values():
        if other is task or not is_present(cycle, other):
            continue
        for weight, term in other.cls.constraints.preferred:
            if term.matches_task(task.spec, other.spec.namespace):
                yield weight, term.topology_key, other.node


def _near(cycle: Cycle, key: str, tasks: Iterable[Task], rows: Rows) -> Mask:
    """Nodes in the same domain as any of the tasks."""
    codes = cycle.nodes.codes(key)
    domains = {int(codes[task.node]) for task in tasks} - {-1}
    return np.isin(codes[rows], list(domains)) if domains else np.zeros(len(rows), dtype=np.bool_)


def _free_ports(cycle: Cycle, task: Task, rows: Rows) -> Mask:
    ports = task.cls.constraints.host_ports
    taken = [
        other.node
        for other in cycle.state.with_ports.values()
        if other is not task
        and is_present(cycle, other)
        and any(_clash(port, taken_port) for port in ports for taken_port in other.cls.constraints.host_ports)
    ]
    return ~np.isin(rows, taken)


def _clash(port: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same_address = port[0] == other[0] or EVERY_ADDRESS in (port[0], other[0])
    return same_address and port[1:] == other[1:]
