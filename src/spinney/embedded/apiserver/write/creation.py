"""Create: from plain data to a new object in the store."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Json
from spinney.embedded.apiserver.access import escalation
from spinney.embedded.apiserver.access.rbac import Attributes
from spinney.embedded.apiserver.admission import quotas
from spinney.embedded.apiserver.admission.matching import Operation
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import already_exists, bad_request, forbidden, invalid_object, not_found
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.validation import metadata as metadata_checks
from spinney.embedded.apiserver.schema.custom_resources import TABLE as DEFINITIONS
from spinney.embedded.apiserver.store.store import Item
from spinney.embedded.apiserver.write import managed_fields, owner_references
from spinney.embedded.apiserver.write.commit import commit
from spinney.embedded.apiserver.write.decode import decoded, decoded_after_webhooks, set_namespace
from spinney.embedded.apiserver.write.managed_fields import Writer
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.embedded.apiserver.write.strategy import check, complete, prepare_create
from spinney.kube.client.transport import Request, User

_SERVER = User("system:apiserver", ("system:masters",))
_NAME_DRAWS = 8
_NAMESPACES = Kind.of("", "v1", "Namespace", "namespaces", namespaced=False)
_SET_BY_SERVER = ("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


async def create_from(
    pipeline: Pipeline, call: Call, document: Json, record: Callable[[Json], None] | None = None, sent: bytes = b""
) -> Item:
    """Create an object from plain data.

    `record` writes its managed fields, if not the usual way. `sent` is the encoded spec of a pod, which may be cached.
    """
    kind, resource = call.kind, call.kind.resource
    if call.verb != "create":
        # The right to update or patch is not the right to create.
        wanted = Attributes("create", kind.group, kind.plural, "", call.namespace, call.name)
        pipeline.authorizer.check(call.user, wanted)
    cached = pipeline.pod_specs.find(call, sent) if sent else None
    document = decoded(call, document) if cached is None else decoded(call, *cached.put_into(document))
    now = _set_identity(pipeline.core, call, document["metadata"])
    if cached is None:
        resource.default(document)
    if record is not None:
        record(document)
    else:
        managed_fields.record_creation(kind, document, Writer(call.manager, "", now), cached.owned if cached else None)
    if cached is None:
        prepare_create(pipeline.core, call, document)
    spec = document.get("spec")
    if cached is not None:
        cached.start(pipeline.core, call, document)
    else:
        resource.admit_create(pipeline.core, call, document)
    if pipeline.admission.mutates(kind):
        mutated = await _mutated(pipeline, call, document)
        if mutated is not document:
            document, cached, sent = mutated, None, b""
    errors = metadata_checks.check(kind, document["metadata"])
    if cached is None:
        errors += check(call, document, None)
    if errors:
        raise invalid_object(kind, call.name, errors)
    escalation.check(pipeline.core, pipeline.authorizer, call, document)
    if pipeline.admission.validates(kind):
        await pipeline.admission.validate(call, Operation.CREATE, document, None)
    if cached is None:
        call.warnings.extend(resource.warnings.create(document))
    if kind.custom is not None:
        call.warnings.extend(metadata_checks.finalizer_warnings(document["metadata"], {}))
    quotas.admit(pipeline.core, pipeline.kinds, call, document)
    taken = pipeline.core.store.get(kind.table, call.key)
    if taken is not None:
        raise already_exists(kind, call.name, going=taken.going)
    item = commit(pipeline.core, call, complete(kind, document), cached.fields if cached else None)
    if sent and cached is None and spec is not None and not call.warnings:
        pipeline.pod_specs.keep(call, sent, spec, document, item)
    return item


async def _mutated(pipeline: Pipeline, call: Call, document: Json) -> Json:
    """The same object, or what mutating webhooks made of it, decoded again."""
    mutated = await pipeline.admission.mutate(call, Operation.CREATE, document, None)
    if mutated is document:
        return document
    conformed = decoded_after_webhooks(call, mutated)
    call.name = conformed["metadata"].get("name", "")
    call.kind.resource.default(conformed)
    call.kind.resource.after_webhooks(pipeline.core, conformed)
    return conformed


def _set_identity(core: Core, call: Call, metadata: Json) -> str:
    """Set namespace, name, UID and creation time of a new object; return the time."""
    set_namespace(call, metadata)
    if metadata.get("resourceVersion") not in (None, "", "0") and not call.dry_run:
        raise bad_request("resourceVersion should not be set on objects to be created")
    _check_namespace(core, call, metadata.get("name", ""))
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = _generate_name(core, call, metadata["generateName"][: 63 - 5])
    call.name = metadata.get("name", "")
    for key in _SET_BY_SERVER:
        metadata.pop(key, None)
    if not call.dry_run:
        metadata.pop("resourceVersion", None)
    owner_references.drop_duplicates(call, metadata)
    now = core.timestamp()
    metadata["uid"] = core.chance.uid()
    metadata["creationTimestamp"] = now
    if call.kind.resource.has_generation:
        metadata["generation"] = 1
    _check_definition(core, call)
    return now


def _check_namespace(core: Core, call: Call, name: str) -> None:
    """Refuse an object in a namespace that does not exist or is being deleted."""
    if not call.kind.namespaced:
        return
    item = core.store.get(_NAMESPACES.table, call.namespace)
    if item is None:
        raise not_found(_NAMESPACES, call.namespace)
    if item.going:
        why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
        refusal = forbidden(call.kind, name, why)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {call.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        refusal.details = {**(refusal.details or {}), "causes": [cause]}
        raise refusal


def _check_definition(core: Core, call: Call) -> None:
    """Refuse a custom object whose definition is being deleted."""
    if call.kind.custom is None:
        return
    definition = core.store.get(DEFINITIONS, call.kind.custom.name)
    if definition is not None and definition.going:
        raise forbidden(call.kind, call.name, "create not allowed while custom resource definition is terminating")


def _generate_name(core: Core, call: Call, prefix: str) -> str:
    """A name from a prefix; a taken one is drawn again, a few times."""
    for _ in range(_NAME_DRAWS):
        name = prefix + core.chance.suffix()
        if core.store.get(call.kind.table, call.kind.key(call.namespace, name)) is None:
            break
    return name


async def create_by_server(pipeline: Pipeline, api_version: str, kind: str, document: Json) -> Item:
    """Create an object as the server itself, without a request."""
    served = pipeline.kinds.by_kind(api_version, kind)
    assert served is not None, f"{api_version} {kind} is not served"
    call = Call("create", served, "", "", "", Request("POST", ""), {}, _SERVER)
    return await create_from(pipeline, call, document)
