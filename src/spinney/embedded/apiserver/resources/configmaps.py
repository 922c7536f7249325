"""ConfigMaps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, too_long
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.quota import Quota
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import names

MAX_BYTES = 1024 * 1024


def check_keys(data: Json | None, path: str) -> list[FieldError]:
    return [error for key in data or {} for error in names.check_config_key(key, f"{path}[{key}]")]


def _check(document: Json) -> list[FieldError]:
    data, binary = document.get("data") or {}, document.get("binaryData") or {}
    errors = check_keys(data, "data") + check_keys(binary, "binaryData")
    errors += [
        invalid("data" + f"[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary
    ]
    size = sum(len(value.encode()) for value in data.values()) + sum(len(value) * 3 // 4 for value in binary.values())
    return [*errors, too_long("[]", MAX_BYTES)] if size > MAX_BYTES else errors


def check_immutable(new: Json, old: Json, parts: Sequence[str]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors: list[FieldError] = []
    if not new.get("immutable"):
        errors.append(forbidden_field("immutable", "field is immutable when `immutable` is set"))
    for part in parts:
        if new.get(part) != old.get(part):
            errors.append(forbidden_field(part, "field is immutable when `immutable` is set"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a ConfigMap."""
    return check_immutable(new, old, ("data", "binaryData"))


def _cells(document: Json, now: datetime) -> list[Any]:
    count = len(document.get("data") or ()) + len(document.get("binaryData") or ())
    return [cells.name(document), count, cells.age(document, now)]


CONFIG_MAPS = Resource(
    kind="ConfigMap",
    plural="configmaps",
    short_names=("cm",),
    quota=Quota(counted=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Data,Age", _cells),
)
