"""The plan of one cycle: what to bind, what to evict, and why the rest waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from spinney.scheduler.actions import allocate, evict, reserve, stale_gangs
from spinney.scheduler.actions.blockers import add_blockers
from spinney.scheduler.config import (
    ALLOCATE,
    CONSOLIDATION,
    PREEMPT,
    RECLAIM,
    STALE_GANG_EVICTION,
    Config,
    ConfigError,
)
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.reservations import Reservations
from spinney.scheduler.plugins import registry, reuse
from spinney.scheduler.result import Searched, Turn
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.min_runtimes import MinRuntimes
from spinney.scheduler.state.problems import Problem
from spinney.scheduler.state.specs import ZoneShares
from spinney.scheduler.state.transaction import Move
from spinney.scheduler.stopwatch import Stopwatch

RUN: dict[str, Callable[[Cycle], None]] = {
    ALLOCATE: allocate.run,
    CONSOLIDATION: evict.consolidation,
    RECLAIM: evict.reclaim,
    PREEMPT: evict.preempt,
    STALE_GANG_EVICTION: stale_gangs.run,
}


class Decision(NamedTuple):
    """One thing to do: `bind` a task to a node, let it `wait` for a node, or `evict` it."""

    kind: str
    action: str
    task: str
    job: str
    node: str
    gpu_groups: tuple[str, ...] = ()
    # The gang that a victim is evicted for.
    beneficiary: str = ""
    # NUMA zones that a task is expected to get, with what it takes of each.
    zones: ZoneShares = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided in one cycle, at a moment."""

    now: float
    decisions: tuple[Decision, ...]
    problems: dict[str, list[Problem]] = field(default_factory=dict)
    # Jobs that became stale (since when) or recovered (None).
    staleness: dict[str, float | None] = field(default_factory=dict)
    last_start: dict[str, float] = field(default_factory=dict)
    fair_share: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    # Gangs in the order of their turn; empty without the plugin `reflectjoborder`.
    turns: tuple[Turn, ...] = ()
    searches: tuple[Searched, ...] = ()
    # The reservations for the next cycle; None if this one got none.
    reservations: Reservations | None = None
    # How long jobs are protected after they started; None if none is.
    min_runtimes: MinRuntimes | None = None


class Stumble(Exception):
    """A plan failed on one gang, for the reason in `__cause__`; without that gang it may succeed."""

    def __init__(self, job: str) -> None:
        super().__init__(f"the plan failed on gang {job}")
        self.job = job


def plan(
    state: State,
    config: Config,
    now: float,
    reservations: Reservations | None = None,
    aside: Mapping[str, str] = MappingProxyType({}),
    *,
    stopwatch: Stopwatch | None = None,
) -> Plan:
    """Decide one cycle. The state is the same afterwards; equal input gives an equal plan.

    Reservations are those of the plan before; a cycle without a past keeps nothing for anyone. Gangs put `aside` are
    left out, each with the error that a plan met on it. A stopwatch is told what took how long.
    """
    cycle = Cycle(state, config, now, aside, stopwatch)
    try:
        return _plan(cycle, config, reservations)
    finally:
        cycle.close()


def _plan(cycle: Cycle, config: Config, reservations: Reservations | None) -> Plan:
    start = cycle.transaction.checkpoint()
    try:
        registry.install(cycle, config)
        reuse.install(cycle)
        for hook in cycle.hooks.opened:
            hook()
        book = reserve.begin(cycle, reservations) if reservations is not None else None
        for name in config.actions:
            if name not in RUN:
                raise ConfigError(f"action {name!r} is unknown; known are {', '.join(RUN)}")
            with cycle.stopwatch.action(name):
                _act(cycle, RUN[name])
        kept = reserve.renewed(cycle, book) if book is not None else None
        add_blockers(cycle)
        return _result(cycle, kept)
    finally:
        cycle.transaction.rollback(start)


def _act(cycle: Cycle, action: Callable[[Cycle], None]) -> None:
    cycle.considering = None
    try:
        action(cycle)
    except Exception as error:
        if cycle.considering is None:
            raise
        raise Stumble(cycle.considering.key) from error


def _zones(cycle: Cycle, move: Move) -> ZoneShares:
    if move.kind != "bind" or not move.task.zones:
        return ()
    return cycle.hooks.zone_shares[0](move.task, move.node)


def _result(cycle: Cycle, kept: Reservations | None) -> Plan:
    nodes, result = cycle.nodes, cycle.result
    decisions = tuple(
        Decision(
            move.kind,
            action,
            move.task.key,
            move.task.job.key if move.task.job else "",
            nodes.name(move.node),
            move.groups,
            beneficiary.key if beneficiary else "",
            _zones(cycle, move),
        )
        for action, move, beneficiary in result.decided
    )
    touched = {move.task.key: move.task for _, move, _ in result.decided}
    started = {
        task.job.key: cycle.now
        for task in touched.values()
        if task.job is not None and task.job.last_start == cycle.now and task.status == st.BINDING
    }
    return Plan(
        cycle.now,
        decisions,
        result.problems,
        result.staleness,
        started,
        result.fair_share,
        tuple(result.turns),
        tuple(result.searches),
        kept,
        result.min_runtimes,
    )
