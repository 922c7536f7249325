"""Built-in kinds that are served at two versions with different members: events, and autoscalers as `v1` has them."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.record import OtherVersion
from spinney.embedded.apiserver.resources.selectable_fields import FIELDS

_EVENT_MEMBERS = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OPTIONAL_MEMBERS = ("reportingComponent", "reportingInstance")
_KEPT_EVENT_MEMBERS = {new: old for old, new in _EVENT_MEMBERS.items()}


def _event_shown(document: Json) -> Json:
    return {
        _EVENT_MEMBERS.get(key, key): value for key, value in document.items() if value or key not in _OPTIONAL_MEMBERS
    }


def event_kept(document: Json) -> Json:
    """An event of `events.k8s.io` as the core group writes it."""
    return {_KEPT_EVENT_MEMBERS.get(key, key): value for key, value in document.items()}


EVENTS = OtherVersion(
    group="events.k8s.io",
    version="v1",
    from_stored=_event_shown,
    to_stored=event_kept,
    selectable={
        "reportingController": "reportingComponent",
        **{f"regarding.{name.partition('.')[2]}": name for name in FIELDS["/events"] if "." in name},
        **{name: name for name in ("reason", "source", "type")},
    },
)
