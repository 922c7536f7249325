"""The security contexts of pods and containers."""

from __future__ import annotations

import re

from spinney.api.meta import Json
from spinney.embedded.errors import FieldError, invalid, unsupported

_SYSCTL = re.compile(r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")


def check_pod(spec: Json, path: str) -> list[FieldError]:
    """What a pod asks for all its containers."""
    context = spec.get("securityContext") or {}
    where = f"{path}.securityContext"
    found: list[FieldError] = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(f"{where}.shareProcessNamespace", True, detail))
    if not context:
        return found
    found += check_ids(context, where)
    for at, sysctl in enumerate(context.get("sysctls") or ()):
        name = sysctl.get("name", "")
        if not _SYSCTL.match(name) or len(name) > 253:
            detail = f"must have at most 253 characters and match regex {_SYSCTL.pattern}"
            found.append(invalid(f"{where}.sysctls[{at}].name", name, detail))
    policy = context.get("supplementalGroupsPolicy")
    if policy not in (None, "Merge", "Strict"):
        found.append(unsupported(f"{where}.supplementalGroupsPolicy", policy, ("Merge", "Strict")))
    return found


def check_ids(context: Json, path: str) -> list[FieldError]:
    """Users, groups and the seccomp profile of a context."""
    found: list[FieldError] = []
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        value = context.get(key)
        if value is not None and not 0 <= value <= 2**31 - 1:
            found.append(invalid(f"{path}.{key}", value, "must be between 0 and 2147483647, inclusive"))
    profile = context.get("seccompProfile")
    if profile is not None and profile.get("type") not in _PROFILES:
        found.append(unsupported(f"{path}.seccompProfile.type", profile.get("type", ""), _PROFILES))
    return found
