"""IngressClasses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, too_long, unsupported
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.ingresses import CLASS_LENGTH, check_reference
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import names


def _default(document: Json) -> None:
    parameters = document.setdefault("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    errors = [too_long("spec.controller", CLASS_LENGTH)] if len(controller) > CLASS_LENGTH else []
    errors += names.check_domain_path(controller, "spec.controller")
    if parameters is None:
        return errors
    path = "spec.parameters"
    errors += check_reference(parameters, path)
    scope, namespace = parameters.get("scope", "Cluster"), parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        errors.append(unsupported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Namespace" and namespace is None:
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Cluster" and namespace is not None:
        errors.append(forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    spec, old_spec = (each.get("spec") or {} for each in (new, old))
    if spec.get("controller") == old_spec.get("controller"):
        return []
    return [invalid("spec.controller", spec.get("controller", ""), "field is immutable")]


def _cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    reference = spec.get("parameters")
    parameters = (
        f"{cells.qualified(reference.get('kind', ''), reference.get('apiGroup'))}/{reference.get('name', '')}"
        if reference
        else "<none>"
    )
    return [cells.name(document), spec.get("controller", ""), parameters, cells.age(document, now)]


INGRESS_CLASSES = Resource(
    group="networking.k8s.io",
    kind="IngressClass",
    plural="ingressclasses",
    namespaced=False,
    default=_default,
    has_generation=True,
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Controller,Parameters,Age", _cells),
)
