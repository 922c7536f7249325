"""Checks of the security contexts of pods and containers."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, unsupported

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_ID_RANGE = "must be between 0 and 2147483647, inclusive"


def check_pod(context: Json, path: str) -> list[FieldError]:
    """Check the security context of a pod."""
    errors = _ids(context, path, ("fsGroup", "runAsUser", "runAsGroup"))
    for at, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= 2**31 - 1:
            errors.append(invalid(f"{path}.supplementalGroups[{at}]", group, _ID_RANGE))
    return errors + _seccomp(context, path)


def check_container(context: Json, path: str) -> list[FieldError]:
    """Check the security context of a container."""
    errors = _ids(context, path, ("runAsUser", "runAsGroup")) + _seccomp(context, path)
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(invalid(path, context, detail))
    return errors


def _ids(context: Json, path: str, keys: tuple[str, ...]) -> list[FieldError]:
    return [
        invalid(f"{path}.{key}", context[key], _ID_RANGE)
        for key in keys
        if context.get(key) is not None and not 0 <= context[key] <= 2**31 - 1
    ]


def _seccomp(context: Json, path: str) -> list[FieldError]:
    kind = (context.get("seccompProfile") or {"type": "Unconfined"}).get("type", "")
    return [] if kind in _PROFILES else [unsupported(f"{path}.seccompProfile.type", kind, _PROFILES)]
