"""Warnings about pods and pod templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.record import Warnings, no_warnings

_OLD_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_VOLUMES = {
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def warn_of_pod(pod: Json) -> Iterable[str]:
    """Warn of what is deprecated, ambiguous or without effect in a pod."""
    return _spec(pod.get("spec") or {}, "spec")


def template_warnings(*path: str, own: Callable[[Json], Iterable[str]] = no_warnings) -> Warnings:
    """Warn of the pod template at a path: in a new object, beside its own warnings, and in a new generation of it."""

    def template(document: Json) -> Iterable[str]:
        node = document
        for part in path:
            node = node.get(part) or {}
        return _spec(node.get("spec") or {}, ".".join((*path, "spec")))

    def create(document: Json) -> Iterable[str]:
        yield from own(document)
        yield from template(document)

    def update(new: Json, old: Json) -> Iterable[str]:
        return () if new["metadata"].get("generation") == old["metadata"].get("generation") else template(new)

    return Warnings(create=create, update=update)


def warn_of_host_name(name: str) -> tuple[str, ...]:
    """Warn of a pod's name that cannot be its host name."""
    if "." not in name and len(name) <= 63:
        return ()
    effect = "this is used in the Pod's hostname, which can result in surprising behavior"
    return _warn_of_label(name, effect)


def _warn_of_label(name: str, effect: str) -> tuple[str, ...]:
    problems = naming.label_problems(name)
    return (f"metadata.name: {effect}; a DNS label is recommended: [{' '.join(problems)}]",) if problems else ()


def warn_of_name(document: Json) -> tuple[str, ...]:
    """Warn of a Job's name that its pods cannot have as their host name."""
    effect = "this is used in Pod names and hostnames, which can result in surprising behavior"
    return _warn_of_label(document["metadata"].get("name", ""), effect)


def _spec(spec: Json, path: str) -> Iterator[str]:
    for label in spec.get("nodeSelector") or ():
        if label in _OLD_LABELS:
            yield f"{path}.nodeSelector[{label}]: {_OLD_LABELS[label]}"
    for at, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            where = f"{path}.topologySpreadConstraints[{at}].labelSelector"
            yield f"{where}: a null labelSelector results in matching no pod"
    for at, volume in enumerate(spec.get("volumes") or ()):
        for kind in volume.keys() & _OLD_VOLUMES.keys():
            yield f"{path}.volumes[{at}].{kind}: {_OLD_VOLUMES[kind]}"
    secrets = [secret.get("name", "") for secret in spec.get("imagePullSecrets") or ()]
    for at, name in enumerate(secrets):
        if name in secrets[:at]:
            yield f'{path}.imagePullSecrets[{at}].name: duplicate name "{name}"'
    for at, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{at}].name: invalid empty name ""'
    for volume in spec.get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        if sources and not any(sources):
            yield f'volume "{volume.get("name", "")}" (Projected) has no sources provided'
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    for key in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(key) or ()):
            yield from _container(container, f"{path}.{key}[{at}]")
    yield from _ports(spec, path)


def _ports(spec: Json, path: str) -> Iterator[str]:
    """Warn of ports that two containers declare."""
    seen: list[tuple[Json, str]] = []
    for key in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(key) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                where = f"{path}.{key}[{at}].ports[{number}]"
                if port.get("hostIP") and not port.get("hostPort"):
                    yield f"{where}: hostIP set without hostPort: {_shown_port(port)}"
                for other, place in seen:
                    if _number(other) == _number(port):
                        yield from _shared(port, other, f"{where}: {{}} port definition with {place}")
                seen.append((port, where))


def _shared(port: Json, other: Json, template: str) -> Iterator[str]:
    if (port.get("hostIP"), port.get("hostPort")) == (other.get("hostIP"), other.get("hostPort")):
        yield template.format("duplicate")
    elif not port.get("hostPort") or not other.get("hostPort"):
        yield template.format("overlapping")
    elif port["hostPort"] == other["hostPort"] and bool(port.get("hostIP")) != bool(other.get("hostIP")):
        yield template.format("dangerously ambiguous")


def _number(port: Json) -> tuple[object, object]:
    return port.get("containerPort"), port.get("protocol", "TCP")


def _shown_port(port: Json) -> str:
    numbers = f"HostPort:0 ContainerPort:{port.get('containerPort', 0)} Protocol:{port.get('protocol', '')}"
    return f"{{Name:{port.get('name', '')} {numbers} HostIP:{port['hostIP']}}}"


def _container(container: Json, path: str) -> Iterator[str]:
    yield from _hidden(container.get("env") or (), path)
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
