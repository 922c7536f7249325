"""Events, of the core group and of `events.k8s.io`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.ages import age
from spinney.embedded.apiserver.resources.record import Checks, OtherVersion, Resource, Table

_LENGTHS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_NEWER = "events.k8s.io/v1"
_MEMBERS = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OPTIONAL_MEMBERS = ("reportingComponent", "reportingInstance")
_STORED_MEMBERS = {new: old for old, new in _MEMBERS.items()}
_SELECTABLE = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)


def _check(document: Json) -> list[FieldError]:
    if document.get("apiVersion") == _NEWER:
        return _common(_to_stored(document), "reportingController")
    return _common(document, "reportingComponent")


def _common(event: Json, controller: str) -> list[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace", "")
    own = event["metadata"].get("namespace", "")
    mismatch = invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not event.get("eventTime"):
        return [mismatch] if (about or "default") != own else []
    errors = [mismatch] if not about and own not in ("default", "kube-system") else []
    reporter = event.get("reportingComponent", "")
    if not reporter:
        errors.append(required(controller))
    errors += [invalid(controller, reporter, problem) for problem in naming.qualified_problems(reporter)]
    for key, limit in _LENGTHS.items():
        value = event.get(key, "")
        if not value and key != "message":
            errors.append(required(key))
        if len(value) > limit:
            errors.append(invalid(key, "", f"can have at most {limit} characters"))
    return errors


def _from_stored(document: Json) -> Json:
    return {_MEMBERS.get(key, key): value for key, value in document.items() if value or key not in _OPTIONAL_MEMBERS}


def _to_stored(document: Json) -> Json:
    """Convert an event of `events.k8s.io` to the core group."""
    return {_STORED_MEMBERS.get(key, key): value for key, value in document.items()}


def _cells(document: Json, now: datetime) -> list[Any]:
    about = document.get("involvedObject") or document.get("regarding") or {}
    series = document.get("series") or {}
    first = document.get("firstTimestamp") or document.get("eventTime")
    last = series.get("lastObservedTime") or document.get("lastTimestamp") or first
    count = series.get("count") or document.get("count") or 1
    source = document.get("source") or {}
    origin = source.get("component") or document.get("reportingComponent") or ""
    if instance := source.get("host") or document.get("reportingInstance"):
        origin = f"{origin}, {instance}"
    since = age(last, now)
    return [
        since,
        document.get("type", ""),
        document.get("reason", ""),
        "/".join(filter(None, (about.get("kind", "").lower(), about.get("name")))),
        about.get("fieldPath", ""),
        origin,
        (document.get("message") or document.get("note") or "").strip(),
        age(first, now),
        count,
        cells.name(document),
    ]


_NEWER_VERSION = OtherVersion(
    group="events.k8s.io",
    version="v1",
    from_stored=_from_stored,
    to_stored=_to_stored,
    selectable={
        "reportingController": "reportingComponent",
        **{f"regarding.{name.partition('.')[2]}": name for name in _SELECTABLE if "." in name},
        **{name: name for name in ("reason", "source", "type")},
    },
)
EVENTS = Resource(
    kind="Event",
    plural="events",
    short_names=("ev",),
    other_versions=(_NEWER_VERSION,),
    complete=complete.object_members(
        "firstTimestamp", "lastTimestamp", "eventTime", source={}, reportingComponent="", reportingInstance=""
    ),
    allow_create_on_update=True,
    checks=Checks(qualified_finalizers=False, name=naming.path_problems, object=_check),
    table=Table("Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name", _cells),
    selectable=_SELECTABLE,
)
