"""Jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.ages import duration
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation import job_specs

_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def _default_spec(spec: Json) -> None:
    default_template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    fill(
        spec,
        parallelism=1,
        backoffLimit=2**31 - 1 if per_index else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
    )
    policy = spec.get("podFailurePolicy")
    if policy is not None and not policy.get("rules"):
        policy["rules"] = None
    for rule in (policy or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition.setdefault("status", "True")
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")


def _default(document: Json) -> None:
    _default_spec(document.setdefault("spec", {}))


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    metadata, spec = document["metadata"], document["spec"]
    if spec.get("manualSelector"):
        own = (spec["template"].get("metadata") or {}).get("labels")
        if own and not metadata.get("labels"):
            metadata["labels"] = dict(own)
        return
    name, uid = metadata.get("name", ""), metadata["uid"]
    template = spec["template"]
    # Labels that the user set are kept here; the checks refuse wrong ones.
    labels = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        **((template.get("metadata") or {}).get("labels") or {}),
    }
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    selector = spec.get("selector") or {}
    chosen = {"batch.kubernetes.io/controller-uid": uid, **(selector.get("matchLabels") or {})}
    spec["selector"] = {**selector, "matchLabels": chosen}


_complete_status = complete.status_members(times=("lastProbeTime", "lastTransitionTime"))


def _complete(document: Json) -> Json:
    """Give a Job without labels those of its pods."""
    document = _complete_status(document)
    metadata, template = document["metadata"], (document.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if metadata.get("labels") or not labels:
        return document
    return {**document, "metadata": {**metadata, "labels": dict(labels)}}


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 1)
    done = status.get("succeeded", 0)
    if completions is not None:
        shown = f"{done}/{completions}"
    else:
        shown = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    took = ""
    if status.get("startTime"):
        end = datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now
        took = duration(int((end - datetime.fromisoformat(status["startTime"])).total_seconds()))
    return [
        cells.name(document),
        _state(document),
        shown,
        took,
        cells.age(document, now),
        *cells.containers(spec),
        cells.selector(spec),
    ]


def _state(document: Json) -> str:
    conditions = cells.true_conditions(cells.status(document))
    for kind in ("Complete", "Failed"):
        if kind in conditions:
            return kind
    if document["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in conditions:
            return kind
    return "Running"


JOBS = Resource(
    group="batch",
    kind="Job",
    plural="jobs",
    categories=("all",),
    subresources=("status",),
    default=_default,
    complete=_complete,
    prepare_create=_prepare_create,
    has_generation=True,
    deletion=Deletion(orphans_by_default=True, warning=_ORPHANS),
    checks=Checks(object=job_specs.check, update=job_specs.check_update),
    table=Table("Name,Status,Completions,Duration,Age,+Containers,+Images,+Selector", _cells),
    selectable=("status.successful",),
)
