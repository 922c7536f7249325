"""What the server itself does to an object on its way into the store, as the record of its kind says."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources.kinds import Kind

_HEAD = ("metadata", "kind", "apiVersion")


def prepare_create(core: Core, call: Call, document: Json) -> None:
    """Set what only the server sets in a new object."""
    kind = call.kind
    if kind.custom is not None:
        if kind.custom.has_status(kind.version):
            document.pop("status", None)
        return
    if "status" in kind.subresources and not kind.resource.status_on_create:
        document["status"] = {}
    kind.resource.prepare_create(core, call, document)


def prepare_update(core: Core, call: Call, new: Json, old: Json) -> Json:
    """Put back what the endpoint may not change."""
    kind, subresource = call.kind, call.subresource
    if subresource == "status":
        return _status_update(core, call, new, old)
    if subresource in kind.resource.prepare_subresources:
        return kind.resource.prepare_subresources[subresource](new, old)
    has_status = kind.custom.has_status(kind.version) if kind.custom is not None else "status" in kind.subresources
    if has_status:
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
    kind.resource.prepare_update(core, call, new, old)
    return new


def _status_update(core: Core, call: Call, new: Json, old: Json) -> Json:
    result, resource = dict(old), call.kind.resource
    kept = resource.status_keeps
    if kept is None:
        result["metadata"] = dict(old["metadata"])
        if "resourceVersion" in new["metadata"]:
            result["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
    else:
        result["metadata"] = {key: value for key, value in new["metadata"].items() if key not in kept}
        result["metadata"].update({key: old["metadata"][key] for key in kept if key in old["metadata"]})
    if "status" in new:
        result["status"] = new["status"]
    else:
        result.pop("status", None)
    resource.prepare_status(core, result, old)
    return result


def complete(kind: Kind, document: Json) -> Json:
    """Add the members that Kubernetes always writes, unless the object is yet to be converted to its stored version."""
    return kind.resource.complete(document) if kind.stored == kind.api_version else document


def check(call: Call, document: Json, old: Json | None) -> list[FieldError]:
    """What is wrong with the body of an object that is about to be stored."""
    if call.kind.custom is not None:
        errors = call.kind.custom.check(call.kind.version, document, old)
        return [_below_status(error) for error in errors] if call.subresource == "status" else errors
    checks = call.kind.resource.checks
    if old is None:
        return checks.object(document) + checks.create(document)
    if same_body(document, old):
        # Only metadata changed, which is checked apart.
        return []
    return checks.object(document) + checks.update(document, old)


def check_subresource(call: Call, new: Json, old: Json) -> list[FieldError]:
    """What is wrong with a write to a subresource of a built-in kind."""
    subresources = call.kind.resource.checks.subresources
    return subresources[call.subresource](new, old) if call.subresource in subresources else []


def same_body(new: Json, old: Json) -> bool:
    """Whether everything but metadata is the very same."""
    for key, value in new.items():
        if value is not old.get(key) and key not in _HEAD:
            return False
    return new.keys() >= old.keys()


def _below_status(error: FieldError) -> FieldError:
    """The error with its path relative to the status, since a status is checked by its own part of the schema."""
    name = error.field.removeprefix("status.")
    return replace(error, message=error.message.replace(f"{error.field} in body", f"{name} in body"))
