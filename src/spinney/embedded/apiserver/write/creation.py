"""Creation: from plain data to a new object in the store, with a name and an identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spinney.api.meta import Json
from spinney.embedded.apiserver.access import escalation
from spinney.embedded.apiserver.admission.matching import Operation
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import already_exists, invalid_object, plain
from spinney.embedded.apiserver.followers import quotas
from spinney.embedded.apiserver.resources.validation import metadata as metadata_checks
from spinney.embedded.apiserver.store.store import Item
from spinney.embedded.apiserver.write import managed_fields, owner_references
from spinney.embedded.apiserver.write.commit import commit
from spinney.embedded.apiserver.write.decode import checked, place, reformed
from spinney.embedded.apiserver.write.managed_fields import Writer
from spinney.embedded.apiserver.write.strategy import check, complete, prepare_create

if TYPE_CHECKING:
    from spinney.embedded.apiserver.server import ApiServer

_NAME_DRAWS = 8
_SET_BY_SERVER = ("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


async def create_from(
    server: ApiServer, call: Call, document: Json, record: Callable[[Json], None] | None = None
) -> Item:
    """A new object from plain data; `record` notes who owns its fields, where it is not the caller by update."""
    kind, resource = call.kind, call.kind.resource
    sent = server.pod_specs.sent(call, document)
    known = server.pod_specs.find(call, sent)
    document = checked(call, document) if known is None else checked(call, *known.put_into(document))
    now = _begin(server, call, document["metadata"])
    server.definitions.check_creation(call)
    if known is None:
        resource.default(document)
    if record is not None:
        record(document)
    else:
        managed_fields.record_creation(kind, document, Writer(call.manager, "", now), known.owned if known else None)
    if known is None:
        prepare_create(server, call, document)
    spec = document.get("spec")
    if known is not None:
        known.start(server, call, document)
    else:
        resource.admit_create(server, call, document)
    if server.admission.concerns(kind):
        seen = await _mutated(server, call, document)
        if seen is not document:
            document, known, sent = seen, None, b""
    errors = metadata_checks.check(kind, document["metadata"])
    if known is None:
        errors += check(call, document, None)
    if errors:
        raise invalid_object(kind, call.name, errors)
    escalation.check(server, call, document)
    if server.admission.checks(kind):
        await server.admission.validate(call, Operation.CREATE, document, None)
    if known is None:
        call.warnings.extend(resource.warnings.create(document))
    if kind.custom is not None:
        call.warnings.extend(metadata_checks.finalizer_warnings(document["metadata"], {}))
    call.warnings.extend(resource.warnings.name(call.name))
    quotas.admit(server, call, document)
    taken = server.store.get(kind.table, call.key)
    if taken is not None:
        raise already_exists(kind, call.name, going=taken.going)
    item = commit(server, call, complete(kind, document), known.fields if known else None)
    if sent and known is None and spec is not None and record is None and not call.warnings:
        server.pod_specs.keep(sent, spec, document, item)
    return item


async def _mutated(server: ApiServer, call: Call, document: Json) -> Json:
    """The very same object, or what mutating webhooks made of it, in the form of its kind again."""
    seen = await server.admission.mutate(call, Operation.CREATE, document, None)
    if seen is document:
        return document
    made = reformed(call, seen)
    call.name = made["metadata"].get("name", "")
    call.kind.resource.default(made)
    call.kind.resource.after_webhooks(server, made)
    return made


def _begin(server: ApiServer, call: Call, metadata: Json) -> str:
    """Give a new object its place, name and identity; says when that was."""
    place(call, metadata)
    if metadata.get("resourceVersion") not in (None, "", "0") and not call.dry_run:
        raise plain("resourceVersion should not be set on objects to be created")
    server.check_namespace(call, metadata.get("name", ""))
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = _free_name(server, call, metadata["generateName"][: 63 - 5])
    call.name = metadata.get("name", "")
    for key in _SET_BY_SERVER:
        metadata.pop(key, None)
    if not call.dry_run:
        metadata.pop("resourceVersion", None)
    owner_references.named_once(call, metadata)
    now = server.timestamp()
    metadata["uid"] = server.chance.uid()
    metadata["creationTimestamp"] = now
    if call.kind.resource.has_generation:
        metadata["generation"] = 1
    return now


def _free_name(server: ApiServer, call: Call, prefix: str) -> str:
    """A name from a prefix; one that is taken is drawn again, a few times."""
    for _ in range(_NAME_DRAWS):
        name = prefix + server.chance.suffix()
        if server.store.get(call.kind.table, call.kind.key(call.namespace, name)) is None:
            break
    return name
