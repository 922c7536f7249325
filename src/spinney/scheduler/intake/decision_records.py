"""Records of cycles: what a plan was made of, as changes since the record before, and what it decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from spinney.scheduler.config import Config
from spinney.scheduler.intake.spec_codec import from_plain, to_plain
from spinney.scheduler.place.reservations import Reservations
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state.cluster import State


class RecordError(ValueError):
    """A line that is no record of a cycle, or one that does not follow the line before."""


class CycleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle; a whole one holds the whole state, others what changed since."""

    cycle: int
    version: str
    now: float
    whole: bool
    config: Any
    flat: bool
    reservations: Any
    aside: dict[str, str]
    departures: Any
    # By table: what was set, in the order of the state, and what is gone.
    changed: dict[str, list[Any]]
    gone: dict[str, list[str]]
    decided: Any


def decided(made: Plan) -> Any:
    """What a plan decided, as plain data."""
    return to_plain(
        {
            "decisions": [tuple(each) for each in made.decisions],
            "staleness": made.staleness,
            "fairShare": made.fair_share,
            "reservations": made.reservations,
        }
    )


def canonical(decisions: Any) -> bytes:
    """Decisions as bytes that are equal if they are."""
    return msgspec.json.encode(decisions, order="deterministic")


@dataclass
class Recorder:
    """Turns cycles into records, each with what changed since the one before."""

    version: str
    cycles: int = 0
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def reset(self) -> None:
        """Let the next record be a whole one."""
        self._known = {}

    def record(
        self, state: State, config: Config, reservations: Reservations, aside: Mapping[str, str], made: Plan
    ) -> bytes:
        """The record of a cycle, as one line."""
        tables = _tables(state)
        changed: dict[str, list[Any]] = {}
        gone: dict[str, list[str]] = {}
        for name, table in tables.items():
            recorded = self._known.get(name, {})
            fresh = [[key, to_plain(spec)] for key, spec in table.items() if not _is_same(recorded.get(key), spec)]
            changed.update({name: fresh} if fresh else {})
            left = [key for key in recorded if key not in table]
            gone.update({name: left} if left else {})
        whole = not self._known
        self._known = tables
        self.cycles += 1
        made_of = CycleRecord(
            cycle=self.cycles,
            version=self.version,
            now=made.now,
            whole=whole,
            config=to_plain(config),
            flat=state.flat,
            reservations=to_plain(reservations),
            aside=dict(aside),
            departures=to_plain(state.departures.remembered(made.now)),
            changed=changed,
            gone=gone,
            decided=decided(made),
        )
        return msgspec.json.encode(made_of) + b"\n"


def _is_same(recorded: Any, spec: Any) -> bool:
    return recorded is spec or (recorded is not None and recorded == spec)


def _tables(state: State) -> dict[str, dict[str, Any]]:
    return {
        "topologies": dict(state.topologies),
        "queues": dict(state.queue_specs),
        "nodes": {spec.name: spec for spec in state.nodes.specs if spec is not None},
        "attached": {name: frozenset(volumes) for name, volumes in state.attached.items()},
        "budgets": {name: budget.allowed for name, budget in state.budgets.items()},
        "jobs": {key: job.spec for key, job in state.jobs.items()},
        "tasks": {uid: task.spec for uid, task in state.tasks.items()},
    }


class Rebuilt:
    """The state of a log, brought from record to record."""

    def __init__(self) -> None:
        self.state = State()

    def apply(self, record: CycleRecord) -> None:
        """Go on to the next record."""
        if record.whole:
            self.state = State()
        state = self.state
        state.departures.set_time(record.now)
        for name, drop in (
            ("tasks", state.drop_task),
            ("jobs", state.drop_job),
            ("budgets", state.drop_budget),
            ("nodes", state.drop_node),
            ("queues", state.drop_queue),
            ("topologies", state.drop_topology),
        ):
            for key in record.gone.get(name, ()):
                drop(key)
        for key in record.gone.get("attached", ()):
            state.set_attached(key, frozenset())
        state.set_flat(record.flat)
        self._set(record.changed)
        state.departures.replace(from_plain(record.departures))

    def _set(self, changed: Mapping[str, list[Any]]) -> None:
        state = self.state
        for name, put in (("topologies", state.set_topology), ("queues", state.set_queue), ("nodes", state.set_node)):
            for _, spec in changed.get(name, ()):
                put(from_plain(spec))
        for key, volumes in changed.get("attached", ()):
            state.set_attached(key, from_plain(volumes))
        for key, allowed in changed.get("budgets", ()):
            state.set_budget(key, allowed)
        for _, spec in changed.get("jobs", ()):
            state.set_job(from_plain(spec))
        for _, spec in changed.get("tasks", ()):
            state.set_task(from_plain(spec))


def read_records(lines: Iterable[bytes]) -> Iterator[CycleRecord]:
    """The records of a log, from the first whole one."""
    started = False
    for number, line in enumerate(lines, 1):
        try:
            record = msgspec.json.decode(line, type=CycleRecord)
        except msgspec.DecodeError as error:
            raise RecordError(f"line {number} is no record of a cycle: {error}") from error
        started = started or record.whole
        if started:
            yield record


def replayed(records: Iterable[CycleRecord], config: Config | None = None) -> Iterator[tuple[CycleRecord, Any]]:
    """Every record, with what this version decides on the same input; with another configuration if one is given."""
    rebuilt = Rebuilt()
    for record in records:
        rebuilt.apply(record)
        if config is not None:
            rebuilt.state.set_flat(not config.full_hierarchy)
        used = config or from_plain(record.config)
        made = plan(rebuilt.state, used, record.now, from_plain(record.reservations), record.aside)
        yield record, decided(made)
