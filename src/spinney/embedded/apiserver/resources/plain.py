"""Kinds with next to no rules of their own: they are stored as sent, or not stored at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import only_spec
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.pod_subresources import bind_by_name
from spinney.embedded.apiserver.resources.quota import Quota
from spinney.embedded.apiserver.resources.record import (
    CREATE_ONLY,
    READ_ONLY,
    Checks,
    Deletion,
    Resource,
    Table,
    Warnings,
)


def _api_service_cells(document: Json, now: datetime) -> list[Any]:
    service = cells.spec(document).get("service")
    target = f"{service['namespace']}/{service['name']}" if service else "Local"
    conditions = cells.status(document).get("conditions") or ()
    ready: Json = next((entry for entry in conditions if entry["type"] == "Available"), {})
    state = ready.get("status", "Unknown")
    if state != "True" and ready.get("reason"):
        state = f"{state} ({ready['reason']})"
    return [cells.name(document), target, state, cells.age(document, now)]


def _prepare_signing_request(core: Core, call: Call, document: Json) -> None:
    """Record the user who sent the request."""
    document["spec"] |= {"username": call.user.name, "groups": list(call.user.groups)}


def _approve(new: Json, old: Json) -> Json:
    return {**old, "status": new.get("status") or {}, "metadata": dict(old["metadata"])}


BINDINGS = Resource(kind="Binding", plural="bindings", verbs=CREATE_ONLY, handlers={"": bind_by_name})
COMPONENT_STATUSES = Resource(
    kind="ComponentStatus",
    plural="componentstatuses",
    namespaced=False,
    short_names=("cs",),
    verbs=READ_ONLY,
    warnings=Warnings(deprecation="v1 ComponentStatus is deprecated in v1.19+"),
)
POD_TEMPLATES = Resource(
    kind="PodTemplate",
    plural="podtemplates",
    default=default_template,
    has_generation=True,
    deletion=Deletion(returns_object=True),
)
REPLICATION_CONTROLLERS = Resource(
    kind="ReplicationController",
    plural="replicationcontrollers",
    short_names=("rc",),
    categories=("all",),
    subresources=("scale", "status"),
    default=only_spec,
    has_generation=True,
    quota=Quota(counted=True),
)
CONTROLLER_REVISIONS = Resource(
    group="apps",
    kind="ControllerRevision",
    plural="controllerrevisions",
    table=Table("Name,Revision,Age", cells.members("revision")),
)
LEASES = Resource(
    group="coordination.k8s.io",
    kind="Lease",
    plural="leases",
    default=only_spec,
    allow_unconditional_update=False,
    allow_create_on_update=True,
    checks=Checks(qualified_finalizers=False),
    table=Table("Name,Holder,Age", cells.members("spec.holderIdentity")),
)
RUNTIME_CLASSES = Resource(
    group="node.k8s.io",
    kind="RuntimeClass",
    plural="runtimeclasses",
    namespaced=False,
    allow_unconditional_update=False,
    allow_create_on_update=True,
    checks=Checks(qualified_finalizers=False),
    table=Table("Name,Handler,Age", cells.members("handler")),
)
CERTIFICATE_SIGNING_REQUESTS = Resource(
    group="certificates.k8s.io",
    kind="CertificateSigningRequest",
    plural="certificatesigningrequests",
    namespaced=False,
    short_names=("csr",),
    subresources=("approval", "status"),
    prepare_create=_prepare_signing_request,
    prepare_subresources={"approval": _approve},
    table=Table("Name,SignerName,Requestor,Age", cells.members("spec.signerName", "spec.username")),
)
CSI_DRIVERS = Resource(
    group="storage.k8s.io",
    kind="CSIDriver",
    plural="csidrivers",
    namespaced=False,
    allow_unconditional_update=False,
    deletion=Deletion(returns_object=True),
)
CSI_NODES = replace(CSI_DRIVERS, kind="CSINode", plural="csinodes")
CSI_STORAGE_CAPACITIES = replace(CSI_DRIVERS, kind="CSIStorageCapacity", plural="csistoragecapacities", namespaced=True)
VOLUME_ATTACHMENTS = replace(
    CSI_DRIVERS, kind="VolumeAttachment", plural="volumeattachments", subresources=("status",), status_keeps=None
)
VOLUME_ATTRIBUTES_CLASSES = replace(
    CSI_DRIVERS, kind="VolumeAttributesClass", plural="volumeattributesclasses", short_names=("vac",)
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
    group="networking.k8s.io", kind="IPAddress", plural="ipaddresses", namespaced=False, short_names=("ip",)
)
SERVICE_CIDRS = Resource(
    group="networking.k8s.io", kind="ServiceCIDR", plural="servicecidrs", namespaced=False, subresources=("status",)
)
FLOW_SCHEMAS = Resource(
    group="flowcontrol.apiserver.k8s.io",
    kind="FlowSchema",
    plural="flowschemas",
    namespaced=False,
    subresources=("status",),
    has_generation=True,
)
PRIORITY_LEVEL_CONFIGURATIONS = replace(
    FLOW_SCHEMAS, kind="PriorityLevelConfiguration", plural="prioritylevelconfigurations"
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
