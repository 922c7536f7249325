"""Topology constraints: which domains hold a group of tasks, the fullest first, and which nodes inside are best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Group, Score, Scores
from spinney.scheduler.place.bulk_placement import capacity
from spinney.scheduler.plugins.reuse import Reuse
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.problems import NoDomain, Problem, UnknownTopology
from spinney.scheduler.state.specs import Constraint
from spinney.scheduler.state.tasks import CPU, GPU, MEMORY, PODS, Task, Vector
from spinney.scheduler.state.topology_domains import ROOT, Domains, load

STEP = 100_000.0
# The name of the domain that holds all.
EVERYWHERE = "the cluster"


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Split node sets by domain, and score nodes for the preferred level."""
    plugin = _Topology(cycle)
    cycle.hooks.constrained_subsets.append(plugin.subsets)
    cycle.hooks.scores.append(Score(plugin.score, "steady"))
    cycle.hooks.before_job.append(lambda _: plugin.scores.clear())


@dataclass(slots=True)
class _View:
    """What one group of tasks sees of a topology: load and room of every domain, by level."""

    domains: Domains
    base: tuple[int, int]
    count: int
    loads: dict[int, Vector]
    room: dict[int, Vector] | None

    def fits(self, level: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if level < self.base[0]:
            # Above the common domain nothing was summed up: only a request for nothing fits.
            return np.asarray(self.loads[level] <= 1)
        return np.asarray(self.loads[level] <= 1 if self.room is None else self.room[level] >= self.count)


class _Topology:
    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        # Node scores of the preferred level, by name of the group that prefers it.
        self.scores: dict[str, Scores] = {}

    def score(self, task: Task, rows: Rows) -> Scores | None:
        if not self.scores or task.job is None:
            return None
        tree = task.job.tree
        podset = tree.podsets[task.podset]
        scores = self.scores.get(podset.name)
        parent = podset.parent
        while scores is None and parent >= 0:
            scores = self.scores.get(tree.sets[parent].name)
            parent = tree.sets[parent].parent
        return None if scores is None else scores[rows]

    def subsets(self, group: Group, rows: Rows) -> Iterable[Rows]:
        gang, name, constraint, tasks = group.gang, group.name, group.constraint, group.tasks
        if constraint is None or not constraint.topology or not tasks:
            return [rows]
        domains = self.cycle.state.domains(constraint.topology)
        if domains is None:
            self._problem(gang, UnknownTopology(constraint.topology))
            return []
        required = domains.level(constraint.required) if constraint.required else ROOT
        preferred = domains.level(constraint.preferred) if constraint.preferred else ROOT
        if required < 0 or preferred < 0 or (required == ROOT and preferred == ROOT):
            self._problem(gang, UnknownTopology(constraint.topology, constraint.required or constraint.preferred))
            return []
        valid = rows[domains.member[rows]]
        base = domains.common(valid, preferred or required)
        view = self._view(domains, base, tasks)
        if not view.fits(base[0])[base[1]]:
            self._problem(gang, self._no_domain(group, constraint, view, tasks, self._short(view)))
            return []
        depth = preferred or required
        order = self._sorted(view, depth)
        if preferred:
            self.scores[name] = self._node_scores(domains, order.get(preferred, []), preferred)
        sets = self._candidates(view, group, (required, depth), order)
        if not sets:
            self._problem(gang, self._no_domain(group, constraint, view, tasks))
        return (valid[domains.codes[level, valid] == code] for level, code in sets)

    def _no_domain(
        self, group: Group, constraint: Constraint, view: _View, tasks: list[Task], short: str = ""
    ) -> NoDomain:
        spec, domains = group.gang.job.spec, view.domains
        best, domain, most = -1, "", -1
        # If all nodes are in one domain below the required level, that domain is reported.
        level = max(domains.level(constraint.required) if constraint.required else ROOT, view.base[0])
        if view.room is not None and not len(view.room[level]):
            best = most = 0
        elif view.room is not None:
            code = int(np.argmax(view.room[level]))
            best, domain = int(view.room[level][code]), domains.ids[level][code] or EVERYWHERE
            rows = self._rows(domains, view.base)
            empty = self._accommodation(self.cycle.nodes.allocatable[rows], tasks)
            most = int(domains.sums(rows, empty, level).max())
        job = f"{spec.namespace}/{spec.name or spec.key}"
        return NoDomain(job, constraint, group.name, view.count, best, domain, most, short)

    def _short(self, view: _View) -> str:
        level, code = view.base
        return view.domains.ids[level][code] if level else EVERYWHERE

    def _problem(self, gang: Gang, problem: Problem) -> None:
        self.cycle.result.add_problem(gang.job, problem)

    def _view(self, domains: Domains, base: tuple[int, int], tasks: list[Task]) -> _View:
        cycle = self.cycle
        rows = self._rows(domains, base)
        spare = cycle.nodes.idle[rows] + cycle.nodes.releasing[rows]
        request = sum((task.cls.request for task in tasks), np.zeros(spare.shape[1]))
        levels = range(base[0], len(domains.labels))
        loads = {level: load(request, domains.sums(rows, spare, level)) for level in levels}
        for level in range(base[0]):
            loads[level] = load(request, np.zeros((len(domains.ids[level]), len(request))))
        room = None
        if _alike(tasks):
            if 0 < np.max([task.cls.request[GPU] for task in tasks]) < 1:
                spare[:, GPU] += [cycle.state.gpus.available_parts(int(row)) for row in rows]
            counts = self._accommodation(spare, tasks)
            room = {level: domains.sums(rows, counts, level) for level in levels}
        return _View(domains, base, len(tasks), loads, room)

    def _rows(self, domains: Domains, base: tuple[int, int]) -> Rows:
        """The nodes of one domain."""
        rows = self.cycle.all_rows
        inside: Rows = rows[domains.codes[base[0], rows] == base[1]]
        return inside

    def _accommodation(self, spare: Vector, tasks: list[Task]) -> Vector:
        """How many tasks as large as the largest each node holds."""
        largest = np.max([task.cls.request for task in tasks], axis=0)
        others = largest.copy()
        others[PODS] = 0
        if not others.any():
            return np.full(len(spare), float(len(tasks)))
        return capacity(largest, spare)

    def _sorted(self, view: _View, depth: int) -> dict[int, list[int]]:
        """Domains under the common one by level, the fullest first, children beside their parents."""
        domains = view.domains
        level, code = view.base
        order = {level: [code]}
        while level < depth:
            level += 1
            children: dict[int, list[int]] = {}
            for number, parent in enumerate(domains.parent[level]):
                children.setdefault(parent, []).append(number)
            loads, ids = view.loads[level], domains.ids[level]
            order[level] = [
                child
                for parent in order[level - 1]
                for child in sorted(children.get(parent, ()), key=lambda code: (-loads[code], ids[code]))
            ]
        return order

    def _node_scores(self, domains: Domains, order: list[int], preferred: int) -> Scores:
        """The emptiest sub-domain scores highest, so that the others stay whole for whom they fit."""
        by_domain = np.full(len(domains.ids[preferred]) + 1, -np.inf)
        for position, code in enumerate(order):
            by_domain[code] = np.floor((position + 1) / len(order) * 10) * STEP
        scores: Scores = by_domain[domains.codes[preferred]]
        return scores

    def _candidates(
        self, view: _View, group: Group, levels: tuple[int, int], order: dict[int, list[int]]
    ) -> list[tuple[int, int]]:
        domains = view.domains
        required, depth = levels
        home = self._homes(domains, group.gang, group.leaves, required) if required else None
        domains_to_try: list[tuple[int, int]] = []
        for level in range(depth, required - 1, -1):
            fits = view.fits(level)
            for code in order.get(level, range(len(fits)) if level < view.base[0] else ()):
                if fits[code] and (home is None or self._above(domains, level, code, required) in home):
                    domains_to_try.append((level, code))
        reuse = self.cycle.get(Reuse)
        return self._reused_first(view, group, domains_to_try, reuse) if reuse.by_gang else domains_to_try

    def _reused_first(
        self, view: _View, group: Group, candidates: list[tuple[int, int]], reuse: Reuse
    ) -> list[tuple[int, int]]:
        """Of domains at one level, those that the gang has left first, and last those that need nodes others left."""
        domains, nodes = view.domains, self.cycle.nodes
        own, others = reuse.split(group.gang.job)
        counts = self._accommodation(nodes.idle[others] + nodes.releasing[others], group.tasks)

        def key(candidate: tuple[int, int]) -> tuple[int, bool, bool]:
            level, code = candidate
            kept = counts[domains.codes[level, others] == code].sum()
            short = view.room is not None and level in view.room and view.room[level][code] - kept < view.count
            return -level, code not in domains.codes[level, own], bool(short)

        return sorted(candidates, key=key)

    def _homes(self, domains: Domains, gang: Gang, leaves: list[int], required: int) -> set[int] | None:
        """Domains where the group already runs: the rest of it has to go there."""
        if not any(gang.active[leaf] for leaf in leaves):
            return None
        tasks = (task for leaf in leaves for task in gang.tasks[leaf].values() if task.status & st.ACTIVE)
        return {int(domains.codes[required, task.node]) for task in tasks if task.node >= 0}

    def _above(self, domains: Domains, level: int, code: int, required: int) -> int:
        while level > required:
            code = domains.parent[level][code]
            level -= 1
        return code


def _alike(tasks: list[Task]) -> bool:
    """Whether tasks use the same kinds of resources, so that nodes can be counted in tasks."""
    classes = {task.cls.id: task.cls for task in tasks}.values()
    if len({cls.gpus > 0 for cls in classes}) > 1:
        return False
    kinds = []
    for cls in classes:
        used = cls.request > 0
        used[[CPU, MEMORY, GPU]] = False
        kinds.append(tuple(used))
    return len(set(kinds)) == 1
