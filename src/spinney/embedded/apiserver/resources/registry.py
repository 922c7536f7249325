"""What the server serves: the records of the built-in kinds, and custom kinds added at run time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from spinney.api import naming
from spinney.embedded.apiserver.resources import (
    complete,
    controllerrevisions,
    cronjobs,
    daemonsets,
    defaults,
    deployments,
    horizontalpodautoscalers,
    jobs,
    lifecycle,
    other_versions,
    pod_admission,
    poddisruptionbudgets,
    podtemplates,
    printers,
    replicasets,
    replicationcontrollers,
    selectable_fields,
    statefulsets,
    strategy,
    warnings,
)
from spinney.embedded.apiserver.resources.kinds import Kind, subresource
from spinney.embedded.apiserver.resources.pod_cells import row_conditions
from spinney.embedded.apiserver.resources.record import (
    ALL_VERBS,
    CREATE_ONLY,
    READ_ONLY,
    Checks,
    Resource,
    Table,
    Warnings,
    no_errors,
    no_warnings,
)
from spinney.embedded.apiserver.resources.validation import metadata
from spinney.embedded.apiserver.resources.validation import table as checks

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

BUILT_IN: tuple[Resource, ...] = (
    podtemplates.POD_TEMPLATES,
    replicationcontrollers.REPLICATION_CONTROLLERS,
    controllerrevisions.CONTROLLER_REVISIONS,
    daemonsets.DAEMON_SETS,
    deployments.DEPLOYMENTS,
    replicasets.REPLICA_SETS,
    statefulsets.STATEFUL_SETS,
    horizontalpodautoscalers.HORIZONTAL_POD_AUTOSCALERS,
    cronjobs.CRON_JOBS,
    jobs.JOBS,
    poddisruptionbudgets.POD_DISRUPTION_BUDGETS,
)

# Versions of a kind whose objects are kept as another version's.
_KEPT_AS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("events.k8s.io", "v1", "events"): {"table": "/events", "stored": "v1", "other": other_versions.EVENTS},
    ("autoscaling", "v1", "horizontalpodautoscalers"): {
        "stored": "autoscaling/v2",
        "other": horizontalpodautoscalers.HORIZONTAL_POD_AUTOSCALERS.other_versions[0],
    },
}


_BY_TABLE = {f"{resource.group}/{resource.plural}": resource for resource in BUILT_IN}


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
            verbs={"r": READ_ONLY, "+": CREATE_ONLY}[verbs[0]] if verbs else _usual(plural),
            resource=_record(kept_as.get("table", f"{group}/{plural}")),
            **kept_as,
        )


def _usual(plural: str) -> tuple[str, ...]:
    return tuple(verb for verb in ALL_VERBS if verb != "deletecollection") if plural == "namespaces" else ALL_VERBS


def _record(table: str) -> Resource:
    """The record of a kind, gathered from tables by kind."""
    if table in _BY_TABLE:
        return _BY_TABLE[table]
    subresources = {part: check for (name, part), check in checks.PART_CHECKS.items() if name == table}
    printer = printers.PRINTERS.get(table)
    given: dict[str, Any] = {"default": defaults.DEFAULTS.get(table)}
    given["prepare_create"] = lifecycle.CREATED.get(table)
    given["prepare_update"] = lifecycle.UPDATED.get(table)
    given["prepare_status"] = lifecycle.STATUS_UPDATED.get(table)
    given["prepare_subresources"] = lifecycle.PARTS.get(table)
    if table == "/pods":
        given["admit_create"] = pod_admission.start
        given["after_webhooks"] = pod_admission.restart
    given["table"] = Table(*printer, row_conditions if table == "/pods" else None) if printer else None
    return Resource(
        complete=partial(complete.complete, table),
        status_on_create=table in lifecycle.STATUS_AT_CREATION,
        status_keeps=lifecycle.KEPT_BY_STATUS.get(table, ()),
        default_status=table == "/services",
        has_generation=table in strategy.GENERATIONS,
        generation_changes=table != "scheduling.k8s.io/priorityclasses",
        generation_covers={"apps/deployments": "annotations", "discovery.k8s.io/endpointslices": "labels"}.get(
            table, ""
        ),
        allow_unconditional_update=table not in strategy.NO_OVERWRITE,
        allow_create_on_update=table in strategy.CREATES_ON_UPDATE,
        returns_deleted_object=table in strategy.ANSWERS_WITH_DELETED,
        checks=Checks(
            name=metadata.NAME_RULES.get(table, naming.subdomain_problems),
            object=checks.CHECKS.get(table, no_errors),
            create=checks.CREATE_CHECKS.get(table, no_errors),
            update=checks.UPDATE_CHECKS.get(table, no_errors),
            object_first=table in _OBJECT_FIRST,
            subresources=subresources,
        ),
        warnings=Warnings(
            create=partial(warnings.warnings_of, table),
            update=partial(warnings.warnings_of_update, table),
            name=warnings.host_name if table == "/pods" else no_warnings,
            deprecation=_DEPRECATED.get(table, ""),
        ),
        selectable=selectable_fields.FIELDS.get(table, ()),
        **{key: value for key, value in given.items() if value is not None},
    )


_OBJECT_FIRST = frozenset(("apps/deployments", "apps/replicasets", "apps/statefulsets", "batch/jobs", "/pods"))
_DEPRECATED = {
    "/endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    "/componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
}
