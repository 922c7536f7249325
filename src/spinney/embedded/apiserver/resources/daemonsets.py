"""DaemonSets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.apps import TEMPLATE_GENERATION
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError
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
    metadata = document["metadata"]
    metadata["annotations"] = {TEMPLATE_GENERATION: "1", **(metadata.get("annotations") or {})}
    default_template(spec)
    fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)


def _prepare_update(core: Core, call: Call, new: Json, old: Json) -> None:
    """Count the templates of a DaemonSet in its annotation."""
    key = TEMPLATE_GENERATION
    count = int((old["metadata"].get("annotations") or {}).get(key, "1"))
    if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
        count += 1
    new["metadata"]["annotations"] = {**(new["metadata"].get("annotations") or {}), key: str(count)}


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = check_selector_and_template(spec, "daemonset", "DaemonSet")
    errors += check_count(spec, "minReadySeconds") + check_count(spec, "revisionHistoryLimit")
    return errors + rollouts.check_daemons(spec.get("updateStrategy") or {}, "spec.updateStrategy")


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    counts = [
        status.get(key, 0)
        for key in (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        )
    ]
    chosen = ((spec.get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    nodes = ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or "<none>"
    return [
        cells.name(document),
        *counts,
        nodes,
        cells.age(document, now),
        *cells.containers(spec),
        cells.selector(spec),
    ]


DAEMON_SETS = Resource(
    group="apps",
    kind="DaemonSet",
    plural="daemonsets",
    short_names=("ds",),
    categories=("all",),
    subresources=("status",),
    default=_default,
    complete=complete.status_members(
        dict.fromkeys(("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0),
        times=("lastTransitionTime",),
    ),
    prepare_update=_prepare_update,
    has_generation=True,
    checks=Checks(object=_check, update=check_selector_update),
    table=Table(
        "Name,#Desired,#Current,#Ready,#Up-to-date,#Available,Node Selector,Age,+Containers,+Images,+Selector", _cells
    ),
)
