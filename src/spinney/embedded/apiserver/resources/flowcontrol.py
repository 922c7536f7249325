"""FlowSchemas and PriorityLevelConfigurations, which are kept although nothing here goes by them."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported

_LOWEST = 10_000


def check_schema(document: Json) -> list[FieldError]:
    """A FlowSchema."""
    spec = document.get("spec") or {}
    found: list[FieldError] = []
    precedence = spec.get("matchingPrecedence", 1000)
    if precedence <= 0:
        found.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    if precedence > _LOWEST:
        found.append(invalid("spec.matchingPrecedence", precedence, f"must not be greater than {_LOWEST}"))
    if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
        found.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    return found


def check_level(document: Json) -> list[FieldError]:
    """A PriorityLevelConfiguration."""
    spec, name = document.get("spec") or {}, document["metadata"].get("name", "")
    kind, limited = spec.get("type", ""), spec.get("limited")
    found: list[FieldError] = []
    if (kind == "Exempt") != (name == "exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        found.append(invalid("spec.type", kind, detail))
    if kind == "Exempt":
        if limited is not None:
            found.append(forbidden_field("spec.limited", "must be nil if the type is not Limited"))
    elif kind != "Limited":
        found.append(unsupported("spec.type", kind, ("Exempt", "Limited")))
    elif limited is None:
        found.append(required("spec.limited", "must not be empty when type is Limited"))
    else:
        answer = (limited.get("limitResponse") or {}).get("type", "")
        if answer not in ("Queue", "Reject"):
            found.append(unsupported("spec.limited.limitResponse.type", answer, ("Queue", "Reject")))
    return found
