"""The small built-in kinds: config maps, secrets, nodes, claims, classes, roles, leases, Workloads."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import msgspec

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from spinney.embedded.apiserver.http import json_bodies
from spinney.embedded.apiserver.resources.validation import containers, names, pod_placement
from spinney.embedded.apiserver.schema import internal

_SIZE = 1024 * 1024


def _keys(data: Json | None, path: str) -> list[FieldError]:
    return [error for key in data or {} for error in names.check_config_key(key, f"{path}[{key}]")]


def check_config_map(document: Json) -> list[FieldError]:
    """A ConfigMap."""
    data, binary = document.get("data") or {}, document.get("binaryData") or {}
    found = _keys(data, "data") + _keys(binary, "binaryData")
    found += [
        invalid("data" + f"[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary
    ]
    size = sum(len(value.encode()) for value in data.values()) + sum(len(value) * 3 // 4 for value in binary.values())
    return [*found, too_long("[]", _SIZE)] if size > _SIZE else found


def _frozen(new: Json, old: Json, parts: Sequence[str]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found: list[FieldError] = []
    if not new.get("immutable"):
        found.append(forbidden_field("immutable", "field is immutable when `immutable` is set"))
    for part in parts:
        if new.get(part) != old.get(part):
            found.append(forbidden_field(part, "field is immutable when `immutable` is set"))
    return found


def check_config_map_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a ConfigMap."""
    return _frozen(new, old, ("data", "binaryData"))


def check_secret(document: Json) -> list[FieldError]:
    """A Secret."""
    data = document.get("data") or {}
    found = _keys(data, "data")
    size = 0
    for key, value in data.items():
        try:
            size += len(base64.b64decode(value, validate=True))
        except binascii.Error:
            found.append(invalid(f"data[{key}]", value, "must be base64"))
    if size > _SIZE:
        found.append(too_long("data", _SIZE))
    kind = document.get("type", "")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        found += [required("data[username]"), required("data[password]")]
    if kind == "kubernetes.io/service-account-token":
        key = "kubernetes.io/service-account.name"
        if not (document["metadata"].get("annotations") or {}).get(key):
            found.append(required(f"metadata.annotations[{key}]"))
    for key in (".dockerconfigjson", ".dockercfg"):
        if kind == f"kubernetes.io/{key[1:]}" and key in data and not found:
            found += _readable(base64.b64decode(data[key]), f"data[{key}]")
    needed = {
        "kubernetes.io/dockercfg": (".dockercfg",),
        "kubernetes.io/tls": ("tls.crt", "tls.key"),
        "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
        "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    }.get(kind, ())
    return found + [required(f"data[{key}]") for key in needed if key not in data]


def _readable(text: bytes, path: str) -> list[FieldError]:
    """JSON that says how to log in, which no message may show."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return [invalid(path, "<secret contents redacted>", json_bodies.explain(text))]
    return []


def check_secret_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a Secret."""
    found = _frozen(new, old, ("data",))
    if new.get("type") != old.get("type"):
        found.append(invalid("type", new.get("type"), "field is immutable"))
    return found


_FINALIZER_RULE = "name is neither a standard finalizer name nor is it fully qualified"


def check_namespace(document: Json) -> list[FieldError]:
    """A Namespace."""
    return [invalid("spec.finalizers", name, _FINALIZER_RULE) for _, name in _strange_finalizers(document)]


def check_finalized(new: Json, old: Json) -> list[FieldError]:
    """A Namespace whose finalizers are written."""
    return [invalid(f"spec.finalizers[{at}]", name, _FINALIZER_RULE) for at, name in _strange_finalizers(new)]


def _strange_finalizers(document: Json) -> list[tuple[int, str]]:
    given = enumerate((document.get("spec") or {}).get("finalizers") or ())
    return [(at, name) for at, name in given if "/" not in name and name != "kubernetes"]


def check_namespace_status(new: Json, old: Json) -> list[FieldError]:
    """A Namespace is active until it is deleted, and terminating from then on."""
    phase = (new.get("status") or {}).get("phase")
    wanted, when = "Active", "empty"
    if old["metadata"].get("deletionTimestamp"):
        wanted, when = "Terminating", "not empty"
    if phase == wanted:
        return []
    return [invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {when}")]


def check_priority_class(document: Json) -> list[FieldError]:
    """A PriorityClass."""
    name, value = document["metadata"].get("name", ""), document.get("value", 0)
    system = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
    if name.startswith("system-"):
        if system.get(name) != value:
            detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
            detail += f"{name} is not a known system priority class" if name not in system else "value mismatch"
            return [forbidden_field("metadata.name", detail)]
        return []
    if value > 1_000_000_000:
        detail = "maximum allowed value of a user defined priority is 1000000000"
        return [forbidden_field("value", detail)]
    policy = document.get("preemptionPolicy", "PreemptLowerPriority")
    if policy not in ("Never", "PreemptLowerPriority"):
        return [unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))]
    return []


def check_priority_class_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a PriorityClass."""
    found: list[FieldError] = []
    if new.get("value", 0) != old.get("value", 0):
        found.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        found.append(invalid("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"))
    return found


def check_workload(document: Json) -> list[FieldError]:
    """A Workload of scheduling.k8s.io."""
    spec = document.get("spec") or {}
    groups = spec.get("podGroups") or ()
    found: list[FieldError] = []
    reference = spec.get("controllerRef")
    if reference is not None and reference.get("apiGroup"):
        group, where = reference["apiGroup"], "spec.controllerRef.apiGroup"
        found += [invalid(where, group, problem) for problem in naming.subdomain_problems(group)]
    if reference is not None:
        found += [required(f"spec.controllerRef.{key}") for key in ("kind", "name") if not reference.get(key)]
    if not groups:
        return [*found, required("spec.podGroups", "must have at least one item")]
    if len(groups) > 8:
        return [*found, too_many("spec.podGroups", len(groups), 8)]
    seen: set[str] = set()
    for at, group in enumerate(groups):
        where = f"spec.podGroups[{at}]"
        name = group.get("name", "")
        found += [invalid(f"{where}.name", name, problem) for problem in naming.label_problems(name)]
        if name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen.add(name)
        found += _policy(group.get("policy") or {}, f"{where}.policy")
    return found


def _policy(policy: Json, path: str) -> list[FieldError]:
    given = [key for key in ("basic", "gang") if policy.get(key) is not None]
    if not given:
        return [required(path, "exactly one of `basic`, `gang` is required")]
    if len(given) > 1:
        return [
            invalid(
                path, "{`basic`, `gang`}", "exactly one of `basic`, `gang` is required, but multiple fields are set"
            )
        ]
    least = (policy.get("gang") or {}).get("minCount", 1)
    if least <= 0:
        return [invalid(f"{path}.gang.minCount", least, "must be greater than zero")]
    return []


def check_workload_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a Workload."""
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    found: list[FieldError] = []
    if was.get("controllerRef") is not None and mine.get("controllerRef") != was.get("controllerRef"):
        reference = mine.get("controllerRef") or {}
        shown = {key: reference.get(key[0].lower() + key[1:], "") for key in ("Kind", "Name")}
        shown = {"APIGroup": reference.get("apiGroup", ""), **shown}
        found.append(invalid("controllerRef", shown, "field is immutable"))
    if mine.get("podGroups") != was.get("podGroups"):
        groups = [_internal_group(group) for group in mine.get("podGroups") or ()]
        found.append(invalid("podGroups", groups, "field is immutable"))
    return found


def _internal_group(group: Json) -> Json:
    """A pod group as Kubernetes' internal type prints it."""
    policy = group.get("policy") or {}
    gang = {"MinCount": policy["gang"].get("minCount", 0)} if policy.get("gang") is not None else None
    return {"Name": group.get("name", ""), "Policy": {"Basic": policy.get("basic"), "Gang": gang}}


def check_lease(document: Json) -> list[FieldError]:
    """A Lease."""
    spec = document.get("spec") or {}
    found: list[FieldError] = []
    if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
        found.append(invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        found.append(invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0"))
    return found


def check_runtime_class(document: Json) -> list[FieldError]:
    """A RuntimeClass."""
    handler, scheduling = document.get("handler", ""), document.get("scheduling") or {}
    found = [invalid("handler", handler, problem) for problem in naming.label_problems(handler)]
    overhead = (document.get("overhead") or {}).get("podFixed")
    if overhead:
        found += containers.check_resources({"limits": overhead}, "overhead")
    found += names.check_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations = scheduling.get("tolerations") or []
    found += pod_placement.check_tolerations(tolerations, "scheduling.tolerations")
    return found + [
        duplicate(f"scheduling.tolerations[{at}]", internal.struct(each, "core.Toleration"))
        for at, each in enumerate(tolerations)
        if each in tolerations[:at]
    ]
