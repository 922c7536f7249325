"""Nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    return _taints(spec.get("taints") or ()) + _amounts(document)


def _taints(taints: list[Json] | tuple[()]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for at, taint in enumerate(taints):
        where, key = f"metadata.taints[{at}]", taint.get("key", "")
        effect, value = taint.get("effect", ""), taint.get("value", "")
        errors += [invalid(f"{where}.key", key, problem) for problem in naming.qualified_problems(key)]
        problems = naming.value_problems(value)
        if problems:
            errors.append(invalid(f"{where}.value", value, ";".join(problems)))
        if not effect:
            errors.append(required(f"{where}.effect"))
        elif effect not in _EFFECTS:
            errors.append(unsupported(f"{where}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            error = duplicate(where, taint)
            message = f"{error.message}: taints must be unique by key and effect pair"
            errors.append(FieldError(error.reason, error.field, message))
        seen.add((key, effect))
    return errors


def _amounts(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    status = document.get("status") or {}
    for kind in ("capacity", "allocatable"):
        for name, text in (status.get(kind) or {}).items():
            amount, where = quantity.exact(text), f"status.{kind}.{name}"
            if amount < 0:
                errors.append(invalid(where, text, "must be greater than or equal to 0"))
            if ("/" in name or name == "pods") and amount.denominator != 1:
                errors.append(invalid(where, text, "must be an integer"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a Node."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    rule = 'node updates may not change {} except from "" to valid'
    return [
        forbidden_field(f"spec.{key}", rule.format(key.removesuffix("s")))
        for key in ("podCIDRs", "providerID")
        if old_spec.get(key) and old_spec[key] != spec.get(key)
    ]


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.pop("configSource", None)
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    status = document.get("status")
    if status and status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


_complete_status = complete.status_members(
    {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": dict.fromkeys(_NODE_INFO, "")},
    times=("lastHeartbeatTime", "lastTransitionTime"),
)


def _complete(document: Json) -> Json:
    spec: Json = document.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        document = {**document, "spec": {**spec, "podCIDRs": [spec["podCIDR"]]}}
    status: Json = document.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        document = {**document, "status": {**status, "allocatable": dict(status["capacity"])}}
    return _complete_status(document)


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    taints = document["spec"].get("taints") or []
    if not any(taint.get("key") == _NOT_READY["key"] for taint in taints):
        document["spec"]["taints"] = [*taints, dict(_NOT_READY)]
    document.setdefault("status", {})


def _cells(document: Json, now: datetime) -> list[Any]:
    status, labels = cells.status(document), document["metadata"].get("labels") or {}
    ready = next((entry for entry in status.get("conditions") or () if entry.get("type") == "Ready"), None)
    shown = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    if cells.spec(document).get("unschedulable"):
        shown.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} | {
        labels.get("kubernetes.io/role", "")
    }
    info = status.get("nodeInfo") or {}
    # The first address of a type counts.
    addresses = {entry.get("type"): entry.get("address") for entry in reversed(status.get("addresses") or ())}
    return [
        cells.name(document),
        ",".join(shown),
        ",".join(sorted(roles - {""})) or "<none>",
        cells.age(document, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


NODES = Resource(
    kind="Node",
    plural="nodes",
    namespaced=False,
    short_names=("no",),
    subresources=("proxy", "status"),
    default=_default,
    complete=_complete,
    prepare_create=_prepare_create,
    status_on_create=True,
    checks=Checks(object=_check, update=_check_update, subresources={"status": lambda new, old: _amounts(new)}),
    table=Table(
        "Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,+Kernel-Version,+Container-Runtime", _cells
    ),
    selectable=("spec.unschedulable",),
)
