"""Checks of volume mounts."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    invalid,
    not_found_field,
    required,
)
from spinney.embedded.apiserver.resources.validation import names


def check_mounts(mounts: list[Json], path: str, volumes: dict[str, Json]) -> list[FieldError]:
    """Check the `volumeMounts` of a container."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, mount in enumerate(mounts):
        where = f"{path}[{at}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(not_found_field(f"{where}.name", name))
        if not target:
            errors.append(required(f"{where}.mountPath"))
        if target in seen:
            errors.append(invalid(f"{where}.mountPath", target, "must be unique"))
        seen.add(target)
        errors += _parts(mount, path, where)
    return errors


def _parts(mount: Json, path: str, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    part, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if part:
        errors += names.check_descending(part, f"{path}.subPath")
    if expression:
        if part:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{where}.subPathExpr", expression, detail))
        errors += names.check_descending(expression, f"{path}.subPathExpr")
    return errors
