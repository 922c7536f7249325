"""The handlers of create, update and patch."""

from __future__ import annotations

from dataclasses import replace

from msgspec import Raw

from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import bad_request, invalid, invalid_object, not_found
from spinney.embedded.apiserver.http.bodies import read_body
from spinney.embedded.apiserver.http.content_types import media_type
from spinney.embedded.apiserver.read.get_list import object_response
from spinney.embedded.apiserver.write import patch_request
from spinney.embedded.apiserver.write.creation import create_from
from spinney.embedded.apiserver.write.decode import check_duplicates, decoded, set_namespace
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.embedded.apiserver.write.server_side_apply import apply
from spinney.embedded.apiserver.write.updates import modify, no_name
from spinney.kube.client.transport import Response


async def create(pipeline: Pipeline, call: Call) -> Response:
    """Create an object from the body."""
    body = read_body(call)
    sent = pipeline.pod_specs.sent(call, body)
    check_duplicates(call, {**body, "spec": Raw(sent)} if sent else body)
    item = await create_from(pipeline, call, body, sent=sent)
    return object_response(pipeline.core, call, item, 201)


async def update(pipeline: Pipeline, call: Call) -> Response:
    """Replace an object, or one of its subresources, by the body."""
    body = read_body(call)
    check_duplicates(call, body)
    document = decoded(call, body)
    metadata = document["metadata"]
    set_namespace(call, metadata)
    name = metadata.get("name", "")
    if name and name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if not name:
        raise no_name(call)
    resource = call.kind.resource
    if (
        pipeline.core.store.get(call.kind.table, call.key) is None
        and resource.allow_create_on_update
        and not call.subresource
    ):
        return object_response(pipeline.core, call, await create_from(pipeline, call, document), 201)
    if pipeline.core.store.get(call.kind.table, call.key) is None:
        raise not_found(call.kind, call.name)
    if not metadata.get("resourceVersion") and not resource.allow_unconditional_update:
        error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_object(replace(call.kind, kind=call.kind.plural), call.name, [error])
    item = await modify(pipeline, call, lambda old: document)
    return object_response(pipeline.core, call, item)


async def patch(pipeline: Pipeline, call: Call) -> Response:
    """Change an object by one of the four kinds of patch."""
    kind = media_type(call.request)
    if kind in patch_request.APPLY:
        return await apply(pipeline, call)
    item = await modify(pipeline, call, patch_request.patcher(call, kind))
    return object_response(pipeline.core, call, item)
