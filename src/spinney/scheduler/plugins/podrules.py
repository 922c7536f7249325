"""Rules between pods: affinity, anti-affinity, spreading and host ports; what leaves in a trial no longer counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from spinney.scheduler import status as st
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.nodes import Mask, Rows
from spinney.scheduler.selectors import matches
from spinney.scheduler.specs import Constraints, PodTerm, SpreadTerm
from spinney.scheduler.tasks import Task


def mask(cycle: Cycle, task: Task, rows: Rows) -> tuple[Mask, str] | None:
    """Nodes where a task breaks no rule of its own and none of others."""
    rules = task.cls.constraints
    plain = not (rules.affinity or rules.anti_affinity or rules.spread or rules.host_ports)
    if plain and not cycle.state.repelling:
        return None
    result = np.ones(len(rows), dtype=np.bool_)
    labels = dict(rules.labels)
    others = [other for other in present(cycle) if other is not task]
    for term in rules.affinity:
        found = [other for other in others if _selected(term, rules.namespace, other)]
        # The first pod of a group that wants to be near its own kind may start anywhere that has the label.
        if not found and _term_matches(term, rules.namespace, labels, rules.namespace):
            result &= _having(cycle, term.topology_key, rows)
        else:
            result &= _near(cycle, term.topology_key, found, rows)
    for term in rules.anti_affinity:
        found = [other for other in others if _selected(term, rules.namespace, other)]
        result &= ~_near(cycle, term.topology_key, found, rows)
    for other in cycle.state.repelling.values():
        if other is task or not is_present(cycle, other):
            continue
        theirs = other.cls.constraints
        for term in theirs.anti_affinity:
            if _term_matches(term, theirs.namespace, labels, rules.namespace):
                result &= ~_near(cycle, term.topology_key, [other], rows)
    for spread in rules.spread:
        result &= _evenly(cycle, spread, rules, others, rows)
    if rules.host_ports:
        result &= _free_ports(cycle, rules, others, rows)
    return result, "node(s) didn't match pod affinity rules"


def present(cycle: Cycle) -> Iterable[Task]:
    """Tasks that are on a node and stay there."""
    return (task for task in cycle.state.tasks.values() if is_present(cycle, task))


def is_present(cycle: Cycle, task: Task) -> bool:
    """Whether a task is on a node and stays there."""
    here = task.node >= 0 and task.status & st.ACTIVE != 0
    return here and (cycle.staying is None or cycle.staying(task))


def _selected(term: PodTerm, namespace: str, other: Task) -> bool:
    rules = other.cls.constraints
    return _term_matches(term, namespace, dict(rules.labels), rules.namespace)


def _term_matches(term: PodTerm, owner: str, labels: Mapping[str, str], namespace: str) -> bool:
    if namespace not in (term.namespaces or (owner,)) and "*" not in term.namespaces:
        return False
    return bool(term.matches) and all(matches(match, labels) for match in term.matches)


def _near(cycle: Cycle, key: str, tasks: Iterable[Task], rows: Rows) -> Mask:
    """Nodes in the same domain as any of the tasks."""
    nodes = cycle.nodes
    domains = {nodes.spec(task.node).labels.get(key) for task in tasks} - {None}
    return np.array([nodes.spec(row).labels.get(key) in domains for row in rows], dtype=np.bool_)


def _having(cycle: Cycle, key: str, rows: Rows) -> Mask:
    return np.array([key in cycle.nodes.spec(row).labels for row in rows], dtype=np.bool_)


def _evenly(cycle: Cycle, spread: SpreadTerm, rules: Constraints, others: list[Task], rows: Rows) -> Mask:
    """Nodes whose domain would not get more than `max_skew` tasks above the emptiest one."""
    nodes, key = cycle.nodes, spread.topology_key
    counts = {nodes.spec(row).labels[key]: 0 for row in cycle.all_rows if key in nodes.spec(row).labels}
    for other in others:
        theirs = other.cls.constraints
        domain = nodes.spec(other.node).labels.get(key)
        if domain is None or theirs.namespace != rules.namespace:
            continue
        if all(matches(match, dict(theirs.labels)) for match in spread.matches):
            counts[domain] += 1
    least = 0 if len(counts) < spread.min_domains else min(counts.values(), default=0)
    own = all(matches(match, dict(rules.labels)) for match in spread.matches)
    good = {domain for domain, count in counts.items() if count + own - least <= spread.max_skew}
    return np.array([nodes.spec(row).labels.get(key) in good for row in rows], dtype=np.bool_)


def _free_ports(cycle: Cycle, rules: Constraints, others: list[Task], rows: Rows) -> Mask:
    taken = {
        other.node for other in others if any(_clash(one, two) for one in rules.host_ports for two in _ports(other))
    }
    return np.array([int(row) not in taken for row in rows], dtype=np.bool_)


def _ports(task: Task) -> tuple[tuple[str, str, int], ...]:
    return task.cls.constraints.host_ports


def _clash(one: tuple[str, str, int], two: tuple[str, str, int]) -> bool:
    same_address = one[0] == two[0] or "0.0.0.0" in (one[0], two[0])
    return same_address and one[1:] == two[1:]
