"""Which fields of a kind can be selected by, and their values on an object."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.kinds import Kind

# Dotted paths; a field that Kubernetes prints as "true" or a number counts as that string.
_FIELDS: dict[str, tuple[str, ...]] = {
    "/pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "/nodes": ("spec.unschedulable",),
    "/namespaces": ("status.phase",),
    "/secrets": ("type",),
    "/services": ("spec.clusterIP", "spec.type"),
    "/replicationcontrollers": ("status.replicas",),
    "/events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "batch/jobs": ("status.successful",),
    "resource.k8s.io/resourceslices": ("spec.nodeName", "spec.driver"),
    "certificates.k8s.io/certificatesigningrequests": ("spec.signerName",),
}
_ALIASES = {"source": "source.component", "status.successful": "status.succeeded"}
# What another version of a kind calls the fields that its objects are kept with.
_OTHER_NAMES: dict[str, dict[str, str]] = {
    "events.k8s.io/v1": {
        "reportingController": "reportingComponent",
        **{f"regarding.{name.partition('.')[2]}": name for name in _FIELDS["/events"] if "." in name},
        **{name: name for name in ("reason", "source", "type")},
    }
}
_WORDS = {
    "batch/jobs": 'field label "{0}" not supported for Job',
    "resource.k8s.io/resourceslices": "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {0}",
}


@lru_cache(maxsize=4096)
def _paths(table: str, extra: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    names = (*_FIELDS.get(table, ()), *extra)
    return tuple((name, tuple(_ALIASES.get(name, name).split("."))) for name in names)


def _extra(kind: Kind) -> tuple[str, ...]:
    return kind.custom.selectable if kind.custom is not None else ()


@lru_cache(maxsize=1024)
def _selectable(table: str, version: str, extra: tuple[str, ...]) -> Mapping[str, str]:
    names = _OTHER_NAMES.get(version) or {name: name for name, _ in _paths(table, extra)}
    return {**names, "metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace"}


def kept_name(kind: Kind, name: str) -> str:
    """The name that a field of a selector is kept under; empty where the kind cannot be selected by it."""
    return _selectable(kind.table, kind.api_version, _extra(kind)).get(name, "")


def not_selectable(kind: Kind, name: str) -> str:
    """What Kubernetes says to a selector by such a field."""
    if kind.custom is None and kind.table not in _FIELDS:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return _WORDS.get(kind.table, "field label not supported: {0}").format(name)


def values(kind: Kind, document: Json) -> Mapping[str, str]:
    """The selectable fields of an object, name and namespace apart."""
    found: dict[str, str] = {}
    for name, path in _paths(kind.table, _extra(kind)):
        node: Any = document
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        found[name] = node if isinstance(node, str) else _text(node[0].get("ip") if isinstance(node, list) else node)
    if "spec.unschedulable" in found or "spec.hostNetwork" in found:
        for name in ("spec.unschedulable", "spec.hostNetwork"):
            if name in found and not found[name]:
                found[name] = "false"
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
