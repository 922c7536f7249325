"""RuntimeClasses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import containers, names, pod_placement


def _check(document: Json) -> list[FieldError]:
    handler, scheduling = document.get("handler", ""), document.get("scheduling") or {}
    errors = [invalid("handler", handler, problem) for problem in naming.label_problems(handler)]
    overhead = (document.get("overhead") or {}).get("podFixed")
    if overhead:
        errors += containers.check_resources({"limits": overhead}, "overhead")
    errors += names.check_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations = scheduling.get("tolerations") or []
    errors += pod_placement.check_tolerations(tolerations, "scheduling.tolerations")
    return errors + [
        duplicate(f"scheduling.tolerations[{at}]", each)
        for at, each in enumerate(tolerations)
        if each in tolerations[:at]
    ]


def _cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), document.get("handler", ""), cells.age(document, now)]


RUNTIME_CLASSES = Resource(
    group="node.k8s.io",
    kind="RuntimeClass",
    plural="runtimeclasses",
    namespaced=False,
    allow_unconditional_update=False,
    allow_create_on_update=True,
    checks=Checks(qualified_finalizers=False, object=_check),
    table=Table("Name,Handler,Age", _cells),
)
