"""The volumes of a pod."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.errors import FieldError, duplicate, forbidden_field, invalid, required
from spinney.embedded.validation import names

# The member that each kind of volume cannot do without.
_NEEDED = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "csi": "driver",
    "ephemeral": "volumeClaimTemplate",
}


def check_volumes(volumes: list[Json], path: str, known: dict[str, Json]) -> list[FieldError]:
    """The volumes of a pod, which `known` then holds by name."""
    found: list[FieldError] = []
    for at, volume in enumerate(volumes):
        where = f"{path}[{at}]"
        name = volume.get("name", "")
        found += names.check_label_name(name, f"{where}.name")
        if name in known:
            found.append(duplicate(f"{where}.name", name))
        known[name] = volume
        sources = [key for key in volume if key != "name"]
        for extra in sources[1:]:
            found.append(forbidden_field(f"{where}.{extra}", "may not specify more than 1 volume type"))
        for key in sources[:1]:
            needed = _NEEDED.get(key)
            if needed and not volume[key].get(needed):
                found.append(required(f"{where}.{key}.{needed}"))
            if key in _CHECKS:
                found += _CHECKS[key](volume[key], f"{where}.{key}")
    return found


def _host_path(source: Json, path: str) -> list[FieldError]:
    target = source.get("path", "")
    if not target:
        return [required(f"{path}.path")]
    return [invalid(f"{path}.path", target, "must not contain '..'")] if ".." in target.split("/") else []


def _empty(source: Json, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.exact(limit) < 0:
        return [forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _nfs(source: Json, path: str) -> list[FieldError]:
    found = [required(f"{path}.{key}") for key in ("server", "path") if not source.get(key)]
    if not source.get("path", "").startswith("/"):
        found.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return found


def _downward(source: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for item in source.get("items") or ():
        if not item.get("path"):
            found.append(required(f"{path}.path"))
        if "fieldRef" not in item and "resourceFieldRef" not in item:
            found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return found


_CHECKS: dict[str, Callable[[Json, str], list[FieldError]]] = {
    "hostPath": _host_path,
    "emptyDir": _empty,
    "nfs": _nfs,
    "downwardAPI": _downward,
}
