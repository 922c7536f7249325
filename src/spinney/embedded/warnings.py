"""What Kubernetes warns of in an object that it takes nevertheless: pods and what makes them, and definitions."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.validation.schemas import strange_formats

_TEMPLATES = {
    "/podtemplates": ("template",),
    "/replicationcontrollers": ("spec", "template"),
    "apps/deployments": ("spec", "template"),
    "apps/replicasets": ("spec", "template"),
    "apps/statefulsets": ("spec", "template"),
    "apps/daemonsets": ("spec", "template"),
    "batch/jobs": ("spec", "template"),
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
}


def warnings_of(table: str, document: Json) -> list[str]:
    """The warnings of a pod, of the template of a workload, or of a definition."""
    if table == "apiextensions.k8s.io/customresourcedefinitions":
        return list(_definition(document))
    if table == "/pods":
        return list(_spec(document.get("spec") or {}, "spec"))
    path = _TEMPLATES.get(table)
    if path is None:
        return []
    node = document
    for part in path:
        node = node.get(part) or {}
    return list(_spec(node.get("spec") or {}, ".".join((*path, "spec"))))


def _definition(document: Json) -> Iterator[str]:
    for version in (document.get("spec") or {}).get("versions") or ():
        for name in strange_formats((version.get("schema") or {}).get("openAPIV3Schema")):
            yield f'unrecognized format "{name}"'


def _spec(spec: Json, path: str) -> Iterator[str]:
    for at, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            where = f"{path}.topologySpreadConstraints[{at}].labelSelector"
            yield f"{where}: a null labelSelector results in matching no pod"
    for at, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{at}].name: invalid empty name ""'
    for volume in spec.get("volumes") or ():
        if "projected" in volume and not any(volume["projected"].get("sources") or ()):
            yield f'volume "{volume.get("name", "")}" (Projected) has no sources provided'
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    for key in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(key) or ()):
            yield from _container(container, f"{path}.{key}[{at}]")


def _container(container: Json, path: str) -> Iterator[str]:
    yield from _hidden(container.get("env") or (), path)
    seen: dict[tuple[object, ...], int] = {}
    for at, port in enumerate(container.get("ports") or ()):
        key = (port.get("containerPort"), port.get("protocol", "TCP"), port.get("hostPort"), port.get("hostIP"))
        if key in seen:
            yield f"{path}.ports[{at}]: duplicate port definition with {path}.ports[{seen[key]}]"
        seen.setdefault(key, at)
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        for name in ("memory", "ephemeral-storage"):
            amount = (resources.get(kind) or {}).get(name)
            if amount is not None and quantity.exact(str(amount)).denominator != 1:
                where = f"{path}.resources.{kind}[{name}]"
                yield f'{where}: fractional byte value "{amount}" is invalid, must be an integer'


def _hidden(variables: list[Json] | tuple[()], path: str) -> Iterator[str]:
    names: set[str] = set()
    for at, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in names:
            yield f'{path}.env[{at}]: hides previous definition of "{name}", which may be dropped when using apply'
        names.add(name)
