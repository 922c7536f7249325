"""The conditions of Config and shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.api import reasons
from spinney.api.conditions import as_json, merged
from spinney.api.kaiconfig import Config
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Condition, Json

# A separate condition: upstream's probe and reconciler overwrite each other's `Available`.
PROMETHEUS = "PrometheusConnected"


@dataclass(frozen=True)
class Findings:
    """The result of a reconcile."""

    # Why the spec is invalid.
    mistake: str = ""
    # Refused writes.
    errors: Sequence[str] = ()
    # Kinds and objects that the cluster lacks.
    missing: Sequence[str] = ()
    # Why processes are not available yet.
    waiting: Sequence[str] = ()
    # The problem of an external Prometheus; None without one, or before the first probe.
    prometheus: str | None = None


def plan_conditions(owner: Config | SchedulingShard, findings: Findings, now: datetime) -> Json | None:
    """The status patch, or None where nothing changes."""
    wanted = _wanted(findings, owner.metadata.generation)
    dropped = (PROMETHEUS,) if findings.prometheus is None else ()
    conditions = merged(owner.status.conditions, wanted, now, drop=dropped)
    if conditions == owner.status.conditions:
        return None
    return {"status": {"conditions": as_json(conditions)}}


def _wanted(findings: Findings, generation: int) -> list[Condition]:
    refused = [findings.mistake] if findings.mistake else list(findings.errors)
    deployed = not refused
    fulfilled = not findings.missing
    waiting = [*findings.waiting, *([findings.prometheus] if findings.prometheus else [])]
    available = deployed and not waiting
    waiting = waiting or refused
    absent = [f"{name} is not there" for name in findings.missing]
    ready = available and fulfilled
    # Type, whether it is True, the reasons if True and if False, problems, and the message without any.
    rows: list[tuple[str, bool, tuple[str, str], Sequence[str], str]] = [
        (reasons.RECONCILING, bool(refused), ("reconciling", "reconciled"), refused, "reconciled"),
        (reasons.DEPLOYED, deployed, ("deployed", "not_deployed"), refused, "everything is deployed"),
        (
            "Available",
            available,
            ("available", "not_available"),
            () if available else waiting,
            "every service is available",
        ),
        (
            reasons.DEPENDENCIES_FULFILLED,
            fulfilled,
            ("dependencies_fulfilled", "dependencies_missing"),
            absent,
            "nothing is missing",
        ),
        ("Ready", ready, ("ready", "not_ready"), () if ready else (*waiting, *absent), "ready"),
    ]
    if findings.prometheus is not None:
        words = ("prometheus_connected", "prometheus_connection_failed")
        problem = [findings.prometheus] if findings.prometheus else []
        rows.append((PROMETHEUS, not findings.prometheus, words, problem, "the external Prometheus answers"))
    return [
        Condition(
            type=type_,
            status="True" if holds else "False",
            reason=words[0] if holds else words[1],
            message="; ".join(dict.fromkeys(problems))[:32768] or otherwise,
            observed_generation=generation,
        )
        for type_, holds, words, problems, otherwise in rows
    ]
