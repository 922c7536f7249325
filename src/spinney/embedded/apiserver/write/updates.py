"""Update: from the stored object to its next state, for updates, patches and applies.

A change is a function from the old object to the new one. Both share unchanged parts, so nested data is never changed
in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.access import escalation
from spinney.embedded.apiserver.admission import quotas
from spinney.embedded.apiserver.admission.matching import Operation
from spinney.embedded.apiserver.calls import Call, version_number
from spinney.embedded.apiserver.errors import (
    CannotBeHandled,
    FieldError,
    Refusal,
    bad_request,
    conflict,
    invalid,
    invalid_object,
    not_found,
)
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.validation import metadata as metadata_checks
from spinney.embedded.apiserver.store.conversion import at_current_version
from spinney.embedded.apiserver.store.store import Item
from spinney.embedded.apiserver.write import managed_fields, owner_references, patch_request
from spinney.embedded.apiserver.write.commit import commit
from spinney.embedded.apiserver.write.decode import decoded, decoded_after_webhooks
from spinney.embedded.apiserver.write.deletion import is_removable
from spinney.embedded.apiserver.write.managed_fields import Writer
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.embedded.apiserver.write.strategy import check, check_subresource, complete, prepare_update, same_body

_RETRIES = 5
Change = Callable[[Json], Json]
Record = Callable[[Json, Json], None]


async def modify(pipeline: Pipeline, call: Call, change: Change, record: Record | None = None) -> Item:
    """Apply a change to the current object; retry if the object changed during admission."""
    for _ in range(_RETRIES):
        item = pipeline.core.store.get(call.kind.table, call.key)
        if item is None:
            raise not_found(call.kind, call.name)
        done = await _modify_once(pipeline, call, item, change, record)
        if done is not None:
            return done
    raise conflict(call.kind, call.name)


async def _modify_once(
    pipeline: Pipeline, call: Call, item: Item, change: Change, record: Record | None
) -> Item | None:
    kind = call.kind
    old = at_current_version(kind, item)
    new = _proposed(call, old, change)
    _preconditions(call, old, new)
    # A patch that names a version has been held against it; any other one is applied to what is there now.
    given_version = new["metadata"].get("resourceVersion") if call.verb != "patch" else None
    owner_references.drop_duplicates(call, new["metadata"])
    new = complete(kind, restore_fixed_fields(pipeline, call, new, old))
    if new["metadata"].get("managedFields") == [{}]:
        new["metadata"].pop("managedFields")
    elif record is not None:
        record(old, new)
    else:
        managed_fields.record_update(kind, old, new, Writer(call.manager, call.subresource, pipeline.core.timestamp()))
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if pipeline.admission.mutates(kind):
        mutated = await pipeline.admission.mutate(call, Operation.UPDATE, new, old)
        if mutated is not new:
            new = decoded_after_webhooks(call, mutated)
            kind.resource.default(new)
            new = complete(kind, new)
            # A webhook may take the change back, such as where a client leaves out the defaults that it fills in.
            _set_generation(call, new, old)
    errors = _errors(call, old, new)
    if errors:
        raise invalid_object(kind, call.name, errors)
    escalation.check(pipeline.core, pipeline.authorizer, call, new)
    if pipeline.admission.validates(kind):
        await pipeline.admission.validate(call, Operation.UPDATE, new, old)
    if kind.custom is not None:
        call.warnings.extend(metadata_checks.finalizer_warnings(new["metadata"], old["metadata"]))
    quotas.admit_change(pipeline.core, pipeline.kinds, call, new, old)
    return _finish(pipeline, call, item, (old, new), given_version)


def _proposed(call: Call, old: Json, change: Change) -> Json:
    """The changed object, decoded as its kind."""
    proposed = change(old)
    if not isinstance(proposed, dict) or proposed.get("metadata") is None:
        raise no_name(call)
    try:
        return decoded(call, proposed, old if call.verb == "patch" else None)
    except CannotBeHandled as error:
        if call.verb != "patch" or call.kind.custom is not None:
            raise
        raise patch_request.patch_error(error) from None


def _errors(call: Call, old: Json, new: Json) -> list[FieldError]:
    """The errors of the new object, and of the change from the old one."""
    kind, metadata, before = call.kind, new["metadata"], old["metadata"]
    errors = metadata_checks.check(kind, metadata, before) + metadata_checks.check_update(metadata, before)
    if not call.subresource or kind.custom is not None:
        return errors + check(call, new, old)
    return errors + check_subresource(call, new, old)


def _preconditions(call: Call, old: Json, new: Json) -> None:
    kind = call.kind
    metadata, before = new["metadata"], old["metadata"]
    name = before["name"]
    if kind.namespaced and metadata.get("namespace") not in (None, "", before.get("namespace")):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not metadata.get("name"):
        raise no_name(call)
    if metadata["name"] != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        version_number(str(version))
        raise conflict(kind, name)
    uid = metadata.get("uid")
    if uid and uid != before["uid"] and call.verb == "patch":
        raise _immutable(call, "uid", uid)
    if uid and uid != before["uid"]:
        raise conflict(
            kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        )
    if metadata.get("deletionTimestamp") and not before.get("deletionTimestamp"):
        raise _immutable(call, "deletionTimestamp", metadata["deletionTimestamp"])


def _immutable(call: Call, key: str, value: str) -> Refusal:
    return invalid_object(call.kind, call.name, [invalid(f"metadata.{key}", value, "field is immutable")])


def restore_fixed_fields(pipeline: Pipeline, call: Call, new: Json, old: Json) -> Json:
    """The proposed object with fields restored that this endpoint may not change, and its generation set."""
    metadata, before = new["metadata"], old["metadata"]
    for key in ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "name"):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    if "namespace" in before:
        metadata["namespace"] = before["namespace"]
    if not metadata.get("generateName") and before.get("generateName"):
        metadata["generateName"] = before["generateName"]
    resource = call.kind.resource
    if not same_body(new, old) and (not call.subresource or (call.subresource == "status" and resource.default_status)):
        resource.default(new)
    new = prepare_update(pipeline.core, call, new, old)
    _set_generation(call, new, old)
    return new


def _set_generation(call: Call, new: Json, old: Json) -> None:
    """Count one more generation if the spec changes."""
    before = old["metadata"].get("generation")
    if call.kind.resource.has_generation and call.subresource != "status" and _spec_changed(call.kind, new, old):
        new["metadata"]["generation"] = (before or 0) + 1
    elif before is not None:
        new["metadata"]["generation"] = before


def _spec_changed(kind: Kind, new: Json, old: Json) -> bool:
    if not kind.resource.generation_changes:
        return False
    counted = kind.resource.generation_covers
    if counted and new["metadata"].get(counted) != old["metadata"].get(counted):
        return True
    if kind.custom is not None and not kind.custom.has_status(kind.version):
        return any(new.get(key) != old.get(key) for key in {**new, **old} if key != "metadata")
    return any(_differs(new.get(key), old.get(key)) for key in {**new, **old} if key not in ("metadata", "status"))


def _differs(new: Any, old: Any) -> bool:
    return new is not old and bool(new != old)


def _finish(
    pipeline: Pipeline, call: Call, item: Item, change: tuple[Json, Json], given_version: str | None
) -> Item | None:
    kind, (old, new) = call.kind, change
    newest = pipeline.core.store.get(kind.table, call.key)
    if newest is not item:
        if given_version or newest is None:
            raise conflict(kind, call.name)
        return None
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if new == old:
        return item
    if is_removable(new) and not call.dry_run:
        # Watchers get the last stored state; the client gets its own change.
        pipeline.core.store.delete(kind.table, item.key, old)
        return msgspec.structs.replace(item, body=encode(new))
    return commit(pipeline.core, call, new, item.fields if same_body(new, old) else None)


def no_name(call: Call) -> Refusal:
    """400: an object without a name."""
    return bad_request(f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided")
