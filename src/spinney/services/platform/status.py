"""Conditions that tell what is not ready and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.api import conditions, reasons
from spinney.api.kaiconfig import Config
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Condition, Json

# A condition of its own: upstream's probe and its reconciler overwrite each other's word on `Available`.
PROMETHEUS = "PrometheusConnected"


@dataclass(frozen=True)
class Findings:
    """What a reconcile found; empty lists are good news."""

    # Why the object itself cannot be followed.
    mistake: str = ""
    # Writes that were refused.
    errors: Sequence[str] = ()
    # What the installation needs and the cluster lacks.
    missing: Sequence[str] = ()
    # Processes that do not serve yet, each with the reason.
    waiting: Sequence[str] = ()
    # What is wrong with a Prometheus elsewhere; None where there is none, or it has not been asked yet.
    prometheus: str | None = None


def plan_conditions(owner: Config | SchedulingShard, found: Findings, now: datetime) -> Json | None:
    """The status patch, or None where the object says so already."""
    wanted = _wanted(found, owner.metadata.generation)
    result = owner.status.conditions
    if found.prometheus is None:
        result = tuple(condition for condition in result if condition.type != PROMETHEUS)
    for condition in wanted:
        result = conditions.put(result, condition, now)
    if result == owner.status.conditions:
        return None
    return {"status": {"conditions": conditions.wire(result)}}


def _wanted(found: Findings, generation: int) -> list[Condition]:
    refused = [found.mistake] if found.mistake else list(found.errors)
    deployed = not refused
    fulfilled = not found.missing
    waiting = [*found.waiting, *([found.prometheus] if found.prometheus else [])]
    available = deployed and not waiting
    waiting = waiting or refused
    rows = [
        (reasons.RECONCILING, bool(refused), "reconciling" if refused else "reconciled", _text(refused, "reconciled")),
        (
            reasons.DEPLOYED,
            deployed,
            "deployed" if deployed else "not_deployed",
            _text(refused, "everything is deployed"),
        ),
        (
            "Available",
            available,
            "available" if available else "not_available",
            "every service is available" if available else _text(waiting, ""),
        ),
        (
            reasons.DEPENDENCIES_FULFILLED,
            fulfilled,
            "dependencies_fulfilled" if fulfilled else "dependencies_missing",
            _text([f"{name} is not there" for name in found.missing], "nothing is missing"),
        ),
        (
            "Ready",
            available and fulfilled,
            "ready" if available and fulfilled else "not_ready",
            "ready"
            if available and fulfilled
            else _text([*waiting, *(f"{n} is not there" for n in found.missing)], ""),
        ),
    ]
    if found.prometheus is not None:
        reason = "prometheus_connection_failed" if found.prometheus else "prometheus_connected"
        rows.append((PROMETHEUS, not found.prometheus, reason, found.prometheus or "the external Prometheus answers"))
    return [
        Condition(
            type=kind,
            status="True" if true else "False",
            reason=reason,
            message=message,
            observed_generation=generation,
        )
        for kind, true, reason, message in rows
    ]


def _text(problems: Sequence[str], otherwise: str) -> str:
    return "; ".join(dict.fromkeys(problems))[:32768] or otherwise
