"""Deployments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import rollouts
from spinney.embedded.apiserver.resources.validation.workloads import (
    check_count,
    check_selector_and_template,
    check_selector_update,
)


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    default_template(spec)
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = check_count(spec, "replicas") + check_selector_and_template(spec, "deployment", "ReplicaSet")
    errors += rollouts.check_deployment(spec.get("strategy") or {}, "spec.strategy")
    errors += check_count(spec, "minReadySeconds") + check_count(spec, "revisionHistoryLimit")
    errors += check_count(spec, "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, detail))
    return errors


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    return [
        cells.name(document),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        cells.age(document, now),
        *cells.containers(spec),
        cells.selector(spec),
    ]


DEPLOYMENTS = Resource(
    group="apps",
    kind="Deployment",
    plural="deployments",
    short_names=("deploy",),
    categories=("all",),
    subresources=("scale", "status"),
    default=_default,
    complete=complete.status_members(times=("lastUpdateTime", "lastTransitionTime")),
    status_keeps=("labels",),
    has_generation=True,
    generation_covers="annotations",
    checks=Checks(
        object=_check,
        update=check_selector_update,
    ),
    table=Table("Name,Ready,Up-to-date,Available,Age,+Containers,+Images,+Selector", _cells),
)
