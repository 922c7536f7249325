"""Delete: preconditions, grace period and finalizers; dependents are left to the garbage collector."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call, flag, number
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import (
    FieldError,
    Refusal,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_options,
    not_found,
    unsupported,
    unsupported_media_type,
)
from spinney.embedded.apiserver.http.bodies import UnreadableBody, must_be_object, parse
from spinney.embedded.apiserver.http.content_types import BODY_TYPES, JSON, media_type
from spinney.embedded.apiserver.read.get_list import list_response, matcher, object_response
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.misfit import type_name
from spinney.embedded.apiserver.store.store import Item, load
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.kube.client.transport import Response

_OPTIONS = ("propagationPolicy", "orphanDependents", "gracePeriodSeconds", "dryRun")
# Objects of a collection deleted before others get a turn of the loop.
_TURN = 32


def options_of(call: Call) -> Json:
    """The DeleteOptions of a request, from its body or its query."""
    if call.request.body:
        if media_type(call.request) not in BODY_TYPES:
            raise unsupported_media_type(BODY_TYPES)
        try:
            body = parse(call.request.body, media_type(call.request))
            body = {} if body is None else must_be_object(body)
        except UnreadableBody as error:
            raise bad_request(str(error)) from None
        _check_form(body)
        _check_options(body)
        return body
    # The query counts only where there is no body.
    options: Json = {key: call.query[key] for key in _OPTIONS if key in call.query}
    if "gracePeriodSeconds" in options:
        options["gracePeriodSeconds"] = number(options["gracePeriodSeconds"])
    if "orphanDependents" in options:
        options["orphanDependents"] = flag(call.query, "orphanDependents")
    _check_options(options)
    return options


def _check_form(options: Json) -> None:
    for key in ("kind", "apiVersion"):
        if not isinstance(options.get(key, ""), str):
            raise bad_request(f"{key}: expected a string, got {type_name(options[key])}")
    kind, version = options.get("kind") or "DeleteOptions", options.get("apiVersion") or "meta.k8s.io/v1"
    if version.count("/") > 1:
        raise bad_request(f"unexpected GroupVersion string: {version}")
    if kind != "DeleteOptions":
        raise bad_request(f'no kind "{kind}" is registered for version "{version}"')
    seconds = options.get("gracePeriodSeconds")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int)):
        raise bad_request(f"gracePeriodSeconds: expected an integer, got {type_name(seconds)}")


def _check_options(options: Json) -> None:
    errors: list[FieldError] = []
    policy = options.get("propagationPolicy")
    if policy and options.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, detail))
    elif policy not in (None, "", "Foreground", "Background", "Orphan"):
        errors.append(unsupported("propagationPolicy", policy, ("Foreground", "Background", "Orphan", "nil")))
    dry = options.get("dryRun")
    dry = [dry] if isinstance(dry, str) else dry
    if dry and dry != ["All"]:
        errors.append(unsupported("dryRun", dry, ("All",)))
    if errors:
        raise invalid_options("DeleteOptions", errors)


async def delete(pipeline: Pipeline, call: Call) -> Response:
    """Delete one object by name."""
    options = call.options = options_of(call)
    warning = call.kind.resource.deletion.warning
    if warning and not options.get("propagationPolicy") and "orphanDependents" not in options:
        call.warnings.append(warning)
    item = pipeline.core.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    await _validate(pipeline, call, item, options)
    gone, last = delete_item(pipeline.core, call.kind, item, options, dry_run=call.dry_run)
    if not gone or call.kind.resource.deletion.returns_object:
        return object_response(pipeline.core, call, last)
    details: Json = {"name": call.name, "group": call.kind.group, "kind": call.kind.plural, "uid": item.uid}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
    return Response(200, encode(body), JSON)


async def _validate(pipeline: Pipeline, call: Call, item: Item, options: Json) -> None:
    """Ask policies and webhooks about a deletion."""
    if pipeline.admission.applies_to(call.kind):
        await pipeline.admission.validate_delete(call, load(item))


def delete_item(core: Core, kind: Kind, item: Item, options: Json, *, dry_run: bool = False) -> tuple[bool, Item]:
    """Delete an object, or mark it as being deleted; return whether it is removed, and its last or new state."""
    document = load(item)
    metadata = document["metadata"]
    _check_preconditions(kind, item, metadata, options.get("preconditions") or {})
    deletion = kind.resource.deletion
    why = deletion.refusal(item.name)
    if why:
        raise forbidden(kind, item.name, why)
    finalizers = _finalizers(kind, metadata, options)
    waits = deletion.begin(core, document, finalizers, options)
    set_list(metadata, "finalizers", finalizers)
    if dry_run:
        return not waits, replace(item, body=encode(document))
    if not waits:
        return True, core.store.delete(kind.table, item.key, document)
    if document == load(item):
        return False, item
    return False, core.store.put(kind.table, item.key, document, selectable_fields.values(kind, document))


def _check_preconditions(kind: Kind, item: Item, metadata: Json, wanted: Json) -> None:
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != item.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({item.uid}). The object might have "
            "been deleted and then recreated"
        )
        raise _precondition_conflict(kind, item.name, why)
    if version and version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
        raise _precondition_conflict(kind, item.name, why)


def _precondition_conflict(kind: Kind, name: str, why: str) -> Refusal:
    """409: it names the kind, where other conflicts name the resource."""
    shown_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**(conflict(kind, name, why).details or {}), "kind": kind.kind}
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {shown_kind} "{name}": {why}', details)


def _finalizers(kind: Kind, metadata: Json, options: Json) -> list[str]:
    policy = options.get("propagationPolicy") or ""
    if not policy and options.get("orphanDependents") is not None:
        policy = "Orphan" if options["orphanDependents"] else "Background"
    current = list(metadata.get("finalizers") or ())
    if not policy:
        if "foregroundDeletion" in current or "orphan" in current:
            return current
        policy = "Orphan" if kind.resource.deletion.orphans_by_default else "Background"
    kept = [name for name in current if name not in ("orphan", "foregroundDeletion")]
    added = {"Orphan": ["orphan"], "Foreground": ["foregroundDeletion"]}.get(policy, [])
    return kept + added


def set_list(holder: Json, key: str, items: list[Any]) -> None:
    """Set a list, or leave the member out where the list is empty."""
    if items:
        holder[key] = items
    else:
        holder.pop(key, None)


def is_removable(document: Json) -> bool:
    """Whether an object that is being deleted has no finalizers and no grace period left."""
    metadata = document["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if document.get("kind") == "Namespace" and (document.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def store_or_remove(core: Core, kind: Kind, item: Item, document: Json) -> None:
    """Store what became of an object that may be waiting for nothing more, or remove it."""
    if is_removable(document):
        core.store.delete(kind.table, item.key, document)
    elif document != load(item):
        core.store.put(kind.table, item.key, document, selectable_fields.values(kind, document))


async def delete_collection(pipeline: Pipeline, call: Call) -> Response:
    """Delete every object that matches, and answer with the list of them."""
    options = call.options = options_of(call)
    number(call.query.get("limit", "0"))
    passes = matcher(call)
    table = pipeline.core.store.table(call.kind.table)
    matching = [item for item in table.range(call.namespace) if passes is None or passes(item)]
    for position, item in enumerate(matching):
        if position % _TURN == _TURN - 1:
            await asyncio.sleep(0)
        await _validate(pipeline, call, item, options)
        if table.items.get(item.key) is not None:
            delete_item(pipeline.core, call.kind, table.items[item.key], options, dry_run=call.dry_run)
    return list_response(pipeline.core, call, matching, {"resourceVersion": str(pipeline.core.store.version)})
