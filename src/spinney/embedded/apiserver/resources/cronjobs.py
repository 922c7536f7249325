"""CronJobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.ages import age
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import job_specs


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    inner = template.setdefault("spec", {})
    default_template(inner)


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else "<none>"
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        cells.name(document),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        str(bool(spec.get("suspend"))).capitalize(),
        len(status.get("active") or ()),
        last,
        cells.age(document, now),
        *cells.containers(inner),
        cells.selector(inner),
    ]


CRON_JOBS = Resource(
    group="batch",
    kind="CronJob",
    plural="cronjobs",
    short_names=("cj",),
    categories=("all",),
    subresources=("status",),
    default=_default,
    has_generation=True,
    checks=Checks(object=job_specs.check_cron_job),
    table=Table("Name,Schedule,Timezone,?Suspend,#Active,Last Schedule,Age,+Containers,+Images,+Selector", _cells),
)
