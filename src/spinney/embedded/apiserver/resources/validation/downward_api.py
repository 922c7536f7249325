"""Checks of downward API references, in environment variables and in volumes."""

from __future__ import annotations

import re

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported

_KNOWN = frozenset(
    (
        *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.annotations", "metadata.labels"),
        *("spec.nodeName", "spec.serviceAccountName", "spec.restartPolicy", "spec.schedulerName", "spec.hostname"),
        *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "status.phase"),
    )
)
VARIABLES = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_SUBSCRIPTED = re.compile(r"^(.*)\['(.*)'\]\Z")
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE = ("limits.hugepages-", "requests.hugepages-")


def check_field(selector: Json, path: str, allowed: tuple[str, ...]) -> list[FieldError]:
    """Check a reference to a field of the pod."""
    version, field = selector.get("apiVersion", "v1"), selector.get("fieldPath", "")
    if not field:
        return [required(f"{path}.fieldPath")]
    subscripted = _SUBSCRIPTED.match(field)
    name = subscripted[1] if subscripted else field
    why = f"unsupported pod version: {version}" if version != "v1" else ""
    if not why and name not in _KNOWN:
        why = f"field label not supported: {field}"
    if why:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")]
    if not subscripted:
        return [] if field in allowed else [unsupported(f"{path}.fieldPath", field, allowed)]
    if name not in ("metadata.annotations", "metadata.labels"):
        return [invalid(path, name, "does not support subscript")]
    key = subscripted[2].lower() if name == "metadata.annotations" else subscripted[2]
    return [invalid(path, key, problem) for problem in naming.qualified_problems(key)]


def check_resource(selector: Json, path: str, *, in_file: bool = False) -> list[FieldError]:
    """Check a reference to a resource of a container."""
    errors: list[FieldError] = []
    resource = selector.get("resource", "")
    if in_file and not selector.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        errors.append(unsupported(f"{path}.resource", resource, _RESOURCES))
    return errors
