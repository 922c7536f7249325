"""Topology spread constraints: tasks that match lie evenly over the domains of a node label, required or preferred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.api.affinity import tolerates
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scores
from spinney.scheduler.plugins.present_tasks import selected
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.specs import Constraints, NodeSpec, PodTerm, SpreadTerm
from spinney.scheduler.state.tasks import Task


def within_skew(cycle: Cycle, spread: SpreadTerm, task: Task, rows: Rows) -> Mask:
    """Nodes whose domain would not get more than `max_skew` tasks above the emptiest one."""
    codes, homes = cycle.nodes.codes(spread.topology_key), _homes(cycle, spread, task)
    counts = _counts(cycle, spread, task, homes)
    domains = np.unique(codes[homes])
    least = 0 if len(domains) < spread.min_domains else counts[domains].min(initial=np.inf)
    own = _term(spread).matches_task(task.spec, task.spec.namespace)
    here = codes[rows]
    return (here >= 0) & (counts[here] + own - least <= spread.max_skew)


def spread_scores(cycle: Cycle, task: Task, rows: Rows) -> Scores | None:
    """1 for nodes in the domains that have the fewest of the tasks to be spread, 0 for those with the most."""
    preferred = [spread for spread in task.cls.constraints.spread if not spread.hard]
    if not preferred:
        return None
    total = np.zeros(len(rows))
    for spread in preferred:
        here = cycle.nodes.codes(spread.topology_key)[rows]
        counts = _counts(cycle, spread, task, _homes(cycle, spread, task))
        # A node without the label is in no domain: as good as the fullest one.
        total += np.where(here >= 0, counts[here], counts.max() + 1)
    least, most = total.min(initial=np.inf), total.max(initial=0.0)
    return (most - total) / (most - least) if most > least else None


def _term(spread: SpreadTerm) -> PodTerm:
    return PodTerm(spread.topology_key, spread.matches)


def _counts(cycle: Cycle, spread: SpreadTerm, task: Task, homes: Rows) -> NDArray[np.float64]:
    """How many tasks that match each domain has, on nodes that count."""
    codes = cycle.nodes.codes(spread.topology_key)
    counted = np.zeros(len(cycle.nodes.live), dtype=np.bool_)
    counted[homes] = True
    counts = np.zeros(int(codes.max(initial=0)) + 1)
    for other in selected(cycle, _term(spread), task):
        if counted[other.node]:
            counts[codes[other.node]] += 1
    return counts


def _homes(cycle: Cycle, spread: SpreadTerm, task: Task) -> Rows:
    """The nodes whose domains are to be even: in a domain of every constraint, and as the policies say."""
    rules, rows = task.cls.constraints, cycle.all_rows
    for term in rules.spread:
        if term.hard == spread.hard:
            rows = rows[cycle.nodes.codes(term.topology_key)[rows] >= 0]
    checked = spread.selected_only and (rules.node_selector or rules.node_affinity is not None)
    if not checked and not spread.tolerated_only:
        return rows
    key, spread_over = (task.cls.id, spread), cycle.get(_SpreadNodes).by_term
    if key not in spread_over:
        spread_over[key] = rows[[_counts_in(cycle.nodes.spec(row), spread, rules) for row in rows]]
    return spread_over[key]


class _SpreadNodes:
    """Nodes that a class is to be spread over, by class and constraint."""

    def __init__(self, _: Cycle) -> None:
        self.by_term: dict[tuple[int, SpreadTerm], Rows] = {}


def _counts_in(node: NodeSpec, spread: SpreadTerm, rules: Constraints) -> bool:
    if spread.tolerated_only and not all(
        tolerates(rules.tolerations, taint) for taint in node.taints if taint.effect != "PreferNoSchedule"
    ):
        return False
    return not spread.selected_only or rules.selects(node)
