"""The scale subresource, of built-in and custom kinds."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call, flag
from spinney.embedded.apiserver.errors import (
    CannotBeHandled,
    bad_request,
    conflict,
    invalid,
    invalid_object,
    not_found,
    wrong_uid,
)
from spinney.embedded.apiserver.http.bodies import read_body
from spinney.embedded.apiserver.http.content_types import JSON, media_type
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.json_path import find
from spinney.embedded.apiserver.schema.shapes import built_in_shape
from spinney.embedded.apiserver.store.conversion import from_stored
from spinney.embedded.apiserver.store.store import Item, load
from spinney.embedded.apiserver.write import field_sets, patch_request, server_side_apply, strategic_merge
from spinney.embedded.apiserver.write import updates as changes
from spinney.embedded.apiserver.write.decode import decoded
from spinney.embedded.apiserver.write.field_sets import FieldSet
from spinney.embedded.apiserver.write.managed_fields import Writer
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.kube.client.transport import Response

SCALE = Kind.of("autoscaling", "v1", "Scale", "scales", namespaced=True)


async def scale(pipeline: Pipeline, call: Call) -> Response:
    """Read or change the scale of a workload."""
    item = pipeline.core.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    if call.verb == "get":
        return Response(200, encode(_scale_of(call.kind, from_stored(call.kind, load(item)))), JSON)

    if call.verb == "patch" and media_type(call.request) in patch_request.APPLY:
        changed = await _apply(pipeline, call)
    else:
        changed = await changes.modify(pipeline, call, lambda old: _scaled(call, old))
    return Response(200, encode(_scale_of(call.kind, from_stored(call.kind, load(changed)))), JSON)


def _scaled(call: Call, old: Json) -> Json:
    """The object with the replicas of an updated or patched Scale."""
    proposed = _wanted(call, _scale_of(call.kind, old))
    inner = replace(call, kind=SCALE)
    try:
        wanted = decoded(inner, proposed)
    except CannotBeHandled as error:
        raise patch_request.patch_error(error) if call.verb == "patch" else error from None
    _check_metadata(call, wanted["metadata"], old["metadata"])
    return _with(old, _path(call.kind, "specReplicasPath"), _replicas(call, wanted))


def _replicas(call: Call, wanted: Json) -> int:
    replicas: int = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and call.kind.custom is not None:
        error = invalid(_path(call.kind, "specReplicasPath"), replicas, "should be a non-negative integer")
        raise invalid_object(call.kind, call.name, [error])
    if replicas < 0:
        error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_object(SCALE, call.name, [error])
    return replicas


def _check_metadata(call: Call, metadata: Json, before: Json) -> None:
    name, version, uid = metadata.get("name"), metadata.get("resourceVersion"), metadata.get("uid")
    if call.verb == "update" and not name:
        raise changes.no_name(call)
    if name not in (None, call.name):
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if call.kind.namespaced and metadata.get("namespace", call.namespace) != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if uid and uid != before["uid"]:
        raise wrong_uid(call.kind, call.namespace, call.name, uid, before["uid"])
    if version and version != before["resourceVersion"]:
        raise conflict(call.kind, call.name)


def _wanted(call: Call, current: Json) -> Json:
    if call.verb == "update":
        return read_body(call)
    kind = media_type(call.request)
    if kind == patch_request.STRATEGIC_PATCH:
        patch = patch_request.strategic_changes(call)
        merged: Json = strategic_merge.merge(current, patch, built_in_shape("autoscaling", "v1", "Scale"))
        return merged
    return patch_request.patcher(call, kind)(current)


async def _apply(pipeline: Pipeline, call: Call) -> Item:
    """Apply a Scale. Managers of the object's replicas are managers of the Scale's, and the reverse."""
    inner = replace(call, kind=SCALE)
    config = server_side_apply.config_of(inner)
    writer = Writer(call.query["fieldManager"], "scale", pipeline.core.timestamp())
    path = _path(call.kind, "specReplicasPath")
    force = flag(call.query, "force")

    def change(old: Json) -> Json:
        current = _scale_of(call.kind, old)
        entries = old["metadata"].get("managedFields") or []
        current["metadata"]["managedFields"] = of_scale(entries, path)
        merged = server_side_apply.merged_object(inner, current, config, writer, force=force)
        made = _with(old, path, _replicas(call, merged))
        owners = of_object(entries, merged["metadata"].get("managedFields") or [], path, call.kind.api_version)
        return {**made, "metadata": {**old["metadata"], "managedFields": owners}}

    return await changes.modify(pipeline, call, change, server_side_apply.keep_entries)


def _path(kind: Kind, name: str) -> str:
    if kind.custom is None:
        return {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}[name]
    paths = kind.custom.versions[kind.version].scale or {}
    return str(paths.get(name, ""))


def _with(document: Json, path: str, value: int) -> Json:
    """A copy of the document with a value at a path."""
    first, _, rest = path.lstrip(".").partition(".")
    if not rest:
        return {**document, first: value}
    return {**document, first: _with(document.get(first) or {}, rest, value)}


def _scale_of(kind: Kind, document: Json) -> Json:
    """The Scale of an object."""
    metadata = document["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = find(document, _path(kind, "specReplicasPath"))
    if kind.custom is not None and not replicas:
        raise bad_request(f'the spec replicas field "{_path(kind, "specReplicasPath")}" does not exist')
    current = find(document, _path(kind, "statusReplicasPath"))
    status: Json = {"replicas": current[0] if current else 0}
    selector = _selector(kind, document)
    if selector:
        status["selector"] = selector
    spec: Json = {"replicas": replicas[0]} if replicas and replicas[0] else {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": spec,
        "status": status,
    }


def _selector(kind: Kind, document: Json) -> str:
    if kind.custom is not None:
        path = (kind.custom.versions[kind.version].scale or {}).get("labelSelectorPath")
        values = find(document, path) if path else []
        return str(values[0]) if values else ""
    selector = (document.get("spec") or {}).get("selector") or {}
    return selectors.formatted(selector)


_OWNED: FieldSet = {"f:spec": {"f:replicas": {}}}
_VERSION = "autoscaling/v1"


def of_scale(entries: list[Json], path: str) -> list[Json]:
    """Entries of the object that manage its replicas, as entries of its Scale."""
    owned = _field(path)
    return [
        {**entry, "apiVersion": _VERSION, "fieldsV1": _OWNED}
        for entry in entries
        if field_sets.intersection(entry["fieldsV1"], owned)
    ]


def of_object(entries: list[Json], scaled: list[Json], path: str, version: str) -> list[Json]:
    """Entries of the object after a write that left its Scale with these entries."""
    owned, left = _field(path), {_manager(entry): entry for entry in scaled}
    result: list[Json] = []
    for entry in entries:
        keeps = left.pop(_manager(entry), None) is not None
        rest = entry["fieldsV1"] if keeps else field_sets.difference(entry["fieldsV1"], owned)
        if rest:
            result.append({**entry, "fieldsV1": rest})
    for entry in left.values():
        # Kubernetes drops the time here.
        new = {key: value for key, value in entry.items() if key != "time"}
        result.append({**new, "apiVersion": version, "fieldsV1": owned})
    return result


def _field(path: str) -> FieldSet:
    owned: FieldSet = {}
    for part in reversed(path.strip(".").split(".")):
        owned = {f"f:{part}": owned}
    return owned


def _manager(entry: Json) -> tuple[str, str, str]:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")
