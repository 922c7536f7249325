"""What the server serves: the built-in resources as a table, and custom ones added at run time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.embedded.apiserver.schema.custom_resources import Custom

ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE = ("create",)


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object, with the kind that travels over it."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource at one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL
    subresources: dict[str, Subresource] = field(default_factory=dict)
    singular: str = ""
    list_kind: str = ""
    custom: Custom | None = None
    # Derived once, since every request asks for them; `stored` is the version that objects are kept at.
    api_version: str = ""
    stored: str = ""
    table: str = ""
    qualified: str = ""

    @staticmethod
    def of(group: str, version: str, kind: str, plural: str, namespaced: bool, **more: object) -> Kind:
        """A kind with its derived names filled in."""
        made = Kind(group, version, kind, plural, namespaced)
        return replace(
            made,
            **{
                "singular": kind.lower(),
                "list_kind": f"{kind}List",
                "api_version": f"{group}/{version}" if group else version,
                "stored": f"{group}/{version}" if group else version,
                "table": f"{group}/{plural}",
                "qualified": f"{plural}.{group}" if group else plural,
                **more,
            },  # type: ignore[arg-type]  # the names are this class's own fields
        )

    def key(self, namespace: str, name: str) -> str:
        """Where an object lies in the table."""
        return f"{namespace}/{name}" if self.namespaced else name


# group/version; then per line: kind, plural, scope (n = namespaced, c = cluster), short names, categories,
# subresources, and where they are not the usual ones, verbs (r = read only, + = create only).
_BUILT_IN = """
v1
  Binding bindings n - - - +
  ComponentStatus componentstatuses c cs - - r
  ConfigMap configmaps n cm - -
  Endpoints endpoints n ep - -
  Event events n ev - -
  LimitRange limitranges n limits - -
  Namespace namespaces c ns - finalize,status
  Node nodes c no - proxy,status
  PersistentVolumeClaim persistentvolumeclaims n pvc - status
  PersistentVolume persistentvolumes c pv - status
  Pod pods n po all attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status
  PodTemplate podtemplates n - - -
  ReplicationController replicationcontrollers n rc all scale,status
  ResourceQuota resourcequotas n quota - status
  Secret secrets n - - -
  ServiceAccount serviceaccounts n sa - token
  Service services n svc all proxy,status
apiregistration.k8s.io/v1
  APIService apiservices c - api-extensions status
apps/v1
  ControllerRevision controllerrevisions n - - -
  DaemonSet daemonsets n ds all status
  Deployment deployments n deploy all scale,status
  ReplicaSet replicasets n rs all scale,status
  StatefulSet statefulsets n sts all scale,status
events.k8s.io/v1
  Event events n ev - -
authentication.k8s.io/v1
  SelfSubjectReview selfsubjectreviews c - - - +
  TokenReview tokenreviews c - - - +
authorization.k8s.io/v1
  LocalSubjectAccessReview localsubjectaccessreviews n - - - +
  SelfSubjectAccessReview selfsubjectaccessreviews c - - - +
  SelfSubjectRulesReview selfsubjectrulesreviews c - - - +
  SubjectAccessReview subjectaccessreviews c - - - +
autoscaling/v2
  HorizontalPodAutoscaler horizontalpodautoscalers n hpa all status
autoscaling/v1
  HorizontalPodAutoscaler horizontalpodautoscalers n hpa all status
batch/v1
  CronJob cronjobs n cj all status
  Job jobs n - all status
certificates.k8s.io/v1
  CertificateSigningRequest certificatesigningrequests c csr - approval,status
networking.k8s.io/v1
  IngressClass ingressclasses c - - -
  Ingress ingresses n ing - status
  IPAddress ipaddresses c ip - -
  NetworkPolicy networkpolicies n netpol - -
  ServiceCIDR servicecidrs c - - status
policy/v1
  PodDisruptionBudget poddisruptionbudgets n pdb - status
rbac.authorization.k8s.io/v1
  ClusterRoleBinding clusterrolebindings c - - -
  ClusterRole clusterroles c - - -
  RoleBinding rolebindings n - - -
  Role roles n - - -
storage.k8s.io/v1
  CSIDriver csidrivers c - - -
  CSINode csinodes c - - -
  CSIStorageCapacity csistoragecapacities n - - -
  StorageClass storageclasses c sc - -
  VolumeAttachment volumeattachments c - - status
  VolumeAttributesClass volumeattributesclasses c vac - -
admissionregistration.k8s.io/v1
  MutatingWebhookConfiguration mutatingwebhookconfigurations c - api-extensions -
  ValidatingAdmissionPolicy validatingadmissionpolicies c - api-extensions status
  ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings c - api-extensions -
  ValidatingWebhookConfiguration validatingwebhookconfigurations c - api-extensions -
apiextensions.k8s.io/v1
  CustomResourceDefinition customresourcedefinitions c crd,crds api-extensions status
scheduling.k8s.io/v1
  PriorityClass priorityclasses c pc - -
scheduling.k8s.io/v1alpha1
  Workload workloads n - - -
coordination.k8s.io/v1
  Lease leases n - - -
node.k8s.io/v1
  RuntimeClass runtimeclasses c - - -
discovery.k8s.io/v1
  EndpointSlice endpointslices n - - -
resource.k8s.io/v1
  DeviceClass deviceclasses c - - -
  ResourceClaim resourceclaims n - - status
  ResourceClaimTemplate resourceclaimtemplates n - - -
  ResourceSlice resourceslices c - - -
flowcontrol.apiserver.k8s.io/v1
  FlowSchema flowschemas c - - status
  PriorityLevelConfiguration prioritylevelconfigurations c - - status
metrics.k8s.io/v1beta1
  NodeMetrics nodes c - - - r
  PodMetrics pods n - - - r
"""

# Versions of a kind whose objects are kept as another version's.
_KEPT_AS: dict[tuple[str, str, str], dict[str, str]] = {
    ("events.k8s.io", "v1", "events"): {"table": "/events", "stored": "v1"},
    ("autoscaling", "v1", "horizontalpodautoscalers"): {"stored": "autoscaling/v2"},
}
_STATUS_VERBS = ("get", "patch", "update")
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
# Subresources whose body is not the object itself.
_OTHER_BODIES = {
    "scale": ("autoscaling", "v1", "Scale", _STATUS_VERBS),
    "binding": ("", "v1", "Binding", CREATE),
    "eviction": ("policy", "v1", "Eviction", CREATE),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", CREATE),
    "attach": ("", "v1", "PodAttachOptions", _CONNECT),
    "exec": ("", "v1", "PodExecOptions", _CONNECT),
    "portforward": ("", "v1", "PodPortForwardOptions", _CONNECT),
}
_OWN_BODIES = {"log": ("get",), "finalize": ("update",)}


def subresource(name: str, group: str, version: str, kind: str) -> Subresource:
    """The subresource of that name, below a kind."""
    if name == "proxy":
        return Subresource(name, "", "v1", f"{kind}ProxyOptions", _PROXY)
    if name in _OTHER_BODIES:
        return Subresource(name, *_OTHER_BODIES[name])
    return Subresource(name, group, version, kind, _OWN_BODIES.get(name, _STATUS_VERBS))


def _names(column: str) -> tuple[str, ...]:
    return () if column == "-" else tuple(column.split(","))


def built_in() -> Iterator[Kind]:
    """The rows of the table."""
    group = version = ""
    for line in _BUILT_IN.strip().splitlines():
        if not line.startswith(" "):
            group, _, version = line.rpartition("/")
            continue
        kind, plural, scope, short, categories, subs, *verbs = line.split()
        kept_as = _KEPT_AS.get((group, version, plural), {})
        yield Kind.of(
            group,
            version,
            kind,
            plural,
            scope == "n",
            short=_names(short),
            categories=_names(categories),
            subresources={name: subresource(name, group, version, kind) for name in _names(subs)},
            verbs={"r": ("get", "list"), "+": CREATE}[verbs[0]] if verbs else _usual(plural),
            **kept_as,
        )


def _usual(plural: str) -> tuple[str, ...]:
    return tuple(verb for verb in ALL if verb != "deletecollection") if plural == "namespaces" else ALL


class Kinds:
    """The table as it is now. Versions of one group stand in order of preference."""

    def __init__(self) -> None:
        self._served: dict[tuple[str, str, str], Kind] = {}
        # Told to caches of discovery and OpenAPI documents.
        self.revision = 0
        for kind in built_in():
            self._served[(kind.group, kind.version, kind.plural)] = kind

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that serves a path."""
        return self._served.get((group, version, plural))

    def knows(self, group: str, version: str) -> bool:
        """Whether a group is served at all; of custom resources, whether it is at this version."""
        found = [kind for kind in self._served.values() if kind.group == group]
        return any(kind.custom is None or kind.version == version for kind in found)

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind an object says it is."""
        for served in self._served.values():
            if served.kind == kind and served.api_version == api_version:
                return served
        return None

    def preferred(self, group: str, plural: str) -> Kind | None:
        """The first version that serves a resource."""
        return next((kind for kind in self if kind.group == group and kind.plural == plural), None)

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._served.values()))

    def groups(self) -> dict[str, dict[str, list[Kind]]]:
        """Kinds by group and version."""
        found: dict[str, dict[str, list[Kind]]] = {}
        for kind in self._served.values():
            found.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        return found

    def replace_custom(self, name: str, kinds: list[Kind]) -> None:
        """Serve these versions of a custom resource (`plural.group`), and no others of it."""
        kept = {key: kind for key, kind in self._served.items() if kind.custom is None or kind.qualified != name}
        self._served = kept | {(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self.revision += 1
