"""Checks of volume sources that pods and PersistentVolumes share."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported

_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def check(kind: str, source: Json, path: str) -> list[FieldError]:
    """Check a volume source. Sources of other kinds are not checked."""
    return _CHECKS[kind](source, path) if kind in _CHECKS else []


def _host_path(source: Json, path: str) -> list[FieldError]:
    target, kind = source.get("path", ""), source.get("type", "")
    if not target:
        return [required(f"{path}.path")]
    errors = [invalid(f"{path}.path", target, "must not contain '..'")] if ".." in target.split("/") else []
    return errors if kind in _PATHS else [*errors, unsupported(f"{path}.type", kind, _PATHS)]


def _nfs(source: Json, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{key}") for key in ("server", "path") if not source.get(key)]
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def _iscsi(source: Json, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{key}") for key in ("targetPortal", "iqn") if not source.get(key)]
    name = source.get("iqn", "")
    if name and not name.startswith(("iqn", "eui", "naa")):
        errors.append(invalid(f"{path}.iqn", name, "must be valid format starting with iqn, eui, or naa"))
    return errors


_CHECKS: dict[str, Callable[[Json, str], list[FieldError]]] = {
    "hostPath": _host_path,
    "nfs": _nfs,
    "iscsi": _iscsi,
}
