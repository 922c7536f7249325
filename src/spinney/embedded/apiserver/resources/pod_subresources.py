"""Subresources of pods: binding, eviction, log, exec, attach, port-forward and proxy."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.admission.matching import Operation
from spinney.embedded.apiserver.calls import Call, number
from spinney.embedded.apiserver.errors import (
    FieldError,
    Refusal,
    bad_request,
    forbidden_field,
    invalid,
    invalid_object,
    not_found,
    required,
    unsupported,
    wrong_uid,
)
from spinney.embedded.apiserver.http.bodies import read_typed
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.pod_eviction import allow
from spinney.embedded.apiserver.store.store import Item, load
from spinney.embedded.apiserver.write.commit import commit
from spinney.embedded.apiserver.write.deletion import delete_item
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.embedded.apiserver.write.type_meta import check_type
from spinney.kube.client.transport import Response

_PODS = Kind.of("", "v1", "Pod", "pods", namespaced=True)
_BINDING = Kind.of("", "v1", "Binding", "bindings", namespaced=True)
_EVICTION = Kind.of("policy", "v1", "Eviction", "evictions", namespaced=True)
_LOG_OPTIONS = Kind.of("", "v1", "PodLogOptions", "podlogoptions", namespaced=True)
_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _binding_conflict(name: str, why: str) -> Refusal:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return Refusal(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


async def bind(pipeline: Pipeline, call: Call) -> Response:
    """Bind a pod to a node, unless it has one or is gated."""
    binding = read_typed(call, _BINDING)
    check_type(binding, _BINDING)
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    if metadata.get("name", "") != call.name:
        raise bad_request("name in URL does not match name in Binding object")
    errors: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(unsupported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        raise bad_request(", ".join(map(str, errors)))

    if pipeline.admission.validates(call.kind):
        await pipeline.admission.validate(call, Operation.CREATE, {**binding, "metadata": metadata}, None)
    item = pipeline.core.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    pod = _bound(pipeline, call.name, load(item), metadata, target["name"])
    # Of what selectors can name, binding writes these two.
    fields = {**item.fields, "spec.nodeName": target["name"], "status.nominatedNodeName": ""}
    commit(pipeline.core, call, pod, fields)
    return Response(201, encode(SUCCESS), JSON)


def _bound(pipeline: Pipeline, name: str, pod: Json, binding: Json, node: str) -> Json:
    metadata, spec = pod["metadata"], pod["spec"]
    if binding.get("uid") and binding["uid"] != metadata["uid"]:
        raise wrong_uid(_PODS, metadata["namespace"], name, binding["uid"], metadata["uid"])
    if metadata.get("deletionTimestamp"):
        raise _binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _binding_conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node
    labels = {**_topology(pipeline, node), **(binding.get("labels") or {})}
    for part, added in (("annotations", binding.get("annotations")), ("labels", labels)):
        if added:
            metadata[part] = {**(metadata.get(part) or {}), **added}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    now = pipeline.core.timestamp()
    others = [condition for condition in status.get("conditions") or () if condition["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]
    return pod


async def bind_by_name(pipeline: Pipeline, call: Call) -> Response:
    """Bind by the old `bindings` resource, which names the pod in the body."""
    kind = pipeline.kinds.of_table("/pods")
    assert kind is not None
    name = str((read_typed(call, _BINDING).get("metadata") or {}).get("name", ""))
    return await bind(pipeline, replace(call, kind=kind, name=name, subresource="binding"))


def _topology(pipeline: Pipeline, node: str) -> dict[str, str]:
    """The zone and region labels of a node, which its pods get."""
    item = pipeline.core.store.get("/nodes", node)
    if item is None:
        return {}
    return {key: item.labels[key] for key in _TOPOLOGY if key in item.labels}


def _mark(pipeline: Pipeline, call: Call, item: Item) -> Item:
    """Add the DisruptionTarget condition."""
    pod = load(item)
    status = pod.setdefault("status", {})
    others = [entry for entry in status.get("conditions") or () if entry["type"] != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": pipeline.core.timestamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status["conditions"] = [*others, condition]
    return pipeline.core.store.put(call.kind.table, item.key, pod, item.fields)


async def evict(pipeline: Pipeline, call: Call) -> Response:
    """Evict a pod, unless a disruption budget forbids it."""
    eviction = read_typed(call, _EVICTION)
    if not str(eviction.get("apiVersion", "")).startswith("policy/"):
        check_type(eviction, _EVICTION)
    if (eviction.get("metadata") or {}).get("name", "") != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    item = pipeline.core.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    options = eviction.get("deleteOptions") or {}
    dry_run = call.dry_run or bool(options.get("dryRun"))
    allow(pipeline.core, item, dry_run=dry_run)
    current = item if dry_run else _mark(pipeline, call, item)
    delete_item(pipeline.core, call.kind, current, options, dry_run=dry_run)
    return Response(201, encode(SUCCESS), JSON)


async def log(pipeline: Pipeline, call: Call) -> Response:
    """The log of a container. Simulated containers write none."""
    _check_log_options(call)
    spec = _pod_spec(pipeline, call)
    _check_container(call, spec)
    if not spec.get("nodeName"):
        return Response(204)
    raise _simulated(pipeline, call, spec["nodeName"], "has no log")


async def connect(pipeline: Pipeline, call: Call) -> Response:
    """Refuse exec, attach, port-forward and proxy: nothing runs in a simulated pod."""
    spec = _pod_spec(pipeline, call)
    if call.subresource.partition("/")[0] == "proxy":
        # Pods of a simulated node have no address that something listens at.
        raise bad_request("address not allowed")
    if call.subresource in ("exec", "attach"):
        _check_container(call, spec)
    node = spec.get("nodeName")
    if not node:
        raise bad_request(f"pod {call.name} does not have a host assigned")
    raise _simulated(pipeline, call, node, f"cannot be reached by {call.subresource}")


def _check_log_options(call: Call) -> None:
    query, errors = call.query, list[FieldError]()
    amounts = {key: number(query[key]) for key in ("tailLines", "limitBytes", "sinceSeconds") if query.get(key)}
    if query.get("sinceTime"):
        try:
            datetime.fromisoformat(query["sinceTime"])
        except ValueError:
            text = query["sinceTime"]
            raise bad_request(
                f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
            ) from None
    if amounts.get("tailLines", 0) < 0:
        errors.append(invalid("tailLines", amounts["tailLines"], "must be greater than or equal to 0"))
    for key in ("limitBytes", "sinceSeconds"):
        if amounts.get(key, 1) < 1:
            errors.append(invalid(key, amounts[key], "must be greater than 0"))
    if "sinceSeconds" in amounts and query.get("sinceTime"):
        errors.append(forbidden_field("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if query.get("stream"):
        errors.append(forbidden_field("stream", "may not be specified"))
    if errors:
        raise invalid_object(_LOG_OPTIONS, call.name, errors)


def _check_container(call: Call, spec: Json) -> None:
    """Check that the requested container exists, or that there is only one."""
    wanted = call.query.get("container", "")
    container_names = [each["name"] for key in ("initContainers", "containers") for each in spec.get(key) or ()]
    if wanted and wanted not in container_names:
        raise bad_request(f"container {wanted} is not valid for pod {call.name}")
    if not wanted and len(spec["containers"]) > 1:
        names = " ".join(each["name"] for each in spec["containers"])
        raise bad_request(f"a container name must be specified for pod {call.name}, choose one of: [{names}]")


def _pod_spec(pipeline: Pipeline, call: Call) -> Json:
    item = pipeline.core.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    spec: Json = load(item)["spec"]
    return spec


def _simulated(pipeline: Pipeline, call: Call, node: str, what: str) -> Refusal:
    if pipeline.core.store.get("/nodes", node) is None:
        return not_found(call.kind, node)
    why = f'node "{node}" is simulated, so pod "{call.name}" runs no program and {what}'
    return Refusal(501, "NotImplemented", why, {})
