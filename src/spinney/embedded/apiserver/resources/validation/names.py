"""Checks of names, labels, annotations, addresses and ports in the fields of an object."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, too_long

CONFIG_KEY = re.compile(r"^[-._a-zA-Z0-9]+\Z")
ENV_NAME = re.compile(r"^[ -<>-~]+\Z")
KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
IMMUTABLE = "field is immutable"
ANNOTATIONS_LIMIT = 256 * 1024


def changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The members that an update changed, for the message that refuses it."""
    return "changed: " + ", ".join(sorted(key for key in {**old, **new} if old.get(key) != new.get(key)))


def with_old(new: Mapping[str, Any], old: Mapping[str, Any], keys: Collection[str]) -> Json:
    """The new members, with the old values of some."""
    return {key: value for key, value in new.items() if key not in keys} | {key: old[key] for key in keys if key in old}


def check_unchanged(
    new: Mapping[str, Any], old: Mapping[str, Any], keys: Iterable[str], path: str = ""
) -> list[FieldError]:
    """Refuse a change of members that never change."""
    return [invalid(f"{path}{key}", new.get(key), IMMUTABLE) for key in keys if new.get(key) != old.get(key)]


def check_labels(labels: Mapping[str, Any] | None, field: str) -> list[FieldError]:
    """Check label keys and values."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        for problem in naming.qualified_problems(key):
            errors.append(invalid(field, key, problem))
        for problem in naming.value_problems(value):
            errors.append(invalid(field, value, problem))
    return errors


def check_annotations(annotations: Mapping[str, str] | None, field: str) -> list[FieldError]:
    """Check annotation keys, and the total size of annotations."""
    errors: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += [invalid(field, key, problem) for problem in naming.qualified_problems(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_LIMIT:
        errors.append(too_long(field, ANNOTATIONS_LIMIT))
    return errors


def check_address(address: str, field: str) -> list[FieldError]:
    """Check an IP address."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [invalid(field, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def check_port(port: int | str, field: str) -> list[FieldError]:
    """Check a port number or name."""
    if isinstance(port, int):
        return [] if 0 < port < 65536 else [invalid(field, port, "must be between 1 and 65535, inclusive")]
    return [invalid(field, port, problem) for problem in naming.port_name_problems(port)]


def check_descending(path: str, field: str) -> list[FieldError]:
    """Refuse a path that is absolute or contains `..`."""
    errors = [invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    if ".." in path.split("/"):
        errors.append(invalid(field, path, "must not contain '..'"))
    return errors


def check_file_path(path: str, field: str) -> list[FieldError]:
    """Check the path of a file in a volume."""
    errors = check_descending(path, field)
    if path.startswith("..") and not path.startswith("../") and path != "..":
        errors.append(invalid(field, path, "must not start with '..'"))
    return errors


def check_config_key(key: str, field: str) -> list[FieldError]:
    """Check a key of a ConfigMap or a Secret."""
    errors = [invalid(field, key, "must be no more than 253 characters")] if len(key) > 253 else []
    if not CONFIG_KEY.match(key):
        errors.append(invalid(field, key, KEY_RULE))
    if key in (".", ".."):
        errors.append(invalid(field, key, f"must not be '{key}'"))
    elif key.startswith(".."):
        errors.append(invalid(field, key, "must not start with '..'"))
    return errors


def check_label_name(name: Any, field: str) -> list[FieldError]:
    """Check a name that is required and has to be a DNS label."""
    if not name:
        return [required(field)]
    return [invalid(field, name, problem) for problem in naming.label_problems(name)]
