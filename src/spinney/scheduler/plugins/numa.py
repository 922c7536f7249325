"""NUMA alignment (opt-in): pods that a node's topology manager would refuse are not sent there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Score, Scores
from spinney.scheduler.state import status as st
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import Amounts, Numa, NumaZone, ZoneShares
from spinney.scheduler.state.tasks import UNSERVED, Task

SCORE = 100.0
STRICT = ("single-numa-node", "restricted")
SCORED = (*STRICT, "best-effort")
# What a task has taken of which zone, by zone index.
Taken = dict[int, dict[str, float]]


def install(cycle: Cycle, plugin: PluginConfig) -> None:
    """Refuse nodes that cannot align a task, prefer those that need fewer zones, and track what zones have left."""
    ignored = {name.strip() for name in plugin.arguments.get("ignoreList", "").split(",") if name.strip()}
    ledger = Ledger(cycle, ignored)
    cycle.hooks.task_masks.append(ledger.mask)
    cycle.hooks.scores.append(Score(ledger.score))
    cycle.hooks.before_placement.append(ledger.assign)
    cycle.hooks.zone_shares.append(ledger.shares)
    cycle.transaction.observers.append(ledger.moved)


class Ledger:
    """What every NUMA zone has left, and the zones of aligned tasks."""

    def __init__(self, cycle: Cycle, ignored: set[str]) -> None:
        self.cycle = cycle
        self.ignored = ignored
        self.numa: dict[int, Numa] = {}
        self.left: dict[tuple[int, int], dict[str, float]] = {}
        for row in (int(row) for row in cycle.all_rows):
            numa = cycle.nodes.spec(row).numa
            if numa is None or not numa.zones:
                continue
            self.numa[row] = numa = Numa(numa.policy, numa.scope, tuple(sorted(numa.zones, key=_zone_order)))
            for index, zone in enumerate(numa.zones):
                self.left[row, index] = dict(zone.allocatable if numa.policy in SCORED else zone.available)
        self.widest = max((len(numa.zones) for numa in self.numa.values()), default=0)
        for task in cycle.state.tasks.values():
            task.zones = self._recorded(task)
            if task.status & st.ACTIVE:
                self._book(task, -1)

    def _recorded(self, task: Task) -> Taken:
        numa = self.numa.get(task.node)
        if numa is None or numa.policy not in SCORED:
            return {}
        index = {zone.id: number for number, zone in enumerate(numa.zones)}
        if any(zone not in index for zone, _ in task.spec.numa_zones):
            # A record that names a zone which is not there says nothing about the others either.
            return {}
        return {index[zone]: dict(amounts) for zone, amounts in task.spec.numa_zones}

    def mask(self, task: Task, rows: Rows) -> tuple[Mask, Refusal] | None:
        """Return the nodes that admit a task."""
        if not self.numa:
            return None
        allowed = [self._solve(task, int(row)) is not None if self._strict(int(row)) else True for row in rows]
        return np.array(allowed, dtype=np.bool_), Refusal(Code.NUMA)

    def _strict(self, row: int) -> bool:
        numa = self.numa.get(row)
        return numa is not None and numa.policy in STRICT

    def score(self, task: Task, rows: Rows) -> Scores | None:
        """More for nodes where the task spans fewer zones."""
        if not self.widest or not any(self._aware(task, numa) for numa in self.numa.values()):
            return None
        return np.array([self._score_one(task, int(row)) for row in rows])

    def _score_one(self, task: Task, row: int) -> float:
        numa = self.numa.get(row)
        if numa is None:
            return SCORE / self.widest
        if numa.policy not in SCORED or not self._aware(task, numa):
            return SCORE / len(numa.zones)
        taken = self._solve(task, row)
        return 0.0 if taken is None else SCORE / max(1, len(taken))

    def assign(self, task: Task, row: int) -> None:
        """Choose a task's zones before it is moved to a node."""
        self.cycle.transaction.set(task, "zones", self._solve(task, row) or {})

    def shares(self, task: Task, row: int) -> ZoneShares:
        """What a task on a node is expected to get of which zone, by name."""
        names = {zone: self.numa[row].zones[zone].id for zone in task.zones}
        return tuple((names[zone], tuple(sorted(shares.items()))) for zone, shares in sorted(task.zones.items()))

    def moved(self, task: Task, row: int, sign: int) -> None:
        """Count a task's zones when it takes a node or leaves it."""
        if task.zones and row in self.numa:
            self._book(task, -sign, row)

    def _book(self, task: Task, sign: int, row: int = -1) -> None:
        row = task.node if row < 0 else row
        for zone, amounts in task.zones.items():
            cell = self.left.get((row, zone))
            if cell is None:
                continue
            left = {name: amount + sign * amounts.get(name, 0.0) for name, amount in cell.items()}
            self.cycle.transaction.put(self.left, (row, zone), left)

    def _aware(self, task: Task, numa: Numa) -> list[str]:
        """Resources of a node that are aligned for a task: cpu and memory only for guaranteed pods."""
        names = sorted({name for zone in numa.zones for name in zone.allocatable} - self.ignored)
        wanted = [name for name in names if self._wants(task, name)]
        devices = [name for name in wanted if not _by_class(name)]
        if task.spec.guaranteed:
            return wanted
        return devices

    def _wants(self, task: Task, name: str) -> bool:
        column = self.cycle.state.columns.find(name)
        return column != UNSERVED and bool(task.cls.request[column] > 0)

    def _solve(self, task: Task, row: int) -> Taken | None:
        """The zones a task would get and what it takes of each; None if the node would refuse it."""
        numa = self.numa.get(row)
        if numa is None or numa.policy not in SCORED:
            return {}
        names = self._aware(task, numa)
        if not names:
            return {}
        taken: Taken = {}
        for request in self._requests(task, numa, names):
            left = [self._left(row, zone, taken) for zone in range(len(numa.zones))]
            zones = _fit(numa, request, left)
            if zones is None:
                return None
            _draw(request, zones, left, taken)
        return taken

    def _requests(self, task: Task, numa: Numa, names: Iterable[str]) -> list[dict[str, float]]:
        columns = self.cycle.state.columns
        whole = {name: float(task.cls.request[columns.find(name)]) for name in names}
        containers = task.spec.containers if numa.scope == "container" else ()
        requests = [{name: float(dict(amounts).get(name, 0.0)) for name in names} for amounts in containers] or [whole]
        # Parts of a core are not pinned, and so not aligned.
        return [{n: a for n, a in amounts.items() if not (n == "cpu" and a % 1000)} for amounts in requests]

    def _left(self, row: int, zone: int, taken: Taken) -> dict[str, float]:
        used = taken.get(zone, {})
        return {name: amount - used.get(name, 0.0) for name, amount in self.left[row, zone].items()}


def _by_class(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _zone_order(zone: NumaZone) -> tuple[bool, int, str, str]:
    number = zone.id[len(zone.id.rstrip("0123456789")) :]
    # Compared as texts of equal length: a number of thousands of digits cannot be read.
    return (not number, len(number.lstrip("0")), number.lstrip("0"), zone.id)


def _fit(numa: Numa, request: dict[str, float], left: list[Amounts] | list[dict[str, float]]) -> list[int] | None:
    """The zones that a request gets under a policy, or None."""
    needs = {name: amount for name, amount in request.items() if amount > 0}
    if numa.policy == "best-effort":
        return _greedy(needs, left)
    width = 1
    if numa.policy == "restricted":
        widths = {_least_width(numa, name, amount) for name, amount in needs.items()}
        if len(widths) > 1 or 0 in widths:
            return None
        width = widths.pop() if widths else 0
    for zones in combinations(range(len(left)), width):
        if all(sum(left[zone].get(name, 0.0) for zone in zones) >= amount for name, amount in needs.items()):
            return list(zones)
    return None


def _least_width(numa: Numa, name: str, amount: float) -> int:
    """How many of the largest zones hold an amount when empty; 0 if all do not."""
    total = 0.0
    for count, size in enumerate(sorted((zone.allocatable.get(name, 0.0) for zone in numa.zones), reverse=True), 1):
        total += size
        if total >= amount:
            return count
    return 0


def _greedy(needs: dict[str, float], left: list[Amounts] | list[dict[str, float]]) -> list[int] | None:
    remaining, zones = dict(needs), list[int]()
    while any(amount > 0 for amount in remaining.values()):
        covers = {
            zone: sum(min(amount, left[zone].get(name, 0.0)) for name, amount in remaining.items() if amount > 0)
            for zone in range(len(left))
            if zone not in zones
        }
        best = max(covers, key=lambda zone: (covers[zone], -zone), default=-1)
        if best < 0 or covers[best] <= 0:
            return None
        zones.append(best)
        remaining = {name: amount - left[best].get(name, 0.0) for name, amount in remaining.items()}
    return zones


def _draw(request: dict[str, float], zones: list[int], left: list[dict[str, float]], taken: Taken) -> None:
    for name, amount in request.items():
        remaining = amount
        for zone in zones:
            take = min(remaining, left[zone].get(name, 0.0))
            if take > 0:
                cell = taken.setdefault(zone, {})
                cell[name] = cell.get(name, 0.0) + take
                remaining -= take
