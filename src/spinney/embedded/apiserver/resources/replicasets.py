"""ReplicaSets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.workloads import (
    check_count,
    check_selector_and_template,
    check_selector_update,
)


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    default_template(spec)
    spec.setdefault("replicas", 1)


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = check_count(spec, "replicas") + check_count(spec, "minReadySeconds")
    return errors + check_selector_and_template(spec, "deployment", "ReplicaSet")


def replica_cells(document: Json, now: datetime) -> list[Any]:
    """The cells of a ReplicaSet or ReplicationController."""
    spec, status = cells.spec(document), cells.status(document)
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [cells.name(document), *counts, cells.age(document, now), *cells.containers(spec), cells.selector(spec)]


REPLICA_SETS = Resource(
    group="apps",
    kind="ReplicaSet",
    plural="replicasets",
    short_names=("rs",),
    categories=("all",),
    subresources=("scale", "status"),
    default=_default,
    complete=complete.status_members({"replicas": 0}, times=("lastTransitionTime",)),
    has_generation=True,
    checks=Checks(
        object=_check,
        update=check_selector_update,
    ),
    table=Table("Name,#Desired,#Current,#Ready,Age,+Containers,+Images,+Selector", replica_cells),
)
