"""The status of a CustomResourceDefinition: which names are accepted, and whether its kind is served."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.schema.custom_resources import TABLE
from spinney.embedded.apiserver.store.store import load

_NAMES = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)


def new_status(core: Core, document: Json, old: Json) -> Json:
    """The new status of a definition; its names are accepted at once, unless one is taken."""
    spec, now = document["spec"], core.timestamp()
    stored = [version.get("name", "") for version in spec.get("versions") or () if version.get("storage")]
    stored_before = old.get("storedVersions") or []
    status: Json = {"conditions": old.get("conditions") or [], "acceptedNames": old.get("acceptedNames") or {}}
    status["storedVersions"] = [*stored_before, *(name for name in stored if name not in stored_before)]
    clash = _clash(core, document)
    accepted = clash is None
    reason, message = clash or ("NoConflicts", "no conflicts found")
    if accepted:
        status["acceptedNames"] = spec.get("names") or {}
    conditions = [_condition("NamesAccepted", accepted, reason, message, now)]
    if accepted:
        reason_and_message = ("InitialNamesAccepted", "the initial names have been accepted")
        conditions.append(_condition("Established", True, *reason_and_message, now))
    else:
        conditions.append(_condition("Established", False, "NotAccepted", "not all names are accepted", now))
    before = {(entry["type"], entry["status"]): entry for entry in status["conditions"]}
    status["conditions"] = [before.get((entry["type"], entry["status"]), entry) for entry in conditions]
    return status


def _condition(kind: str, holds: bool, reason: str, message: str, now: str) -> Json:
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}


def _clash(core: Core, document: Json) -> tuple[str, str] | None:
    """Reason and message for the last name that another definition of the group already has."""
    spec = document["spec"]
    names = spec.get("names") or {}
    if f"{spec.get('group')}/{names.get('plural')}" in core.built_in:
        # Both would be kept in one table, and deleted with the definition.
        return "PluralConflict", f'"{names["plural"]}" is built in'
    clash: tuple[str, str] | None = None
    for item in core.store.table(TABLE).range(""):
        other = load(item)
        if item.name == document["metadata"].get("name") or other["spec"]["group"] != spec.get("group"):
            continue
        taken = (other.get("status") or {}).get("acceptedNames") or {}
        for key, reason in _NAMES:
            value = names.get(key)
            if value and value == taken.get(key):
                clash = (reason, f'"{value}" is already in use')
    return clash
