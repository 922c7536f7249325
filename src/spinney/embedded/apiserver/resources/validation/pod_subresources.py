"""Checks of the subresources `ephemeralcontainers` and `resize` of pods."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, not_found_field
from spinney.embedded.apiserver.resources.pod_admission import qos_class_of
from spinney.embedded.apiserver.resources.validation import containers, pod_specs

# In the order in which Kubernetes' type has them.
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
)
_RESIZABLE = ("cpu", "memory")


def check_ephemeral(new: Json, old: Json) -> list[FieldError]:
    """Refuse ephemeral containers that were changed or removed."""
    ephemeral, old_ephemeral = (
        new["spec"].get("ephemeralContainers") or [],
        old["spec"].get("ephemeralContainers") or [],
    )
    return _ephemeral(new["spec"], ephemeral) + _kept(ephemeral, old_ephemeral)


def _ephemeral(spec: Json, ephemeral: list[Json]) -> list[FieldError]:
    names = [each["name"] for key in ("containers", "initContainers") for each in spec.get(key) or ()]
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
    seen, errors = set(names), list[FieldError]()
    for at, container in enumerate(ephemeral):
        path = f"spec.ephemeralContainers[{at}]"
        plain = {key: value for key, value in container.items() if key not in _NOT_EPHEMERAL}
        errors += containers.check_container(plain, path, volumes, seen)
        detail = "cannot be set for an Ephemeral Container"
        errors += [forbidden_field(f"{path}.{key}", detail) for key in _NOT_EPHEMERAL if container.get(key)]
        target = container.get("targetContainerName")
        if target and target not in names:
            errors.append(not_found_field(f"{path}.targetContainerName", target))
    return errors


def _kept(ephemeral: list[Json], old_ephemeral: list[Json]) -> list[FieldError]:
    now = {container.get("name"): container for container in ephemeral}
    errors: list[FieldError] = []
    for container in old_ephemeral:
        name = container["name"]
        if name not in now:
            happened = "removed"
        elif now[name] != container:
            happened = "changed"
        else:
            continue
        detail = f'existing ephemeral containers "{name}" may not be {happened}\n'
        errors.append(forbidden_field("spec.ephemeralContainers", detail))
    return errors


def check_resize(new: Json, old: Json) -> list[FieldError]:
    """Refuse a resize that changes more than the CPU and memory of containers."""
    spec, old_spec = new["spec"], old["spec"]
    errors = pod_specs.check_spec(spec, "spec")
    before = qos_class_of(old_spec)
    if qos_class_of(spec) != before:
        errors.append(invalid("spec", before, "Pod QOS Class may not change as a result of resizing"))
    for key in ("containers", "initContainers"):
        containers_now, containers_before = spec.get(key) or [], old_spec.get(key) or []
        if len(containers_now) != len(containers_before):
            return [*errors, forbidden_field(f"spec.{key}", "containers may not be added or removed on resize")]
        if any(
            container.get("name") != old_container.get("name")
            for container, old_container in zip(containers_now, containers_before, strict=True)
        ):
            return [*errors, forbidden_field(f"spec.{key}", "containers may not be renamed or reordered on resize")]
        for container, old_container in zip(containers_now, containers_before, strict=True):
            errors += _removed(container, old_container)
            if _fixed(container) != _fixed(old_container):
                return [*errors, forbidden_field("spec", "only cpu and memory resources are mutable")]
    return errors


def _removed(container: Json, before: Json) -> list[FieldError]:
    for kind in ("limits", "requests"):
        gone = set((before.get("resources") or {}).get(kind) or ()) - set(
            (container.get("resources") or {}).get(kind) or ()
        )
        if gone & set(_RESIZABLE):
            return [forbidden_field("spec", f"resource {kind} cannot be removed")]
    return []


def _fixed(container: Json) -> Json:
    """A container without the fields that a resize may change."""
    resources = container.get("resources") or {}
    kept = {
        kind: {name: amount for name, amount in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        for kind in ("limits", "requests")
    }
    return {**container, "resources": kept}
