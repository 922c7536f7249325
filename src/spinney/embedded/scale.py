"""The scale subresource: how many replicas a workload has and should have, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded import patching, selectors, strategic, writes
from spinney.embedded.calls import Call, media_type, read_body
from spinney.embedded.conversion import load, shown
from spinney.embedded.errors import bad_request, conflict, invalid, invalid_object, not_found
from spinney.embedded.jsonpath import find
from spinney.embedded.kinds import Kind
from spinney.embedded.reads import JSON
from spinney.embedded.shapes import built_in_shape
from spinney.embedded.typemeta import check_type
from spinney.kube.transport import Response

if TYPE_CHECKING:
    from spinney.embedded.server import ApiServer

_SCALE = Kind.of("autoscaling", "v1", "Scale", "scales", namespaced=True)


async def scale(server: ApiServer, call: Call) -> Response:
    """Read or change the scale of a workload."""
    item = server.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    if call.verb == "get":
        return Response(200, encode(scale_of(call.kind, shown(call.kind, load(item)))), JSON)

    def change(old: Json) -> Json:
        current = scale_of(call.kind, old)
        wanted = _wanted(call, current)
        check_type(wanted, _SCALE)
        metadata = wanted.get("metadata") or {}
        if call.verb == "update" and not metadata.get("name"):
            raise writes.no_name(call)
        version = metadata.get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(call.kind, call.name)
        if metadata.get("name") not in (None, call.name):
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({call.name})"
            )
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise bad_request(
                'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal string into Go struct '
                "field ScaleSpec.spec.replicas of type int32"
            )
        if replicas < 0:
            error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid_object(_SCALE, call.name, [error])
        return _with(old, _path(call.kind, "specReplicasPath"), replicas)

    changed = await writes.modify(server, call, change)
    return Response(200, encode(scale_of(call.kind, shown(call.kind, load(changed)))), JSON)


def _wanted(call: Call, current: Json) -> Json:
    if call.verb == "update":
        return read_body(call)
    kind = media_type(call.request)
    if kind in patching.APPLY:
        kind = patching.MERGE_PATCH
    if kind == patching.STRATEGIC_PATCH:
        changes = msgspec.json.decode(call.request.body)
        merged: Json = strategic.merge(current, changes, built_in_shape("autoscaling", "v1", "Scale"))
        return merged
    return patching.patcher(call, kind)(current)


def _path(kind: Kind, name: str) -> str:
    if kind.custom is None:
        return {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}[name]
    paths = kind.custom.versions[kind.version].scale or {}
    return str(paths.get(name, ""))


def _with(document: Json, path: str, value: int) -> Json:
    """The document with a value at a path; what is beside the path is shared."""
    first, _, rest = path.lstrip(".").partition(".")
    if not rest:
        return {**document, first: value}
    return {**document, first: _with(document.get(first) or {}, rest, value)}


def scale_of(kind: Kind, document: Json) -> Json:
    """The Scale of an object."""
    metadata = document["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = find(document, _path(kind, "specReplicasPath"))
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
        found = find(document, path) if path else []
        return str(found[0]) if found else ""
    selector = (document.get("spec") or {}).get("selector") or {}
    if kind.table == "/replicationcontrollers":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return selectors.formatted(selector)
