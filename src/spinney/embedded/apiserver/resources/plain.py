"""Kinds without defaults and checks: they are stored as sent, or not stored at all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.pod_subresources import bind_by_name
from spinney.embedded.apiserver.resources.record import (
    CREATE_ONLY,
    READ_ONLY,
    Checks,
    Deletion,
    Resource,
    Table,
    Warnings,
)


def _address_cells(document: Json, now: datetime) -> list[Any]:
    """Name, parent, and an age that Kubernetes writes without a column."""
    parent = cells.spec(document).get("parentRef")
    reference = "<none>"
    if parent:
        resource = cells.qualified(parent.get("resource", ""), parent.get("group")).lower()
        reference = "/".join(cells.given((resource, parent.get("namespace"), parent.get("name"))))
    return [cells.name(document), reference, cells.age(document, now)]


def _address_range_cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), ",".join(cells.spec(document).get("cidrs") or ()), cells.age(document, now)]


def _component_cells(document: Json, now: datetime) -> list[Any]:
    conditions = document.get("conditions") or ()
    healthy: Json | None = next((entry for entry in conditions if entry.get("type") == "Healthy"), None)
    if healthy is None:
        return [cells.name(document), "Unknown", "", ""]
    state = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [cells.name(document), state, healthy.get("message", ""), healthy.get("error", "")]


def _api_service_cells(document: Json, now: datetime) -> list[Any]:
    service = cells.spec(document).get("service")
    target = f"{service['namespace']}/{service['name']}" if service else "Local"
    conditions = cells.status(document).get("conditions") or ()
    ready: Json = next((entry for entry in conditions if entry["type"] == "Available"), {})
    state = ready.get("status", "Unknown")
    if state != "True" and ready.get("reason"):
        state = f"{state} ({ready['reason']})"
    return [cells.name(document), target, state, cells.age(document, now)]


BINDINGS = Resource(kind="Binding", plural="bindings", verbs=CREATE_ONLY, handlers={"": bind_by_name})
COMPONENT_STATUSES = Resource(
    kind="ComponentStatus",
    plural="componentstatuses",
    namespaced=False,
    short_names=("cs",),
    verbs=READ_ONLY,
    warnings=Warnings(deprecation="v1 ComponentStatus is deprecated in v1.19+"),
    table=Table("Name,Status,Message,Error", _component_cells),
)
SERVICE_ACCOUNTS = Resource(
    kind="ServiceAccount",
    plural="serviceaccounts",
    short_names=("sa",),
    subresources=("token",),
    deletion=Deletion(returns_object=True),
    table=Table("Name,Age", cells.plain),
)
API_SERVICES = Resource(
    group="apiregistration.k8s.io",
    kind="APIService",
    plural="apiservices",
    namespaced=False,
    categories=("api-extensions",),
    subresources=("status",),
    checks=Checks(qualified_finalizers=False),
    table=Table("Name,Service,Available,Age", _api_service_cells),
)
IP_ADDRESSES = Resource(
    group="networking.k8s.io",
    kind="IPAddress",
    plural="ipaddresses",
    namespaced=False,
    short_names=("ip",),
    table=Table("Name,ParentRef", _address_cells),
)
SERVICE_CIDRS = Resource(
    group="networking.k8s.io",
    kind="ServiceCIDR",
    plural="servicecidrs",
    namespaced=False,
    subresources=("status",),
    table=Table("Name,CIDRs,Age", _address_range_cells),
)
FLOW_SCHEMAS = Resource(
    group="flowcontrol.apiserver.k8s.io",
    kind="FlowSchema",
    plural="flowschemas",
    namespaced=False,
    subresources=("status",),
    has_generation=True,
)
PRIORITY_LEVEL_CONFIGURATIONS = Resource(
    group="flowcontrol.apiserver.k8s.io",
    kind="PriorityLevelConfiguration",
    plural="prioritylevelconfigurations",
    namespaced=False,
    subresources=("status",),
    has_generation=True,
)


def _review(group: str, kind: str, *, namespaced: bool = False) -> Resource:
    """A question that is answered and not stored."""
    return Resource(
        group=f"{group}.k8s.io", kind=kind, plural=f"{kind.lower()}s", namespaced=namespaced, verbs=CREATE_ONLY
    )


REVIEWS = (
    _review("authentication", "SelfSubjectReview"),
    _review("authentication", "TokenReview"),
    _review("authorization", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization", "SelfSubjectAccessReview"),
    _review("authorization", "SelfSubjectRulesReview"),
    _review("authorization", "SubjectAccessReview"),
)
NODE_METRICS = Resource(
    group="metrics.k8s.io", version="v1beta1", kind="NodeMetrics", plural="nodes", namespaced=False, verbs=READ_ONLY
)
POD_METRICS = Resource(group="metrics.k8s.io", version="v1beta1", kind="PodMetrics", plural="pods", verbs=READ_ONLY)
