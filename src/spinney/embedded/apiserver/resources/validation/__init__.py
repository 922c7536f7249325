"""The checks of built-in kinds, with the words of Kubernetes; one module per family of kinds."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError

Check = Callable[[Json], list[FieldError]]
CheckUpdate = Callable[[Json, Json], list[FieldError]]


def _fine(document: Json) -> list[FieldError]:
    return []


def _fine_update(new: Json, old: Json) -> list[FieldError]:
    return []


def check_part(table: str, part: str, new: Json, old: Json) -> list[FieldError]:
    """What is wrong with a write to a subresource."""
    from spinney.embedded.apiserver.resources.validation import table as rows  # noqa: PLC0415  # the modules import the types above

    return rows.PART_CHECKS.get((table, part), _fine_update)(new, old)


def checks_for(table: str) -> tuple[Check, Check, CheckUpdate]:
    """The checks on creation, those on the whole object at any write, and those that compare with the old object."""
    from spinney.embedded.apiserver.resources.validation import table as rows  # noqa: PLC0415  # the modules import the types above

    return (
        rows.CREATE_CHECKS.get(table, _fine),
        rows.CHECKS.get(table, _fine),
        rows.UPDATE_CHECKS.get(table, _fine_update),
    )
