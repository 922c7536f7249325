"""Checks of the security contexts of pods and containers."""

from __future__ import annotations

import re

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import names

_SYSCTL = re.compile(r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_ID_RANGE = "must be between 0 and 2147483647, inclusive"
# Fields that do not exist on the other operating system.
_NOT_WINDOWS = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser"),
    *("runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"),
)
_NOT_WINDOWS_CONTAINERS = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
)


def check_pod(spec: Json, path: str) -> list[FieldError]:
    """Check the security context of a pod."""
    context = spec.get("securityContext") or {}
    if not context and not spec.get("shareProcessNamespace"):
        return []
    where = f"{path}.securityContext"
    errors = _ids(context, where, ("fsGroup", "runAsUser", "runAsGroup"))
    for at, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= 2**31 - 1:
            errors.append(invalid(f"{where}.supplementalGroups[{at}]", group, _ID_RANGE))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{where}.shareProcessNamespace", True, detail))
    if not context:
        return errors
    errors += _sysctls(context, f"{where}.sysctls")
    errors += _one_of(context, where, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    errors += _profiles(context, where)
    errors += _one_of(context, where, "supplementalGroupsPolicy", ("Merge", "Strict"))
    return errors + _one_of(context, where, "seLinuxChangePolicy", ("Recursive",))


def _one_of(context: Json, path: str, key: str, allowed: tuple[str, ...]) -> list[FieldError]:
    value = context.get(key)
    return [] if value is None or value in allowed else [unsupported(f"{path}.{key}", value, allowed)]


def _ids(context: Json, path: str, keys: tuple[str, ...]) -> list[FieldError]:
    return [
        invalid(f"{path}.{key}", context[key], _ID_RANGE)
        for key in keys
        if context.get(key) is not None and not 0 <= context[key] <= 2**31 - 1
    ]


def _sysctls(context: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, sysctl in enumerate(context.get("sysctls") or ()):
        name, where = sysctl.get("name", ""), f"{path}[{at}].name"
        if not name:
            errors.append(required(where))
        elif not _SYSCTL.fullmatch(name) or len(name) > 253:
            detail = f"must have at most 253 characters and match regex {_SYSCTL.pattern}"
            errors.append(invalid(where, name, detail))
        elif name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors


def _profiles(context: Json, path: str) -> list[FieldError]:
    """Check the seccomp and AppArmor profiles of a security context."""
    errors: list[FieldError] = []
    if context.get("seccompProfile") is not None:
        errors += _seccomp(context["seccompProfile"], f"{path}.seccompProfile")
    windows = context.get("windowsOptions") or {}
    if windows.get("runAsUserName") == "":
        where = f"{path}.windowsOptions.runAsUserName"
        errors.append(invalid(where, "", "runAsUserName cannot be an empty string"))
    if context.get("appArmorProfile") is not None:
        errors += _app_armor(context["appArmorProfile"], f"{path}.appArmorProfile")
    return errors


def _seccomp(profile: Json, path: str) -> list[FieldError]:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    errors = [] if kind in _PROFILES else [unsupported(f"{path}.type", kind, _PROFILES)]
    if kind == "Localhost":
        if local is None:
            return [*errors, required(where, "must be set when seccomp type is Localhost")]
        return errors + names.check_descending(local, where)
    if local is not None:
        errors.append(invalid(where, profile, "can only be set when seccomp type is Localhost"))
    return errors


def _app_armor(profile: Json, path: str) -> list[FieldError]:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [unsupported(f"{path}.type", kind, _PROFILES)]
    if kind == "Localhost":
        if local is None or not local.strip():
            return [required(where, "must be set when AppArmor type is Localhost")]
        return [] if local == local.strip() else [invalid(where, local, "must not be padded with whitespace")]
    if local is not None:
        return [invalid(where, local, "can only be set when AppArmor type is Localhost")]
    return []


def check_container(context: Json, path: str, pod: Json) -> list[FieldError]:
    """Check the security context of a container."""
    errors = _ids(context, path, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    errors += _one_of(context, path, "procMount", ("Default", "Unmasked"))
    if mount == "Unmasked" and pod.get("hostUsers", True):
        errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    profiles = _profiles(context, path)
    errors += [error for error in profiles if ".seccompProfile" in error.field]
    if context.get("allowPrivilegeEscalation") is False:
        detail = "cannot set `allowPrivilegeEscalation` to false and "
        added = (context.get("capabilities") or {}).get("add") or ()
        reasons = ["`privileged` to true"] if context.get("privileged") else []
        reasons += ["`capabilities.Add` CAP_SYS_ADMIN" for each in added if each == "CAP_SYS_ADMIN"]
        errors += [invalid(path, context, detail + reason) for reason in reasons]
    return errors + [error for error in profiles if ".seccompProfile" not in error.field]


def check_system(spec: Json, path: str) -> list[FieldError]:
    """Refuse fields that the operating system of a pod does not support."""
    system = spec.get("os")
    if system is None:
        return []
    name = system.get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in ("linux", "windows"):
        return [unsupported(f"{path}.os", name, ("linux", "windows"))]
    if name == "linux":
        return []
    detail = "cannot be set for a windows pod"
    errors = [forbidden_field(f"{path}.{key}", detail) for key in ("hostPID", "hostIPC") if spec.get(key)]
    context = spec.get("securityContext") or {}
    errors += [
        forbidden_field(f"{path}.securityContext.{key}", detail) for key in _NOT_WINDOWS if context.get(key) is not None
    ]
    for kind in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(kind) or ()):
            own = container.get("securityContext") or {}
            errors += [
                forbidden_field(f"{path}.{kind}[{at}].securityContext.{key}", detail)
                for key in _NOT_WINDOWS_CONTAINERS
                if own.get(key) is not None
            ]
    return errors
