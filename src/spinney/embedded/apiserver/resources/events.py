"""Events, as the core group and `events.k8s.io` take them."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required
from spinney.embedded.apiserver.resources.other_versions import event_kept

_LENGTHS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_NEWER = "events.k8s.io/v1"


def check(document: Json) -> list[FieldError]:
    """An Event at any write."""
    if document.get("apiVersion") == _NEWER:
        return _common(event_kept(document), "reportingController")
    return _common(document, "reportingComponent")


def check_create(document: Json) -> list[FieldError]:
    """A new Event: `events.k8s.io` asks for what the core group leaves open."""
    if document.get("apiVersion") != _NEWER:
        return []
    event = event_kept(document)
    found: list[FieldError] = []
    series = event.get("series")
    if series is not None and series.get("count", 0) < 2:
        found.append(invalid("series.count", "", "should be at least 2"))
    if series is not None and not series.get("lastObservedTime"):
        found.append(required("series.lastObservedTime"))
    if not event.get("eventTime"):
        found.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        found.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    for key in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(key):
            found.append(invalid(key, "", "needs to be unset"))
    return found


def _common(event: Json, controller: str) -> list[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace", "")
    own = event["metadata"].get("namespace", "")
    mismatch = invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not event.get("eventTime"):
        return [mismatch] if (about or "default") != own else []
    found = [mismatch] if not about and own not in ("default", "kube-system") else []
    reporter = event.get("reportingComponent", "")
    if not reporter:
        found.append(required(controller))
    found += [invalid(controller, reporter, problem) for problem in naming.qualified_problems(reporter)]
    for key, limit in _LENGTHS.items():
        value = event.get(key, "")
        if not value and key != "message":
            found.append(required(key))
        if len(value) > limit:
            found.append(invalid(key, "", f"can have at most {limit} characters"))
    return found
