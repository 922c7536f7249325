"""What `kubectl get` shows of built-in kinds: a column list (marks: see `columns`) and the cells, by table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import cells, network_cells, server_cells, storage_cells
from spinney.embedded.apiserver.resources.ages import age
from spinney.embedded.apiserver.resources.pod_cells import pod_cells

Cells = Callable[[Json, datetime], list[Any]]


def _node(document: Json, now: datetime) -> list[Any]:
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


def _namespace(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), cells.status(document).get("phase", ""), cells.age(document, now)]


def _config_map(document: Json, now: datetime) -> list[Any]:
    count = len(document.get("data") or ()) + len(document.get("binaryData") or ())
    return [cells.name(document), count, cells.age(document, now)]


def _secret(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), document.get("type", ""), len(document.get("data") or ()), cells.age(document, now)]


def _event(document: Json, now: datetime) -> list[Any]:
    about = document.get("involvedObject") or document.get("regarding") or {}
    series = document.get("series") or {}
    first = document.get("firstTimestamp") or document.get("eventTime")
    last = series.get("lastObservedTime") or document.get("lastTimestamp") or first
    count = series.get("count") or document.get("count") or 1
    source = document.get("source") or {}
    origin = source.get("component") or document.get("reportingComponent") or ""
    if instance := source.get("host") or document.get("reportingInstance"):
        origin = f"{origin}, {instance}"
    since = age(last, now)
    return [
        since,
        document.get("type", ""),
        document.get("reason", ""),
        "/".join(filter(None, (about.get("kind", "").lower(), about.get("name")))),
        about.get("fieldPath", ""),
        origin,
        (document.get("message") or document.get("note") or "").strip(),
        age(first, now),
        count,
        cells.name(document),
    ]


def _priority_class(document: Json, now: datetime) -> list[Any]:
    flag = bool(document.get("globalDefault"))
    return [
        cells.name(document),
        document.get("value", 0),
        flag,
        cells.age(document, now),
        document.get("preemptionPolicy", ""),
    ]


def _lease(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), cells.spec(document).get("holderIdentity", ""), cells.age(document, now)]


def _runtime_class(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), document.get("handler", ""), cells.age(document, now)]


def _role_binding(document: Json, now: datetime) -> list[Any]:
    role, subjects = document.get("roleRef") or {}, document.get("subjects") or ()
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        named.setdefault(subject.get("kind", ""), []).append(name)
    return [
        cells.name(document),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        cells.age(document, now),
        *(", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


def _quota(document: Json, now: datetime) -> list[Any]:
    status = cells.status(document)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits") else requests).append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [cells.name(document), ", ".join(requests), ", ".join(limits), cells.age(document, now)]


def _webhooks(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), len(document.get("webhooks") or ()), cells.age(document, now)]


def _resource_claim(document: Json, now: datetime) -> list[Any]:
    status = cells.status(document)
    state = ["deleted" if document["metadata"].get("deletionTimestamp") else ""]
    state += ["allocated" if status.get("allocation") else "pending"]
    state += ["reserved"] if status.get("reservedFor") else []
    return [cells.name(document), ",".join(filter(None, state)), cells.age(document, now)]


def _resource_slice(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    pool = (spec.get("pool") or {}).get("name", "")
    return [cells.name(document), spec.get("nodeName", ""), spec.get("driver", ""), pool, cells.age(document, now)]


def _policy(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    kind = spec.get("paramKind")
    told = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"
    return [cells.name(document), len(spec.get("validations") or ()), told, cells.age(document, now)]


def _go_selector(selector: Json) -> str:
    """A label selector as Go prints its struct."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    entries = "".join(
        f"LabelSelectorRequirement{{Key:{entry.get('key', '')},Operator:{entry.get('operator', '')},"
        f"Values:[{' '.join(entry.get('values') or ())}],}},"
        for entry in selector.get("matchExpressions") or ()
    )
    told = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{entries}}},"
    return f"&LabelSelector{{{told}}}"


def _policy_binding(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    found = spec.get("paramRef")
    told = "<unset>"
    if found and found.get("name"):
        told = f"{found.get('namespace') or '*'}/{found['name']}"
    elif found:
        told = _go_selector(found.get("selector") or {})
    return [cells.name(document), spec.get("policyName", ""), told, cells.age(document, now)]


def _api_service(document: Json, now: datetime) -> list[Any]:
    service = cells.spec(document).get("service")
    told = f"{service['namespace']}/{service['name']}" if service else "Local"
    conditions = cells.status(document).get("conditions") or ()
    ready: Json = next((entry for entry in conditions if entry["type"] == "Available"), {})
    state = ready.get("status", "Unknown")
    if state != "True" and ready.get("reason"):
        state = f"{state} ({ready['reason']})"
    return [cells.name(document), told, state, cells.age(document, now)]


_WORKLOAD = "+Containers,+Images,+Selector"
PRINTERS: dict[str, tuple[str, Cells]] = {
    "/pods": ("Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates", pod_cells),
    "/nodes": (
        "Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,+Kernel-Version,+Container-Runtime",
        _node,
    ),
    "/namespaces": ("Name,Status,Age", _namespace),
    "/services": ("Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector", network_cells.service),
    "/configmaps": ("Name,Data,Age", _config_map),
    "/secrets": ("Name,Type,Data,Age", _secret),
    "/serviceaccounts": ("Name,Age", cells.plain),
    "/persistentvolumeclaims": (
        "Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,+VolumeMode",
        storage_cells.claim,
    ),
    "/persistentvolumes": (
        "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,"
        "+VolumeMode",
        storage_cells.volume,
    ),
    "/events": ("Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name", _event),
    "/endpoints": ("Name,Endpoints,Age", network_cells.endpoints),
    "/resourcequotas": ("Name,Request,Limit,Age", _quota),
    "/limitranges": ("Name,@Created At", cells.created),
    "storage.k8s.io/csidrivers": (
        "Name,?AttachRequired,?PodInfoOnMount,?StorageCapacity,TokenRequests,?RequiresRepublish,Modes,Age",
        storage_cells.driver,
    ),
    "storage.k8s.io/csinodes": ("Name,#Drivers,Age", storage_cells.drivers),
    "storage.k8s.io/volumeattachments": ("Name,Attacher,PV,Node,?Attached,Age", storage_cells.attachment),
    "storage.k8s.io/volumeattributesclasses": ("Name,DriverName,Age", storage_cells.attributes_class),
    "networking.k8s.io/ingressclasses": ("Name,Controller,Parameters,Age", network_cells.ingress_class),
    "networking.k8s.io/ipaddresses": ("Name,ParentRef", network_cells.address),
    "networking.k8s.io/servicecidrs": ("Name,CIDRs,Age", network_cells.address_range),
    "admissionregistration.k8s.io/validatingadmissionpolicies": ("Name,#Validations,ParamKind,Age", _policy),
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": (
        "Name,PolicyName,ParamRef,Age",
        _policy_binding,
    ),
    "scheduling.k8s.io/priorityclasses": ("Name,#Value,?Global-Default,Age,PreemptionPolicy", _priority_class),
    "scheduling.k8s.io/workloads": ("Name,Age", cells.plain),
    "coordination.k8s.io/leases": ("Name,Holder,Age", _lease),
    "storage.k8s.io/storageclasses": (
        "Name,Provisioner,ReclaimPolicy,VolumeBindingMode,AllowVolumeExpansion,Age",
        storage_cells.storage_class,
    ),
    "node.k8s.io/runtimeclasses": ("Name,Handler,Age", _runtime_class),
    "apiextensions.k8s.io/customresourcedefinitions": ("Name,@Created At", cells.created),
    "rbac.authorization.k8s.io/clusterroles": ("Name,@Created At", cells.created),
    "rbac.authorization.k8s.io/roles": ("Name,@Created At", cells.created),
    "rbac.authorization.k8s.io/rolebindings": ("Name,Role,Age,+Users,+Groups,+ServiceAccounts", _role_binding),
    "rbac.authorization.k8s.io/clusterrolebindings": (
        "Name,Role,Age,+Users,+Groups,+ServiceAccounts",
        _role_binding,
    ),
    "networking.k8s.io/networkpolicies": ("Name,Pod-Selector,Age", network_cells.policy),
    "networking.k8s.io/ingresses": ("Name,Class,Hosts,Address,Ports,Age", network_cells.ingress),
    "discovery.k8s.io/endpointslices": ("Name,AddressType,Ports,Endpoints,Age", network_cells.endpoint_slice),
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": ("Name,#Webhooks,Age", _webhooks),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": ("Name,#Webhooks,Age", _webhooks),
    "apiregistration.k8s.io/apiservices": ("Name,Service,Available,Age", _api_service),
    "/componentstatuses": ("Name,Status,Message,Error", server_cells.component),
    "certificates.k8s.io/certificatesigningrequests": (
        "Name,Age,SignerName,Requestor,RequestedDuration,Condition",
        server_cells.signing_request,
    ),
    "flowcontrol.apiserver.k8s.io/flowschemas": (
        "Name,PriorityLevel,MatchingPrecedence,DistinguisherMethod,Age,MissingPL",
        server_cells.flow_schema,
    ),
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": (
        "Name,Type,NominalConcurrencyShares,Queues,HandSize,QueueLengthLimit,Age",
        server_cells.priority_level,
    ),
    "resource.k8s.io/resourceclaims": ("Name,State,Age", _resource_claim),
    "resource.k8s.io/resourceclaimtemplates": ("Name,Age", cells.plain),
    "resource.k8s.io/deviceclasses": ("Name,Age", cells.plain),
    "resource.k8s.io/resourceslices": ("Name,Node,Driver,Pool,Age", _resource_slice),
}
