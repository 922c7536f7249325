"""Members that Kubernetes writes even where nobody set them, such as counts of zero."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from spinney.api.meta import Json


def status_members(members: Json | None = None, times: tuple[str, ...] = ()) -> Callable[[Json], Json]:
    """Add members that are missing in a status, and null for times that are missing in its conditions."""
    always = members or {}

    def complete(document: Json) -> Json:
        status = document.get("status") or {}
        if times and status.get("conditions"):
            status = with_times(status, times)
        missing = {key: value for key, value in always.items() if key not in status}
        if not missing and status is document.get("status"):
            return document
        return {**document, "status": {**missing, **status}}

    return complete


def object_members(*names: str, **members: Any) -> Callable[[Json], Json]:
    """Add members that are missing or empty in an object; null for those given by name only."""
    always = {**members, **dict.fromkeys(names)}

    def complete(document: Json) -> Json:
        return {**document, **{key: value for key, value in always.items() if document.get(key, []) == []}}

    return complete


def spec_member(name: str) -> Callable[[Json], Json]:
    """Write null for a list in the spec that is missing or empty."""

    def complete(document: Json) -> Json:
        spec = document.get("spec") or {}
        return {**document, "spec": {**spec, name: None}} if spec.get(name, []) == [] else document

    return complete


def with_times(status: Json, times: tuple[str, ...]) -> Json:
    """The status with these times in all of its conditions."""
    conditions, members = status["conditions"], dict.fromkeys(times)
    filled = [
        condition if condition.keys() >= members.keys() else with_members(condition, members)
        for condition in conditions
    ]
    return status if all(map(operator.is_, filled, conditions)) else {**status, "conditions": filled}


def with_members(given: Json, members: Json) -> Json:
    """Add missing members after those that are given."""
    return {**given, **members, **given}
