"""What `kubectl get` shows of what an API server is run by: certificates, flow control, the state of its parts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import ages, cells


def component(document: Json, now: datetime) -> list[Any]:
    """A ComponentStatus."""
    conditions = document.get("conditions") or ()
    healthy: Json | None = next((entry for entry in conditions if entry.get("type") == "Healthy"), None)
    if healthy is None:
        return [cells.name(document), "Unknown", "", ""]
    state = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [cells.name(document), state, healthy.get("message", ""), healthy.get("error", "")]


def signing_request(document: Json, now: datetime) -> list[Any]:
    """A CertificateSigningRequest."""
    spec = cells.spec(document)
    life = spec.get("expirationSeconds")
    return [
        cells.name(document),
        cells.age(document, now),
        spec.get("signerName") or "<none>",
        spec.get("username", ""),
        "<none>" if life is None else ages.duration(life),
        _signing_state(cells.status(document)),
    ]


def _signing_state(status: Json) -> str:
    told = {entry.get("type") for entry in status.get("conditions") or ()}
    state = next((kind for kind in ("Denied", "Approved") if kind in told), "Pending")
    state += ",Failed" if "Failed" in told else ""
    return state + (",Issued" if status.get("certificate") else "")


def flow_schema(document: Json, now: datetime) -> list[Any]:
    """A FlowSchema."""
    spec = cells.spec(document)
    conditions = cells.status(document).get("conditions") or ()
    dangling = next((entry.get("status") for entry in conditions if entry.get("type") == "Dangling"), "?")
    return [
        cells.name(document),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", "<none>"),
        cells.age(document, now),
        dangling,
    ]


def priority_level(document: Json, now: datetime) -> list[Any]:
    """A PriorityLevelConfiguration."""
    spec = cells.spec(document)
    limited = spec.get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        cells.name(document),
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", "<none>"),
        *(queuing.get(key, "<none>") for key in ("queues", "handSize", "queueLengthLimit")),
        cells.age(document, now),
    ]
