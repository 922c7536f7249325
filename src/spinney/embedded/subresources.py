"""Subresources that are more than a part of the object: binding and eviction of pods, scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.api.meta import Json, encode
from spinney.embedded import writes
from spinney.embedded.calls import Call, read_body
from spinney.embedded.conversion import load
from spinney.embedded.deletion import delete_item
from spinney.embedded.errors import FieldError, Refusal, bad_request, not_found, plain, required, unsupported
from spinney.embedded.reads import JSON
from spinney.kube.transport import Response

if TYPE_CHECKING:
    from spinney.embedded.server import ApiServer

SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _binding_conflict(name: str, why: str) -> Refusal:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return Refusal(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


async def bind(server: ApiServer, call: Call) -> Response:
    """Assign a pod to a node, if it has none and nothing holds it back."""
    binding = read_body(call)
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    if metadata.get("name") not in (None, "", call.name):
        raise bad_request("name in URL does not match name in Binding object")
    errors: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(unsupported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        raise plain(", ".join(map(str, errors)))

    def change(pod: Json) -> Json:
        return _bound(server, call.name, pod, metadata, target["name"])

    call.subresource = "binding"
    item = server.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    writes.commit(server, call, change(load(item)))
    return Response(201, encode(SUCCESS), JSON)


def _bound(server: ApiServer, name: str, pod: Json, binding: Json, node: str) -> Json:
    metadata, spec = pod["metadata"], pod["spec"]
    if binding.get("uid") and binding["uid"] != metadata["uid"]:
        key = f"/registry/pods/{metadata['namespace']}/{name}"
        why = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
            f"failed: UID in precondition: {binding['uid']}, UID in object meta: {metadata['uid']}"
        )
        raise Refusal(
            409, "Conflict", f'Operation cannot be fulfilled on pods "{name}": {why}', {"name": name, "kind": "pods"}
        )
    if metadata.get("deletionTimestamp"):
        raise _binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _binding_conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node
    for part in ("annotations", "labels"):
        if binding.get(part):
            metadata[part] = {**(metadata.get(part) or {}), **binding[part]}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    now = server.timestamp()
    others = [condition for condition in status.get("conditions") or () if condition["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]
    return pod


async def evict(server: ApiServer, call: Call) -> Response:
    """Delete a pod, unless a disruption budget says no."""
    from spinney.embedded.eviction import allow  # noqa: PLC0415  # only evictions need budgets

    eviction = read_body(call)
    item = server.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    if (eviction.get("metadata") or {}).get("name") not in (None, "", call.name):
        raise bad_request("name in URL does not match name in Eviction object")
    options = eviction.get("deleteOptions") or {}
    dry_run = call.dry_run or bool(options.get("dryRun"))
    allow(server, item, dry_run=dry_run)
    current = server.store.get(call.kind.table, call.key) or item
    delete_item(server, call.kind, current, options, dry_run=dry_run)
    return Response(201, encode(SUCCESS), JSON)
