"""The objects that every new cluster has: namespaces, default roles and system priority classes."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.access.bindings import ALL_RIGHTS, GROUP
from spinney.embedded.apiserver.resources import priorityclasses
from spinney.embedded.apiserver.write.creation import create_by_server
from spinney.embedded.apiserver.write.pipeline import Pipeline

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_RBAC = f"{GROUP}/v1"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_CORE = """
    configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers
    replicationcontrollers/scale serviceaccounts services services/status
"""
_STATUS = """
    bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status
    resourcequotas resourcequotas/status namespaces
"""
_APPS = """
    controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status
    replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status
"""


def _rule(groups: str, resources: str, verbs: tuple[str, ...]) -> Json:
    return {"apiGroups": groups.split(","), "resources": resources.split(), "verbs": list(verbs)}


_OTHERS = (
    ("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    ("batch", "cronjobs cronjobs/status jobs jobs/status"),
    ("policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    ("networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    ("discovery.k8s.io", "endpointslices"),
    ("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
)
_VIEW = [
    _rule("", _CORE, _READ),
    _rule("", _STATUS, _READ),
    _rule("apps", _APPS, _READ),
    *(_rule(group, names, _READ) for group, names in _OTHERS),
]
_EDIT = [
    _rule("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", _READ),
    _rule("", "serviceaccounts", ("impersonate",)),
    _rule("", "pods pods/attach pods/exec pods/portforward pods/proxy", _WRITE),
    _rule("", "pods/eviction", ("create",)),
    _rule("", "configmaps events persistentvolumeclaims secrets serviceaccounts services services/proxy", _WRITE),
    _rule("", "replicationcontrollers replicationcontrollers/scale", _WRITE),
    _rule("", "serviceaccounts/token", ("create",)),
    _rule(
        "apps", "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale", _WRITE
    ),
    _rule("apps", "statefulsets statefulsets/scale", _WRITE),
    *(_rule(group, names, _WRITE) for group, names in _OTHERS),
    _rule("coordination.k8s.io", "leases", (*_WRITE, *_READ)),
]
_ADMIN = [
    _rule("authorization.k8s.io", "localsubjectaccessreviews", ("create",)),
    _rule("rbac.authorization.k8s.io", "rolebindings roles", (*_WRITE, *_READ)),
]
_SCHEDULER = [
    _rule(",events.k8s.io", "events", ("create", "patch", "update")),
    _rule("coordination.k8s.io", "leases", ("create", "get", "list", "patch", "update", "watch")),
    _rule("", "nodes namespaces replicationcontrollers services persistentvolumes", _READ),
    _rule("", "pods", ("delete", *_READ)),
    _rule("", "bindings pods/binding", ("create",)),
    _rule("", "pods/status", ("patch", "update")),
    _rule("", "persistentvolumeclaims", (*_READ, "patch", "update")),
    _rule("apps", "replicasets statefulsets", _READ),
    _rule("policy", "poddisruptionbudgets", _READ),
    _rule("storage.k8s.io", "csinodes csidrivers csistoragecapacities storageclasses volumeattachments", _READ),
    _rule("resource.k8s.io", "deviceclasses resourceclaims resourceslices", (*_READ, "patch", "update")),
    _rule("resource.k8s.io", "resourceclaims/status", ("patch", "update")),
    _rule("scheduling.k8s.io", "workloads", _READ),
]
_DISCOVERY = [
    {
        "nonResourceURLs": [
            *("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*"),
            *("/readyz", "/version", "/version/"),
        ],
        "verbs": ["get"],
    }
]
_PUBLIC = [{"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"]}]
_BASIC = [
    _rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", ("create",)),
    _rule("authentication.k8s.io", "selfsubjectreviews", ("create",)),
]
ROLES: dict[str, list[Json]] = {
    "cluster-admin": ALL_RIGHTS,
    "system:aggregate-to-view": _VIEW,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-admin": _ADMIN,
    "system:discovery": _DISCOVERY,
    "system:public-info-viewer": _PUBLIC,
    "system:basic-user": _BASIC,
    "system:kube-scheduler": _SCHEDULER,
    "system:kube-controller-manager": ALL_RIGHTS,
    "system:auth-delegator": [
        _rule("authentication.k8s.io", "tokenreviews", ("create",)),
        _rule("authorization.k8s.io", "subjectaccessreviews", ("create",)),
    ],
    "system:node": [
        _rule("", "nodes nodes/status pods pods/status", (*_READ, *_WRITE)),
        _rule("", "configmaps secrets services persistentvolumeclaims persistentvolumes", _READ),
        _rule(",events.k8s.io", "events", ("create", "patch", "update")),
        _rule("coordination.k8s.io", "leases", (*_READ, *_WRITE)),
        _rule("resource.k8s.io", "resourceclaims resourceslices", (*_READ, *_WRITE)),
    ],
}
_BINDINGS = {
    "cluster-admin": ("Group", "system:masters"),
    "system:discovery": ("Group", "system:authenticated"),
    "system:basic-user": ("Group", "system:authenticated"),
    "system:kube-scheduler": ("User", "system:kube-scheduler"),
    "system:kube-controller-manager": ("User", "system:kube-controller-manager"),
}


async def fill(pipeline: Pipeline) -> None:
    """Create what does not exist yet."""
    for name in NAMESPACES:
        await _make(pipeline, "v1", "Namespace", {"metadata": {"name": name}})
    for name, value in priorityclasses.SYSTEM.items():
        purpose = "cluster" if "cluster" in name else "node"
        text = f"Used for system critical pods that must run in the {purpose}"
        body = {"metadata": {"name": name}, "value": value, "description": text + ", but can be moved"}
        await _make(pipeline, "scheduling.k8s.io/v1", "PriorityClass", body)
    for name, rules in ROLES.items():
        labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
        if name.startswith("system:aggregate-to-"):
            labels[f"rbac.authorization.k8s.io/aggregate-to-{name.rpartition('-')[2]}"] = "true"
        await _make(pipeline, _RBAC, "ClusterRole", {"metadata": {"name": name, "labels": labels}, "rules": rules})
    for name, below in (("view", ()), ("edit", ("view",)), ("admin", ("edit", "view"))):
        wanted = [
            {"matchLabels": {f"rbac.authorization.k8s.io/aggregate-to-{part}": "true"}} for part in (name, *below)
        ]
        rules = [rule for part in (name, *below) for rule in ROLES[f"system:aggregate-to-{part}"]]
        labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
        body = {"metadata": {"name": name, "labels": labels}, "rules": rules}
        await _make(pipeline, _RBAC, "ClusterRole", {**body, "aggregationRule": {"clusterRoleSelectors": wanted}})
    for name, (kind, subject) in _BINDINGS.items():
        await _bind(pipeline, name, [(kind, subject)])
    everyone = [("Group", "system:authenticated"), ("Group", "system:unauthenticated")]
    await _bind(pipeline, "system:public-info-viewer", everyone)


async def _bind(pipeline: Pipeline, role: str, subjects: list[tuple[str, str]]) -> None:
    listed = [{"kind": kind, "apiGroup": GROUP, "name": name} for kind, name in subjects]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    body = {"metadata": {"name": role}, "roleRef": reference, "subjects": listed}
    await _make(pipeline, _RBAC, "ClusterRoleBinding", body)


async def _make(pipeline: Pipeline, api_version: str, kind: str, body: Json) -> None:
    served = pipeline.kinds.by_kind(api_version, kind)
    assert served is not None
    if pipeline.core.store.get(served.table, body["metadata"]["name"]) is None:
        await create_by_server(pipeline, api_version, kind, body)
