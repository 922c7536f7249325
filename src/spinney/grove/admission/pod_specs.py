"""Checks of a clique's pod spec that the API server would not make, or only when the first pod is created."""

from __future__ import annotations

from typing import Any

from spinney.api.duration import seconds
from spinney.api.meta import Json
from spinney.grove.admission import syntax
from spinney.grove.admission.problems import Problems


def check(pod_spec: Json, path: str, problems: Problems) -> None:
    """Environment variables of every container: valid names, each once."""
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(pod_spec.get(kind) or ()):
            _check_variables(container, f"{path}.{kind}[{position}].env", problems)
    if not pod_spec.get("containers"):
        problems.required(f"{path}.containers", "a pod needs at least one container")


def check_new(pod_spec: Json, path: str, problems: Problems) -> None:
    """What only a new set is refused for: placement that would fight with the gang's."""
    if pod_spec.get("topologySpreadConstraints"):
        problems.forbidden(
            f"{path}.topologySpreadConstraints", "must not be set; use topologyConstraint to place a gang"
        )
    if pod_spec.get("nodeName"):
        problems.forbidden(f"{path}.nodeName", "must not be set; use nodeSelector or affinity to choose nodes")


def check_duration(value: Any, path: str, problems: Problems) -> None:
    """A duration that is longer than zero."""
    if value is None:
        return
    try:
        length = seconds(str(value))
    except ValueError:
        problems.invalid(path, value, "not a duration; write it like 30s, 10m or 4h")
        return
    if length <= 0:
        problems.invalid(path, value, "must be greater than 0; write it like 30s, 10m or 4h")


def _check_variables(container: Json, path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env") or ()):
        name = str(variable.get("name") or "")
        if not syntax.is_variable(name):
            problems.invalid(
                f"{path}[{position}].name", name, "a variable's name is printable ASCII without '='; rename it"
            )
        elif name in seen:
            problems.duplicate(f"{path}[{position}].name", name, "each variable may be set once; remove one")
        seen.add(name)
