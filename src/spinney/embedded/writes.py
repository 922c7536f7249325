"""Writes: create, update and patch, from the body of a request to the store.

An update is a function from the old object to the new one. It shares what it does not change with the old object, so
nothing here changes nested data in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded import escalation, fields, gojson, owners, ownership, patching, podrules, quotas, warnings
from spinney.embedded.calls import JSON_TYPES, Call, json_name, media_type, read_body, repeated_keys
from spinney.embedded.complete import complete
from spinney.embedded.conform import conform
from spinney.embedded.conversion import current, kept
from spinney.embedded.deletion import finished, remove
from spinney.embedded.errors import (
    FieldError,
    Refusal,
    already_exists,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_object,
    not_found,
    plain,
)
from spinney.embedded.hooks import Operation
from spinney.embedded.kinds import Kind
from spinney.embedded.lifecycle import prepare_create, prepare_update
from spinney.embedded.ownership import Writer
from spinney.embedded.podspecs import PODS
from spinney.embedded.reads import answer
from spinney.embedded.store import Fields, Item
from spinney.embedded.strategy import strategy
from spinney.embedded.typemeta import check_type
from spinney.embedded.validation import check_part
from spinney.embedded.validation import metadata as metadata_checks
from spinney.kube.transport import Response

if TYPE_CHECKING:
    from spinney.embedded.server import ApiServer

_HEAD = ("metadata", "kind", "apiVersion")
_RETRIES = 5
# Kinds whose own rules are told before what an update may not do.
_SPEC_FIRST = frozenset(("apps/deployments", "apps/replicasets", "apps/daemonsets", "/pods"))
# Metadata that counts as a part of the spec.
_COUNTED = {"apps/deployments": "annotations", "discovery.k8s.io/endpointslices": "labels"}
_NAME_DRAWS = 8
_SET_BY_SERVER = (
    *("resourceVersion", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"),
    "selfLink",
)
Change = Callable[[Json], Json]
Record = Callable[[Json, Json], None]


async def create(server: ApiServer, call: Call) -> Response:
    """A new object from the body."""
    body = read_body(call)
    check_duplicates(call, body)
    item = await create_from(server, call, body)
    return answer(call, [item], server, 201)


async def create_from(
    server: ApiServer, call: Call, document: Json, record: Callable[[Json], None] | None = None
) -> Item:
    """A new object from plain data; `record` notes who owns its fields, where it is not the caller by update."""
    kind, rules = call.kind, strategy(call.kind)
    sent = server.pod_specs.sent(call, document)
    known = server.pod_specs.find(sent)
    document = checked(call, document) if known is None else checked(call, *known.put_into(document))
    now = _begin(server, call, document["metadata"])
    server.definitions.check_creation(call)
    if known is None:
        rules.default(document)
    if record is not None:
        record(document)
    else:
        ownership.record_creation(kind, document, Writer(call.manager, "", now), known.owned if known else None)
    if known is None:
        prepare_create(server, call, document)
    spec = document.get("spec")
    if kind.table == PODS:
        podrules.start(server, call, document)
    if server.admission.concerns(kind):
        seen = await server.admission.mutate(call, Operation.CREATE, document, None)
        if seen is not document:
            document, known, sent = _reformed(call, seen), None, b""
            call.name = document["metadata"].get("name", "")
            rules.default(document)
            if kind.table == PODS:
                podrules.put_status(server, document)
    errors = metadata_checks.check(kind, document["metadata"])
    if known is None:
        errors += _check(call, document, None)
    if errors:
        raise invalid_object(kind, call.name, errors)
    escalation.check(server, call, document)
    if server.admission.checks(kind):
        await server.admission.validate(call, Operation.CREATE, document, None)
    if known is None:
        call.warnings.extend(warnings.warnings_of(kind.table, document))
    quotas.admit(server, call, document)
    taken = server.store.get(kind.table, call.key)
    if taken is not None:
        raise already_exists(kind, call.name, going=b'"deletionTimestamp"' in taken.body)
    item = commit(server, call, complete(kind.table, document), known.fields if known else None)
    if sent and known is None and spec is not None and record is None and not call.warnings:
        server.pod_specs.keep(sent, spec, document, item)
    return item


def _begin(server: ApiServer, call: Call, metadata: Json) -> str:
    """Give a new object its place, name and identity; says when that was."""
    _place(call, metadata)
    if metadata.get("resourceVersion") not in (None, "", "0") and not call.dry_run:
        raise plain("resourceVersion should not be set on objects to be created")
    server.check_namespace(call, metadata.get("name", ""))
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = _free_name(server, call, metadata["generateName"][: 63 - 5])
    call.name = metadata.get("name", "")
    for key in _SET_BY_SERVER:
        metadata.pop(key, None)
    owners.named_once(call, metadata)
    now = server.timestamp()
    metadata["uid"] = server.chance.uid()
    metadata["creationTimestamp"] = now
    if strategy(call.kind).counts_generations:
        metadata["generation"] = 1
    return now


def _free_name(server: ApiServer, call: Call, prefix: str) -> str:
    """A name from a prefix; one that is taken is drawn again, a few times."""
    for _ in range(_NAME_DRAWS):
        name = prefix + server.chance.suffix()
        if server.store.get(call.kind.table, call.kind.key(call.namespace, name)) is None:
            break
    return name


def _check(call: Call, document: Json, old: Json | None) -> list[Any]:
    if call.kind.custom is not None:
        found = call.kind.custom.check(call.kind.version, document, old)
        return [_below_status(error) for error in found] if call.subresource == "status" else found
    rules = strategy(call.kind)
    if old is None:
        return rules.check(document) + rules.check_create(document)
    if _same_body(document, old):
        # Only metadata changed, which is checked apart.
        return []
    if call.kind.table in _SPEC_FIRST:
        return rules.check(document) + rules.check_update(document, old)
    return rules.check_update(document, old) + rules.check(document)


def _same_body(new: Json, old: Json) -> bool:
    """Whether everything but metadata is the very same."""
    return new.keys() >= old.keys() and all(value is old.get(key) for key, value in new.items() if key not in _HEAD)


def _below_status(error: FieldError) -> FieldError:
    """A status is checked by its own part of the schema, which does not know that it is called status."""
    name = error.field.removeprefix("status.")
    return replace(error, message=error.message.replace(f"{error.field} in body", f"{name} in body"))


def commit(server: ApiServer, call: Call, document: Json, selectable: Fields | None = None) -> Item:
    """Keep an object, or for a dry run only say how it would be kept."""
    kind = call.kind
    document = {"kind": kind.kind, "apiVersion": kind.api_version, **document}
    if kind.stored != kind.api_version:
        document = complete(kind.table, kept(kind, document))
    found = fields.values(kind, document) if selectable is None else selectable
    if call.dry_run:
        metadata = document["metadata"]
        labels = metadata.get("labels") or {}
        return Item(call.key, server.store.version, encode(document), metadata["uid"], labels, found)
    return server.store.put(kind.table, call.key, document, found)


def checked(call: Call, document: Json, known: Json | None = None) -> Json:
    """The body as an object of the kind: right type, unknown fields told or dropped, nulls gone.

    What it shares with `known`, the object before a change, is as it should be.
    """
    kind = call.kind
    if kind.custom is not None and kind.custom.versions[kind.version].warning:
        call.warnings.append(kind.custom.versions[kind.version].warning)
    check_type(document, call.kind, call.verb)
    if not isinstance(document.get("metadata") or {}, dict):
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: json: cannot unmarshal '
            f"{json_name(document['metadata'])} into Go struct field {kind.kind}.metadata of type v1.ObjectMeta"
        )
    document = {"kind": kind.kind, "apiVersion": kind.api_version, **_no_type(document)}
    document["metadata"] = dict(document.get("metadata") or {})
    if kind.custom is not None:
        document, unknown = kind.custom.conform(kind, document, known)
    else:
        document, unknown = conform(document, kind.group, kind.version, kind.kind, known)
        document["metadata"] = dict(document.get("metadata") or {})
    if unknown or call.duplicates:
        _unknown_fields(call, unknown)
    return document


def _reformed(call: Call, seen: Json) -> Json:
    """What webhooks made of an object, in the form of its kind; fields that it does not have go without a word."""
    quiet = replace(call, query={**call.query, "fieldValidation": "Ignore"}, warnings=[])
    try:
        document = checked(quiet, seen)
    except Refusal as refusal:
        _, handled, why = refusal.message.partition(f" cannot be handled as a {call.kind.kind}: ")
        if not handled:
            raise
        raise (plain(why) if why.startswith("converting ") else internal(why)) from None
    _place(call, document["metadata"])
    return document


def _no_type(document: Json) -> Json:
    return {key: value for key, value in document.items() if key not in ("kind", "apiVersion")}


def check_duplicates(call: Call, document: Json) -> None:
    """Find fields that a body gives twice. One that is as long as its own encoding gives none twice."""
    body, form = call.request.body, media_type(call.request)
    if len(encode(document)) == len(body) or call.field_validation == "Ignore":
        return
    if form == JSON_TYPES[0]:
        call.duplicates = [f'duplicate field "{path}"' for path in gojson.duplicates(body)]
    elif form == JSON_TYPES[1]:
        call.duplicates = repeated_keys(body)


def _unknown_fields(call: Call, unknown: list[str]) -> None:
    is_yaml = media_type(call.request) == JSON_TYPES[1]
    missing = [f'unknown field "{path}"' for path in (sorted(unknown) if is_yaml else unknown)]
    told = call.duplicates + missing if is_yaml else missing + call.duplicates
    if call.field_validation == "Strict" and is_yaml and call.duplicates:
        # The parser of YAML tells them all in one go.
        told = ["yaml: unmarshal errors:\n  " + "\n  ".join(call.duplicates), *missing]
    call.duplicates = []
    if call.field_validation == "Strict":
        kind = call.kind
        where = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: '
        raise bad_request(where + ", ".join(told))
    if call.field_validation == "Warn":
        call.warnings.extend(told)


def _place(call: Call, metadata: Json) -> None:
    namespace = metadata.get("namespace", "")
    if call.kind.namespaced:
        if namespace and namespace != call.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = call.namespace
    elif namespace:
        raise bad_request("namespace is not allowed on this type" if not call.namespace else "namespace mismatch")


async def update(server: ApiServer, call: Call) -> Response:
    """Replace an object, or one of its subresources, by the body."""
    body = read_body(call)
    check_duplicates(call, body)
    document = checked(call, body)
    metadata = document["metadata"]
    name = metadata.get("name", "")
    if name and name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if not name:
        raise no_name(call)
    _place(call, metadata)
    rules = strategy(call.kind)
    if server.store.get(call.kind.table, call.key) is None and rules.creates_on_update and not call.subresource:
        return answer(call, [await create_from(server, call, document)], server, 201)
    if server.store.get(call.kind.table, call.key) is None:
        raise not_found(call.kind, call.name)
    if not metadata.get("resourceVersion") and not rules.overwrites:
        error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_object(replace(call.kind, kind=call.kind.plural), call.name, [error])
    item = await modify(server, call, lambda old: document)
    return answer(call, [item], server)


def no_name(call: Call) -> Refusal:
    """400: an object that does not say its name."""
    return bad_request(f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided")


async def patch(server: ApiServer, call: Call) -> Response:
    """Change an object by one of the four kinds of patch."""
    kind = media_type(call.request)
    if kind in patching.APPLY:
        from spinney.embedded.apply import apply  # noqa: PLC0415  # apply builds on this module

        return await apply(server, call)
    item = await modify(server, call, patching.patcher(call, kind))
    return answer(call, [item], server)


async def modify(server: ApiServer, call: Call, change: Change, record: Record | None = None) -> Item:
    """Apply a change to an object as it is now; where admission took time and the object moved on, once more."""
    for _ in range(_RETRIES):
        item = server.store.get(call.kind.table, call.key)
        if item is None:
            raise not_found(call.kind, call.name)
        done = await _modify_once(server, call, item, change, record)
        if done is not None:
            return done
    raise conflict(call.kind, call.name)


async def _modify_once(server: ApiServer, call: Call, item: Item, change: Change, record: Record | None) -> Item | None:
    kind = call.kind
    old = current(kind, item)
    proposed = change(old)
    if not isinstance(proposed, dict) or not isinstance(proposed.get("metadata"), dict):
        raise no_name(call)
    try:
        new = checked(call, proposed, old if call.verb == "patch" else None)
    except Refusal as refusal:
        if call.verb != "patch" or kind.custom is not None:
            raise
        raise patching.blamed(call, proposed, refusal) from None
    _preconditions(call, old, new)
    given_version = new["metadata"].get("resourceVersion")
    owners.named_once(call, new["metadata"])
    new = complete(kind.table, settle(server, call, new, old))
    if new["metadata"].get("managedFields") == [{}]:
        new["metadata"].pop("managedFields")
    elif record is not None:
        record(old, new)
    else:
        ownership.record_update(kind, old, new, Writer(call.manager, call.subresource, server.timestamp()))
    rules = strategy(kind)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if server.admission.concerns(kind):
        seen = await server.admission.mutate(call, Operation.UPDATE, new, old)
        if seen is not new:
            new = _reformed(call, seen)
            rules.default(new)
            new = complete(kind.table, new)
    errors = metadata_checks.check(kind, new["metadata"], old["metadata"])
    if errors:
        errors = metadata_checks.repeated(kind, errors)
    errors += metadata_checks.check_update(kind, new["metadata"], old["metadata"])
    if not call.subresource or kind.custom is not None:
        errors += _check(call, new, old)
    else:
        errors += check_part(kind.table, call.subresource, new, old)
    if errors:
        raise invalid_object(kind, call.name, errors)
    escalation.check(server, call, new)
    if server.admission.checks(kind):
        await server.admission.validate(call, Operation.UPDATE, new, old)
    return _finish(server, call, item, (old, new), given_version)


def _finish(
    server: ApiServer, call: Call, item: Item, change: tuple[Json, Json], given_version: str | None
) -> Item | None:
    kind, (old, new) = call.kind, change
    newest = server.store.get(kind.table, call.key)
    if newest is not item:
        if given_version or newest is None:
            raise conflict(kind, call.name)
        return None
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if new == old:
        return item
    if finished(new) and not call.dry_run:
        # Who watches sees it go as it was kept; whoever let it go sees what that changed.
        remove(server, kind, item, old)
        return msgspec.structs.replace(item, body=encode(new))
    return commit(server, call, new, item.fields if _same_body(new, old) else None)


def settle(server: ApiServer, call: Call, new: Json, old: Json) -> Json:
    """The proposed object with everything restored that this endpoint may not change, and its generation."""
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
    rules = strategy(call.kind)
    if not call.subresource and not _same_body(new, old):
        rules.default(new)
    new = prepare_update(server, call, new, old)
    if rules.counts_generations and call.subresource != "status" and _spec_changed(call.kind, new, old):
        new["metadata"]["generation"] = before.get("generation", 0) + 1
    return new


def _spec_changed(kind: Kind, new: Json, old: Json) -> bool:
    counted = _COUNTED.get(kind.table)
    if counted and new["metadata"].get(counted) != old["metadata"].get(counted):
        return True
    if kind.custom is not None and not kind.custom.has_status(kind.version):
        return any(new.get(key) != old.get(key) for key in {**new, **old} if key != "metadata")
    return any(_differs(new.get(key), old.get(key)) for key in {**new, **old} if key not in ("metadata", "status"))


def _differs(one: Any, other: Any) -> bool:
    return one is not other and bool(one != other)


def _immutable(call: Call, key: str, value: str) -> Refusal:
    errors = metadata_checks.repeated(call.kind, [invalid(f"metadata.{key}", value, "field is immutable")])
    return invalid_object(call.kind, call.name, errors)


def _preconditions(call: Call, old: Json, new: Json) -> None:
    kind = call.kind
    metadata, before = new["metadata"], old["metadata"]
    name = before["name"]
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        if not str(version).isdigit():
            raise plain(f'strconv.ParseUint: parsing "{version}": invalid syntax')
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
    if metadata.get("name") not in (None, name):
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if kind.namespaced and metadata.get("namespace") not in (None, before.get("namespace")):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
