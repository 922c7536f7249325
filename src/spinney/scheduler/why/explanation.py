"""Explain why one gang waits or runs, from the state and a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from spinney.scheduler.place.reservations import Reservation
from spinney.scheduler.plan import Decision, Plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.problems import NoRoom, Problem
from spinney.scheduler.why import texts
from spinney.scheduler.why.advice import advice
from spinney.scheduler.why.protected_tasks import Protection, protection

# Names of nodes told at most: a large gang has hundreds.
_MOST_NAMES = 5


@dataclass(frozen=True)
class Explanation:
    """What a plan decided about a gang, and why."""

    job: str
    queue: str
    priority: int
    # How many of its pods are in which state.
    pods: dict[str, int]
    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]
    # The nodes that are kept for it, with how many tasks are still on them, and how many of those are guests.
    kept: Reservation | None = None
    occupants: int = 0
    # Nodes that its pods, or those of the gang it replaces, have left, and until when others keep away from them.
    left: dict[str, float] = field(default_factory=dict)
    # Why nobody makes room for it; None where room is not what it waits for.
    protection: Protection | None = None

    def sentences(self) -> list[str]:
        """The explanation in sentences."""
        counted = ", ".join(f"{count} {name.lower()}" for name, count in sorted(self.pods.items())) or "no pods"
        lines = [f"gang {self.job} (queue {self.queue}, priority {self.priority}): {counted}."]
        for kind, text in (
            ("bind", "{count} of its pods would be placed now, by {action}."),
            ("wait", "{count} of its pods have a place on nodes that are being freed."),
            ("evict", "{count} of its pods would be evicted by {action}."),
        ):
            decisions = [decision for decision in self.decisions if decision.kind == kind]
            if decisions:
                lines.append("  " + text.format(count=len(decisions), action=decisions[0].action))
        # Later attempts of one plan repeat a problem with other numbers; the first saw the cluster as it is.
        first = {_one_line(texts.message(problem)): advice(problem) for problem in reversed(self.problems)}
        for message, fix in reversed(first.items()):
            lines.append(f"  {message}")
            if fix:
                lines.append(f"    → {fix}.")
        if self.protection is not None and not self.decisions:
            lines += [f"  {sentence}" for sentence in self.protection.sentences()]
        if self.kept is not None and self.kept.nodes:
            lines.append(f"  {self._kept_nodes(self.kept)}")
        if self.left and "Pending" in self.pods:
            until = texts.moment(max(self.left.values()))
            lines.append(
                f"  it goes back to {_some(self.left)}; until {until} others go there only if nothing else fits."
            )
        return lines

    def _kept_nodes(self, kept: Reservation) -> str:
        return (
            f"kept nodes: {_some(kept.nodes)}; {self.occupants - len(kept.guests)} pods on them have to end, "
            f"{len(kept.guests)} leave when that is enough."
        )

    def data(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "gang": self.job,
            "queue": self.queue,
            "priority": self.priority,
            "pods": self.pods,
            "reservation": None
            if self.kept is None
            else {"nodes": self.kept.nodes, "since": self.kept.since, "guests": len(self.kept.guests)},
            "left": self.left,
            "spared": None if self.protection is None else asdict(self.protection),
            "decisions": [decision._asdict() for decision in self.decisions],
            "problems": [
                {
                    "type": type(problem).__name__,
                    "reason": texts.reason(problem),
                    "message": _one_line(texts.message(problem)),
                    "advice": advice(problem),
                    "details": _details(problem),
                }
                for problem in self.problems
            ],
        }


def explain_job(state: State, plan: Plan, key: str) -> Explanation:
    """The explanation of a gang in the state."""
    job = state.jobs[key]
    pods: dict[str, int] = {}
    for task in job.all_tasks():
        name = st.NAMES[task.status]
        pods[name] = pods.get(name, 0) + 1
    held = plan.reservations.held if plan.reservations is not None else ()
    kept = next((reservation for reservation in held if reservation.job == key), None)
    problems = tuple(dict.fromkeys(plan.problems.get(key, ()))) if job.pending else ()
    return Explanation(
        key,
        job.spec.queue,
        job.spec.priority,
        pods,
        tuple(decision for decision in plan.decisions if decision.job == key),
        problems,
        kept,
        _occupants(state, kept) if kept is not None else 0,
        state.departures.nodes_left_by(job.spec.replaces) if job.spec.replaces else {},
        protection(state, plan, job, problems),
    )


def _details(problem: Problem) -> dict[str, Any]:
    details = asdict(problem)
    if isinstance(problem, NoRoom):
        details["refusals"] = sorted((texts.refusal(refusal), count) for refusal, count in problem.refusals)
    return details


def _occupants(state: State, kept: Reservation) -> int:
    """Our tasks on reserved nodes; pods of other schedulers are taken into account when nodes are reserved."""
    rows = (state.nodes.rows[name] for name in kept.nodes if name in state.nodes.rows)
    return sum(bool(task.spec.job) for row in rows for task in state.tasks_on(row))


def _some(nodes: Iterable[str]) -> str:
    names = list(nodes)
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
