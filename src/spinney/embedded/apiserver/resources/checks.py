"""Checks: what is wrong with the body of an object that is about to be kept, by the rules of its kind."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources.strategy import strategy

_HEAD = ("metadata", "kind", "apiVersion")
# Kinds whose own rules are told before what an update may not do.
_SPEC_FIRST = frozenset(("apps/deployments", "apps/replicasets", "apps/statefulsets", "batch/jobs", "/pods"))


def check(call: Call, document: Json, old: Json | None) -> list[FieldError]:
    if call.kind.custom is not None:
        found = call.kind.custom.check(call.kind.version, document, old)
        return [_below_status(error) for error in found] if call.subresource == "status" else found
    rules = strategy(call.kind)
    if old is None:
        return rules.check(document) + rules.check_create(document)
    if same_body(document, old):
        # Only metadata changed, which is checked apart.
        return []
    if call.kind.table in _SPEC_FIRST:
        return rules.check(document) + rules.check_update(document, old)
    return rules.check_update(document, old) + rules.check(document)


def same_body(new: Json, old: Json) -> bool:
    """Whether everything but metadata is the very same."""
    return new.keys() >= old.keys() and all(value is old.get(key) for key, value in new.items() if key not in _HEAD)


def _below_status(error: FieldError) -> FieldError:
    """A status is checked by its own part of the schema, which does not know that it is called status."""
    name = error.field.removeprefix("status.")
    return replace(error, message=error.message.replace(f"{error.field} in body", f"{name} in body"))
