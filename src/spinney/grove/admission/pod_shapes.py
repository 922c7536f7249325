"""The shape of pod specs: the CRD passes on any, and the other checks read them."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json
from spinney.grove.admission.problems import Problems

# Among them those that the dry run leaves out.
_TEXTS = (
    "schedulerName",
    "priorityClassName",
    "serviceAccountName",
    "runtimeClassName",
    "restartPolicy",
    "nodeName",
)
_KINDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def check(pcs: Json) -> Problems:
    """Every member of a template that the checks read and that is of another type than in a pod."""
    problems = Problems()
    template = (pcs.get("spec") or {}).get("template") or {}
    for position, clique in enumerate(template.get("cliques") or ()):
        pod_spec = (clique.get("spec") or {}).get("podSpec") or {}
        _check_pod_spec(pod_spec, f"spec.template.cliques[{position}].spec.podSpec", problems)
    return problems


def _check_pod_spec(pod_spec: Json, path: str, problems: Problems) -> None:
    for key in _TEXTS:
        _is(str, pod_spec.get(key), f"{path}.{key}", problems)
    for kind in ("initContainers", "containers"):
        for where, container in _objects(pod_spec.get(kind), f"{path}.{kind}", problems):
            _objects(container.get("env"), f"{where}.env", problems)
            _check_resources(container.get("resources"), f"{where}.resources", problems)


def _check_resources(resources: Any, path: str, problems: Problems) -> None:
    if _is(dict, resources, path, problems):
        for key in ("requests", "limits"):
            _is(dict, resources.get(key), f"{path}.{key}", problems)


def _objects(value: Any, path: str, problems: Problems) -> list[tuple[str, Json]]:
    """The objects of a list, each with its path."""
    if not _is(list, value, path, problems):
        return []
    entries = [(f"{path}[{index}]", entry) for index, entry in enumerate(value)]
    return [(where, entry) for where, entry in entries if _is(dict, entry, where, problems)]


def _is(kind: type, value: Any, path: str, problems: Problems) -> bool:
    """Whether a value is there and of its type; another type is a problem."""
    if value is not None and not isinstance(value, kind):
        problems.invalid(path, value, f"must be {_KINDS[kind]}")
    return isinstance(value, kind)
