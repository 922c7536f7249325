"""What Kubernetes writes even where nobody said it: counts that are zero, and halves of a pair that mean the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from spinney.api.meta import Json


def status_members(members: Json | None = None, times: tuple[str, ...] = ()) -> Callable[[Json], Json]:
    """Complete a status by members that are always there, and its conditions by times that may never have been set."""
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
    """Complete an object by members that are always there, null where only their name is given."""
    always = {**members, **dict.fromkeys(names)}

    def complete(document: Json) -> Json:
        return {**document, **{key: value for key, value in always.items() if document.get(key, []) == []}}

    return complete


def spec_member(name: str) -> Callable[[Json], Json]:
    """Complete a spec by a member that is null where it is empty."""

    def complete(document: Json) -> Json:
        spec = document.get("spec") or {}
        return {**document, "spec": {**spec, name: None}} if spec.get(name, []) == [] else document

    return complete


def with_times(status: Json, times: tuple[str, ...]) -> Json:
    """The status with these times in all of its conditions."""
    conditions, members = status["conditions"], dict.fromkeys(times)
    filled = [each if each.keys() >= members.keys() else with_members(each, members) for each in conditions]
    return status if all(map(operator.is_, filled, conditions)) else {**status, "conditions": filled}


def with_members(given: Json, members: Json) -> Json:
    """What is given, and after it the members that are missing."""
    return {**given, **members, **given}
