"""What `kubectl get` shows of built-in kinds: a column list (`+` for wide, `#` for numbers) and the cells, by table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded import selectors
from spinney.embedded.ages import age, duration
from spinney.embedded.podcells import pod_cells

Cells = Callable[[Json, datetime], list[Any]]
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def compact(value: Any) -> str:
    """A map or list in one cell."""
    return msgspec.json.encode(value).decode()


def _name(document: Json) -> str:
    return str(document["metadata"]["name"])


def _age(document: Json, now: datetime) -> str:
    return age(document["metadata"].get("creationTimestamp"), now)


def _spec(document: Json) -> Json:
    return document.get("spec") or {}


def _status(document: Json) -> Json:
    return document.get("status") or {}


def _or_none(items: Iterable[Any]) -> str:
    return ",".join(str(item) for item in items) or "<none>"


def _containers(spec: Json) -> list[str]:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return [
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    ]


def _selector(spec: Json) -> str:
    return selectors.formatted(spec.get("selector")) or "<none>"


def _node(document: Json, now: datetime) -> list[Any]:
    status, labels = _status(document), document["metadata"].get("labels") or {}
    ready = next((entry for entry in status.get("conditions") or () if entry.get("type") == "Ready"), None)
    shown = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    if _spec(document).get("unschedulable"):
        shown.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix)
    info = status.get("nodeInfo") or {}
    addresses = {entry.get("type"): entry.get("address") for entry in status.get("addresses") or ()}
    return [
        _name(document),
        ",".join(shown),
        ",".join(roles) or "<none>",
        _age(document, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _namespace(document: Json, now: datetime) -> list[Any]:
    return [_name(document), _status(document).get("phase", ""), _age(document, now)]


def _service(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    kind = spec.get("type", "ClusterIP")
    ports = []
    for port in spec.get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    external = "<none>"
    if kind == "LoadBalancer":
        entries = (status.get("loadBalancer") or {}).get("ingress") or ()
        external = ",".join(entry.get("ip") or entry.get("hostname", "") for entry in entries) or "<pending>"
    elif kind == "ExternalName":
        external = spec.get("externalName", "<none>")
    elif spec.get("externalIPs"):
        external = ",".join(spec["externalIPs"])
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        _name(document),
        kind,
        spec.get("clusterIP") or "<none>",
        external,
        ",".join(ports) or "<none>",
        _age(document, now),
        selector or "<none>",
    ]


def _deployment(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    return [
        _name(document),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(document, now),
        *_containers(spec),
        _selector(spec),
    ]


def _replica_set(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(document), *counts, _age(document, now), *_containers(spec), _selector(spec)]


def _stateful_set(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [_name(document), ready, _age(document, now), *_containers(spec)]


def _daemon_set(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    counts = [
        status.get(key, 0)
        for key in (
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        )
    ]
    chosen = ((spec.get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    nodes = ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or "<none>"
    return [_name(document), *counts, nodes, _age(document, now), *_containers(spec), _selector(spec)]


def _job(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 1)
    done = status.get("succeeded", 0)
    if completions is not None:
        shown = f"{done}/{completions}"
    else:
        shown = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    took = ""
    if status.get("startTime"):
        end = datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now
        took = duration(int((end - datetime.fromisoformat(status["startTime"])).total_seconds()))
    return [
        _name(document),
        _job_status(document),
        shown,
        took,
        _age(document, now),
        *_containers(spec),
        _selector(spec),
    ]


def _job_status(document: Json) -> str:
    conditions = {
        entry.get("type") for entry in _status(document).get("conditions") or () if entry.get("status") == "True"
    }
    for kind in ("Complete", "Failed"):
        if kind in conditions:
            return kind
    if document["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in conditions:
            return kind
    return "Running"


def _cron_job(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else "<none>"
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        _name(document),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        str(bool(spec.get("suspend"))).capitalize(),
        len(status.get("active") or ()),
        last,
        _age(document, now),
        *_containers(inner),
        _selector(inner),
    ]


def _config_map(document: Json, now: datetime) -> list[Any]:
    count = len(document.get("data") or ()) + len(document.get("binaryData") or ())
    return [_name(document), count, _age(document, now)]


def _secret(document: Json, now: datetime) -> list[Any]:
    return [_name(document), document.get("type", ""), len(document.get("data") or ()), _age(document, now)]


def _access_modes(modes: Iterable[str]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes)


def _claim(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    phase = "Terminating" if document["metadata"].get("deletionTimestamp") else status.get("phase", "")
    volume = spec.get("volumeName", "")
    capacity = (status.get("capacity") or {}).get("storage", "") if volume else ""
    modes = _access_modes(status.get("accessModes") or ()) if volume else ""
    return [
        _name(document),
        phase,
        volume,
        capacity,
        modes,
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        _age(document, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _volume(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    claim = spec.get("claimRef") or {}
    phase = "Terminating" if document["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        _name(document),
        (spec.get("capacity") or {}).get("storage", ""),
        _access_modes(spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        _age(document, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _event(document: Json, now: datetime) -> list[Any]:
    about = document.get("involvedObject") or document.get("regarding") or {}
    series = document.get("series") or {}
    first = document.get("firstTimestamp") or document.get("eventTime")
    last = series.get("lastObservedTime") or document.get("lastTimestamp") or first
    count = series.get("count") or document.get("count") or 1
    source = document.get("source") or {}
    origin = source.get("component") or document.get("reportingComponent") or ""
    if source.get("host"):
        origin = f"{origin}, {source['host']}"
    since = age(last, now)
    return [
        since,
        document.get("type", ""),
        document.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        origin,
        (document.get("message") or document.get("note") or "").strip(),
        age(first, now),
        count,
        _name(document),
    ]


def _budget(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    least, most = spec.get("minAvailable", "N/A"), spec.get("maxUnavailable", "N/A")
    return [_name(document), str(least), str(most), status.get("disruptionsAllowed", 0), _age(document, now)]


def _autoscaler(document: Json, now: datetime) -> list[Any]:
    spec, status = _spec(document), _status(document)
    target = spec.get("scaleTargetRef") or {}
    current = {
        (metric.get("resource") or {}).get("name"): (metric.get("resource") or {}).get("current") or {}
        for metric in status.get("currentMetrics") or ()
    }
    shown = []
    for metric in spec.get("metrics") or ():
        resource = metric.get("resource") or {}
        wanted, found = resource.get("target") or {}, current.get(resource.get("name")) or {}
        if wanted.get("averageUtilization") is not None:
            now_at = found.get("averageUtilization")
            told = f"{now_at}%" if now_at is not None else "<unknown>"
            shown.append(f"{resource.get('name')}: {told}/{wanted['averageUtilization']}%")
        else:
            shown.append(f"{found.get('averageValue', '<unknown>')}/{wanted.get('averageValue', '<auto>')}")
    return [
        _name(document),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        ", ".join(shown) or "<none>",
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        _age(document, now),
    ]


def _priority_class(document: Json, now: datetime) -> list[Any]:
    flag = str(bool(document.get("globalDefault"))).lower()
    return [_name(document), document.get("value", 0), flag, _age(document, now), document.get("preemptionPolicy", "")]


def _lease(document: Json, now: datetime) -> list[Any]:
    return [_name(document), _spec(document).get("holderIdentity", ""), _age(document, now)]


def _storage_class(document: Json, now: datetime) -> list[Any]:
    annotations = document["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        _name(document) + (" (default)" if default else ""),
        document.get("provisioner", ""),
        document.get("reclaimPolicy", "Delete"),
        document.get("volumeBindingMode", "Immediate"),
        str(bool(document.get("allowVolumeExpansion"))).lower(),
        _age(document, now),
    ]


def _runtime_class(document: Json, now: datetime) -> list[Any]:
    return [_name(document), document.get("handler", ""), _age(document, now)]


def _created(document: Json, now: datetime) -> list[Any]:
    return [_name(document), document["metadata"].get("creationTimestamp")]


def _role_binding(document: Json, now: datetime) -> list[Any]:
    role, subjects = document.get("roleRef") or {}, document.get("subjects") or ()
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        named.setdefault(subject.get("kind", ""), []).append(name)
    return [
        _name(document),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        _age(document, now),
        *(", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


def _endpoints(document: Json, now: datetime) -> list[Any]:
    found = []
    for subset in document.get("subsets") or ():
        for address in subset.get("addresses") or ():
            for port in subset.get("ports") or [{}]:
                found.append(f"{address.get('ip')}:{port['port']}" if port.get("port") else str(address.get("ip")))
    shown = ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")
    return [_name(document), shown or "<none>", _age(document, now)]


def _network_policy(document: Json, now: datetime) -> list[Any]:
    chosen = selectors.formatted(_spec(document).get("podSelector")) or "<none>"
    return [_name(document), chosen, _age(document, now)]


def _quota(document: Json, now: datetime) -> list[Any]:
    status = _status(document)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits") else requests).append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [_name(document), ", ".join(requests), ", ".join(limits), _age(document, now)]


def _webhooks(document: Json, now: datetime) -> list[Any]:
    return [_name(document), len(document.get("webhooks") or ()), _age(document, now)]


def _resource_claim(document: Json, now: datetime) -> list[Any]:
    status = _status(document)
    state = ["deleted" if document["metadata"].get("deletionTimestamp") else ""]
    state += ["allocated" if status.get("allocation") else "pending"]
    state += ["reserved"] if status.get("reservedFor") else []
    return [_name(document), ",".join(filter(None, state)), _age(document, now)]


def _resource_slice(document: Json, now: datetime) -> list[Any]:
    spec = _spec(document)
    pool = (spec.get("pool") or {}).get("name", "")
    return [_name(document), spec.get("nodeName", ""), spec.get("driver", ""), pool, _age(document, now)]


def _plain(document: Json, now: datetime) -> list[Any]:
    return [_name(document), _age(document, now)]


def _revision(document: Json, now: datetime) -> list[Any]:
    owners = document["metadata"].get("ownerReferences") or ()
    owner = next((entry for entry in owners if entry.get("controller")), None)
    told = f"{owner['kind'].lower()}.apps/{owner['name']}" if owner else "<none>"
    return [_name(document), told, document.get("revision", 0), _age(document, now)]


def _endpoint_slice(document: Json, now: datetime) -> list[Any]:
    ports = _or_none(port.get("port") for port in document.get("ports") or ())
    addresses = [address for entry in document.get("endpoints") or () for address in entry.get("addresses") or ()]
    return [
        _name(document),
        document.get("addressType", ""),
        ports if ports != "<none>" else "<unset>",
        _or_none(addresses) if addresses else "<unset>",
        _age(document, now),
    ]


def _ingress(document: Json, now: datetime) -> list[Any]:
    spec = _spec(document)
    hosts = ",".join(rule.get("host", "*") for rule in spec.get("rules") or ()) or "*"
    entries = (_status(document).get("loadBalancer") or {}).get("ingress") or ()
    address = ",".join(entry.get("ip") or entry.get("hostname", "") for entry in entries)
    ports = "80, 443" if spec.get("tls") else "80"
    return [_name(document), spec.get("ingressClassName", "<none>"), hosts, address, ports, _age(document, now)]


def _api_service(document: Json, now: datetime) -> list[Any]:
    service = _spec(document).get("service")
    told = f"{service['namespace']}/{service['name']}" if service else "Local"
    conditions = _status(document).get("conditions") or ()
    ready: Json = next((entry for entry in conditions if entry["type"] == "Available"), {})
    return [_name(document), told, ready.get("status", "Unknown"), _age(document, now)]


_WORKLOAD = "+Containers,+Images,+Selector"
PRINTERS: dict[str, tuple[str, Cells]] = {
    "/pods": ("Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates", pod_cells),
    "/nodes": (
        "Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,+Kernel-Version,+Container-Runtime",
        _node,
    ),
    "/namespaces": ("Name,Status,Age", _namespace),
    "/services": ("Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector", _service),
    "/configmaps": ("Name,Data,Age", _config_map),
    "/secrets": ("Name,Type,#Data,Age", _secret),
    "/serviceaccounts": ("Name,Age", _plain),
    "/persistentvolumeclaims": (
        "Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,+VolumeMode",
        _claim,
    ),
    "/persistentvolumes": (
        "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,"
        "+VolumeMode",
        _volume,
    ),
    "/events": ("Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name", _event),
    "/endpoints": ("Name,Endpoints,Age", _endpoints),
    "/resourcequotas": ("Name,Request,Limit,Age", _quota),
    "/limitranges": ("Name,Created At", _created),
    "apps/deployments": (f"Name,Ready,Up-to-date,Available,Age,{_WORKLOAD}", _deployment),
    "apps/replicasets": (f"Name,#Desired,#Current,#Ready,Age,{_WORKLOAD}", _replica_set),
    "apps/statefulsets": ("Name,Ready,Age,+Containers,+Images", _stateful_set),
    "apps/daemonsets": (
        f"Name,#Desired,#Current,#Ready,#Up-to-date,#Available,Node Selector,Age,{_WORKLOAD}",
        _daemon_set,
    ),
    "apps/controllerrevisions": ("Name,Controller,#Revision,Age", _revision),
    "batch/jobs": (f"Name,Status,Completions,Duration,Age,{_WORKLOAD}", _job),
    "batch/cronjobs": (f"Name,Schedule,Timezone,Suspend,#Active,Last Schedule,Age,{_WORKLOAD}", _cron_job),
    "policy/poddisruptionbudgets": ("Name,Min Available,Max Unavailable,#Allowed Disruptions,Age", _budget),
    "autoscaling/horizontalpodautoscalers": ("Name,Reference,Targets,MinPods,#MaxPods,#Replicas,Age", _autoscaler),
    "scheduling.k8s.io/priorityclasses": ("Name,#Value,Global-Default,Age,PreemptionPolicy", _priority_class),
    "scheduling.k8s.io/workloads": ("Name,Age", _plain),
    "coordination.k8s.io/leases": ("Name,Holder,Age", _lease),
    "storage.k8s.io/storageclasses": (
        "Name,Provisioner,ReclaimPolicy,VolumeBindingMode,AllowVolumeExpansion,Age",
        _storage_class,
    ),
    "node.k8s.io/runtimeclasses": ("Name,Handler,Age", _runtime_class),
    "apiextensions.k8s.io/customresourcedefinitions": ("Name,Created At", _created),
    "rbac.authorization.k8s.io/clusterroles": ("Name,Created At", _created),
    "rbac.authorization.k8s.io/roles": ("Name,Created At", _created),
    "rbac.authorization.k8s.io/rolebindings": ("Name,Role,Age,+Users,+Groups,+ServiceAccounts", _role_binding),
    "rbac.authorization.k8s.io/clusterrolebindings": (
        "Name,Role,Age,+Users,+Groups,+ServiceAccounts",
        _role_binding,
    ),
    "networking.k8s.io/networkpolicies": ("Name,Pod-Selector,Age", _network_policy),
    "networking.k8s.io/ingresses": ("Name,Class,Hosts,Address,Ports,Age", _ingress),
    "discovery.k8s.io/endpointslices": ("Name,AddressType,Ports,Endpoints,Age", _endpoint_slice),
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": ("Name,#Webhooks,Age", _webhooks),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": ("Name,#Webhooks,Age", _webhooks),
    "apiregistration.k8s.io/apiservices": ("Name,Service,Available,Age", _api_service),
    "resource.k8s.io/resourceclaims": ("Name,State,Age", _resource_claim),
    "resource.k8s.io/resourceclaimtemplates": ("Name,Age", _plain),
    "resource.k8s.io/deviceclasses": ("Name,Age", _plain),
    "resource.k8s.io/resourceslices": ("Name,Node,Driver,Pool,Age", _resource_slice),
}
