"""Workloads of scheduling.k8s.io, which describe gangs of pods."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required, too_many
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.names import check_unchanged


def _check(document: Json) -> list[FieldError]:
    """A Workload of scheduling.k8s.io."""
    spec = document.get("spec") or {}
    groups = spec.get("podGroups") or ()
    errors: list[FieldError] = []
    reference = spec.get("controllerRef")
    if reference is not None and reference.get("apiGroup"):
        group, where = reference["apiGroup"], "spec.controllerRef.apiGroup"
        errors += [invalid(where, group, problem) for problem in naming.subdomain_problems(group)]
    if reference is not None:
        errors += [required(f"spec.controllerRef.{key}") for key in ("kind", "name") if not reference.get(key)]
    if not groups:
        return [*errors, required("spec.podGroups", "must have at least one item")]
    if len(groups) > 8:
        return [*errors, too_many("spec.podGroups", len(groups), 8)]
    seen: set[str] = set()
    for at, group in enumerate(groups):
        where = f"spec.podGroups[{at}]"
        name = group.get("name", "")
        errors += [invalid(f"{where}.name", name, problem) for problem in naming.label_problems(name)]
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _check_policy(group.get("policy") or {}, f"{where}.policy")
    return errors


def _check_policy(policy: Json, path: str) -> list[FieldError]:
    policies = [key for key in ("basic", "gang") if policy.get(key) is not None]
    if not policies:
        return [required(path, "exactly one of `basic`, `gang` is required")]
    if len(policies) > 1:
        return [
            invalid(
                path, "{`basic`, `gang`}", "exactly one of `basic`, `gang` is required, but multiple fields are set"
            )
        ]
    least = (policy.get("gang") or {}).get("minCount", 1)
    if least <= 0:
        return [invalid(f"{path}.gang.minCount", least, "must be greater than zero")]
    return []


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a Workload."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    settled = [] if old_spec.get("controllerRef") is None else ["controllerRef"]
    return check_unchanged(spec, old_spec, [*settled, "podGroups"])


WORKLOADS = Resource(
    group="scheduling.k8s.io",
    version="v1alpha1",
    kind="Workload",
    plural="workloads",
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Age", cells.plain),
)
