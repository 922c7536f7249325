"""Checks of a pod's volumes, and of their mounts in containers."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.apiserver.resources.token_volumes import TOKEN
from spinney.embedded.apiserver.resources.validation import claim_specs, downward_api, names

# The required member of each kind of volume.
_NEEDED = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "csi": "driver",
}
_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def check_volumes(volumes: list[Json], path: str, by_name: dict[str, Json]) -> list[FieldError]:
    """Check the volumes of a pod, and add them to `by_name`."""
    errors: list[FieldError] = []
    for at, volume in enumerate(volumes):
        where = f"{path}[{at}]"
        name = volume.get("name", "")
        wrong = _source(volume, where) + names.check_label_name(name, f"{where}.name")
        if name in by_name:
            wrong.append(duplicate(f"{where}.name", name))
        if not wrong:
            by_name[name] = volume
        errors += wrong
    return errors


def _source(volume: Json, path: str) -> list[FieldError]:
    if volume.get("projected") is TOKEN:
        # Every pod has this volume, and it is valid.
        return []
    sources = [key for key in volume if key != "name"]
    errors: list[FieldError] = []
    for key in sources[:1]:
        needed = _NEEDED.get(key)
        if needed and not volume[key].get(needed):
            errors.append(required(f"{path}.{key}.{needed}"))
        if key in _CHECKS:
            errors += _CHECKS[key](volume[key], f"{path}.{key}")
    return errors + [
        forbidden_field(f"{path}.{extra}", "may not specify more than 1 volume type") for extra in sources[1:]
    ]


def _empty(source: Json, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.exact(limit) < 0:
        return [forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _mode(source: Json, key: str, path: str) -> list[FieldError]:
    mode = source.get(key)
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(f"{path}.{key}", mode, _MODE)]


def _keys(source: Json, path: str) -> list[FieldError]:
    """Check the files of a Secret or a ConfigMap."""
    return _mode(source, "defaultMode", path) + _items(source, path)


def _items(source: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{at}]"
        errors += [required(f"{where}.{key}") for key in ("key", "path") if not item.get(key)]
        errors += names.check_file_path(item.get("path", ""), f"{where}.path") + _mode(item, "mode", where)
    return errors


def _downward(source: Json, path: str) -> list[FieldError]:
    errors = _mode(source, "defaultMode", path)
    for item in source.get("items") or ():
        errors += _downward_file(item, path)
    return errors


def _downward_file(item: Json, path: str) -> list[FieldError]:
    errors = [] if item.get("path") else [required(f"{path}.path")]
    errors += names.check_file_path(item.get("path", ""), f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        errors += downward_api.check_field(field, f"{path}.fieldRef", downward_api.FILES)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif resource is not None:
        errors += downward_api.check_resource(resource, f"{path}.resourceFieldRef", in_file=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode(item, "mode", path)


def _host_path(source: Json, path: str) -> list[FieldError]:
    target, kind = source.get("path", ""), source.get("type", "")
    if not target:
        return [required(f"{path}.path")]
    errors = [invalid(f"{path}.path", target, "must not contain '..'")] if ".." in target.split("/") else []
    return errors if kind in _PATHS else [*errors, unsupported(f"{path}.type", kind, _PATHS)]


def _nfs(source: Json, path: str) -> list[FieldError]:
    return [required(f"{path}.{key}") for key in ("server", "path") if not source.get(key)]


def _ephemeral(source: Json, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_specs.check_claim_spec(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec")


_CHECKS: dict[str, Callable[[Json, str], list[FieldError]]] = {
    "emptyDir": _empty,
    "secret": _keys,
    "configMap": _keys,
    "downwardAPI": _downward,
    "ephemeral": _ephemeral,
    "hostPath": _host_path,
    "nfs": _nfs,
}


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
        errors += _sub_paths(mount, path, where)
    return errors


def _sub_paths(mount: Json, path: str, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub_path:
        errors += names.check_descending(sub_path, f"{path}.subPath")
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{where}.subPathExpr", expression, detail))
        errors += names.check_descending(expression, f"{path}.subPathExpr")
    return errors
