"""The records of all built-in kinds."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.embedded.apiserver.resources import (
    configmaps,
    cronjobs,
    customresourcedefinitions,
    daemonsets,
    deployments,
    endpoints,
    events,
    horizontalpodautoscalers,
    jobs,
    limitranges,
    namespaces,
    networking,
    nodes,
    persistentvolumeclaims,
    persistentvolumes,
    plain,
    poddisruptionbudgets,
    pods,
    priorityclasses,
    replicasets,
    resourceclaims,
    resourcequotas,
    resourceslices,
    rolebindings,
    roles,
    secrets,
    services,
    statefulsets,
    storageclasses,
    validatingadmissionpolicies,
    webhookconfigurations,
    workloads,
)
from spinney.embedded.apiserver.resources.kinds import Kind, subresource
from spinney.embedded.apiserver.resources.record import OtherVersion, Resource

# In the order of discovery.
BUILT_IN: tuple[Resource, ...] = (
    plain.BINDINGS,
    plain.COMPONENT_STATUSES,
    configmaps.CONFIG_MAPS,
    endpoints.ENDPOINTS,
    events.EVENTS,
    limitranges.LIMIT_RANGES,
    namespaces.NAMESPACES,
    nodes.NODES,
    persistentvolumeclaims.PERSISTENT_VOLUME_CLAIMS,
    persistentvolumes.PERSISTENT_VOLUMES,
    pods.PODS,
    plain.POD_TEMPLATES,
    plain.REPLICATION_CONTROLLERS,
    resourcequotas.RESOURCE_QUOTAS,
    secrets.SECRETS,
    plain.SERVICE_ACCOUNTS,
    services.SERVICES,
    plain.API_SERVICES,
    plain.CONTROLLER_REVISIONS,
    daemonsets.DAEMON_SETS,
    deployments.DEPLOYMENTS,
    replicasets.REPLICA_SETS,
    statefulsets.STATEFUL_SETS,
    *plain.REVIEWS,
    horizontalpodautoscalers.HORIZONTAL_POD_AUTOSCALERS,
    cronjobs.CRON_JOBS,
    jobs.JOBS,
    plain.CERTIFICATE_SIGNING_REQUESTS,
    networking.INGRESS_CLASSES,
    networking.INGRESSES,
    plain.IP_ADDRESSES,
    networking.NETWORK_POLICIES,
    plain.SERVICE_CIDRS,
    poddisruptionbudgets.POD_DISRUPTION_BUDGETS,
    rolebindings.CLUSTER_ROLE_BINDINGS,
    roles.CLUSTER_ROLES,
    rolebindings.ROLE_BINDINGS,
    roles.ROLES,
    plain.CSI_DRIVERS,
    plain.CSI_NODES,
    plain.CSI_STORAGE_CAPACITIES,
    storageclasses.STORAGE_CLASSES,
    plain.VOLUME_ATTACHMENTS,
    plain.VOLUME_ATTRIBUTES_CLASSES,
    webhookconfigurations.MUTATING_WEBHOOK_CONFIGURATIONS,
    validatingadmissionpolicies.VALIDATING_ADMISSION_POLICIES,
    validatingadmissionpolicies.VALIDATING_ADMISSION_POLICY_BINDINGS,
    webhookconfigurations.VALIDATING_WEBHOOK_CONFIGURATIONS,
    customresourcedefinitions.CUSTOM_RESOURCE_DEFINITIONS,
    priorityclasses.PRIORITY_CLASSES,
    workloads.WORKLOADS,
    plain.LEASES,
    plain.RUNTIME_CLASSES,
    endpoints.ENDPOINT_SLICES,
    resourceclaims.DEVICE_CLASSES,
    resourceclaims.RESOURCE_CLAIMS,
    resourceclaims.RESOURCE_CLAIM_TEMPLATES,
    resourceslices.RESOURCE_SLICES,
    plain.FLOW_SCHEMAS,
    plain.PRIORITY_LEVEL_CONFIGURATIONS,
    plain.NODE_METRICS,
    plain.POD_METRICS,
)


def built_in() -> Iterator[Kind]:
    """Every built-in kind at every version that it is served at."""
    for resource in BUILT_IN:
        yield _served(resource, resource.group, resource.version)
    for resource in BUILT_IN:
        for other in resource.other_versions:
            yield _served(resource, other.group, other.version, other)


def _served(resource: Resource, group: str, version: str, other: OtherVersion | None = None) -> Kind:
    return Kind.of(
        group,
        version,
        resource.kind,
        resource.plural,
        resource.namespaced,
        short=resource.short_names,
        categories=resource.categories,
        subresources={name: subresource(name, group, version, resource.kind) for name in resource.subresources},
        verbs=resource.verbs,
        resource=resource,
        other=other,
        table=f"{resource.group}/{resource.plural}",
        stored=f"{resource.group}/{resource.version}" if resource.group else resource.version,
    )
