"""Checks of volume mounts and volume devices."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.apiserver.resources.validation import names

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")


def check_mounts(container: Json, path: str, volumes: dict[str, Json]) -> list[FieldError]:
    """Check the `volumeMounts` of a container."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    for at, mount in enumerate(container["volumeMounts"]):
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
        if name in devices:
            errors.append(invalid(f"{where}.name", name, "must not already exist in volumeDevices"))
        if target in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{where}.mountPath", target, detail))
        errors += _parts(mount, path, where) + _sharing(mount, path, container)
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


def _sharing(mount: Json, path: str, container: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    spread, deep = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if spread is not None and spread not in _PROPAGATIONS:
        errors.append(unsupported(f"{path}.mountPropagation", spread, _PROPAGATIONS))
    if spread == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden_field(f"{path}.mountPropagation", detail))
    where = f"{path}.recursiveReadOnly"
    if deep is not None and deep not in _RECURSIONS:
        errors.append(unsupported(where, deep, _RECURSIONS))
    elif deep in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.append(forbidden_field(where, "may only be specified when readOnly is true"))
        if spread not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden_field(where, detail))
    return errors


def check_devices(container: Json, path: str, volumes: dict[str, Json]) -> list[FieldError]:
    """Check the `volumeDevices` of a container."""
    errors: list[FieldError] = []
    mounted = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    devices = container.get("volumeDevices") or ()
    for at, device in enumerate(devices):
        where, name, target = f"{path}[{at}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            errors.append(required(f"{where}.name"))
        elif any(each.get("name") == name for each in devices[:at]):
            errors.append(invalid(f"{where}.name", name, "must be unique"))
        if name not in volumes:
            errors.append(not_found_field(f"{where}.name", name))
        elif not volumes[name].keys() & {"persistentVolumeClaim", "ephemeral"}:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{where}.name", name, detail))
        if not target:
            errors.append(required(f"{where}.devicePath"))
        elif any(each.get("devicePath") == target for each in devices[:at]):
            errors.append(invalid(f"{where}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            errors.append(invalid(f"{where}.devicePath", target, "can not contain backsteps ('..')"))
        if name in mounted:
            errors.append(invalid(f"{where}.name", name, "must not already exist in volumeMounts"))
        if target and target in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{where}.devicePath", target, detail))
    return errors
