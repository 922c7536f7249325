"""Which check belongs to which kind."""

from __future__ import annotations

from spinney.embedded.validation import (
    Check,
    CheckUpdate,
    access,
    core,
    definitions,
    events,
    limits,
    network,
    podparts,
    pods,
    podupdates,
    storage,
    webhooks,
    workloads,
)

CHECKS: dict[str, Check] = {
    "/pods": pods.check,
    "/configmaps": core.check_config_map,
    "/secrets": core.check_secret,
    "/services": core.check_service,
    "/namespaces": core.check_namespace,
    "/nodes": core.check_node,
    "/persistentvolumeclaims": storage.check_claim,
    "/persistentvolumes": storage.check_volume,
    "/limitranges": limits.check_limit_range,
    "/podtemplates": workloads.check_pod_template,
    "/replicationcontrollers": workloads.check_replication_controller,
    "networking.k8s.io/ingresses": network.check_ingress,
    "networking.k8s.io/ingressclasses": network.check_ingress_class,
    "discovery.k8s.io/endpointslices": network.check_endpoint_slice,
    "node.k8s.io/runtimeclasses": core.check_runtime_class,
    "apps/controllerrevisions": workloads.check_revision,
    "/resourcequotas": limits.check_quota,
    "apps/deployments": workloads.check_deployment,
    "apps/replicasets": workloads.check_replica_set,
    "apps/statefulsets": workloads.check_stateful_set,
    "apps/daemonsets": workloads.check_daemon_set,
    "batch/jobs": workloads.check_job,
    "batch/cronjobs": workloads.check_cron_job,
    "policy/poddisruptionbudgets": workloads.check_budget,
    "autoscaling/horizontalpodautoscalers": workloads.check_autoscaler,
    "scheduling.k8s.io/priorityclasses": core.check_priority_class,
    "scheduling.k8s.io/workloads": core.check_workload,
    "rbac.authorization.k8s.io/roles": access.check_role,
    "rbac.authorization.k8s.io/clusterroles": access.check_role,
    "rbac.authorization.k8s.io/rolebindings": access.check_role_binding,
    "rbac.authorization.k8s.io/clusterrolebindings": access.check_role_binding,
    "coordination.k8s.io/leases": core.check_lease,
    "storage.k8s.io/storageclasses": storage.check_storage_class,
    "/events": events.check,
    "apiextensions.k8s.io/customresourcedefinitions": definitions.check,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": webhooks.check,
    "admissionregistration.k8s.io/validatingadmissionpolicies": webhooks.check_policy,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": webhooks.check_policy_binding,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": webhooks.check,
}

CREATE_CHECKS: dict[str, Check] = {"/pods": pods.check_create, "/events": events.check_create}

UPDATE_CHECKS: dict[str, CheckUpdate] = {
    "/pods": podupdates.check_update,
    "/configmaps": core.check_config_map_update,
    "/secrets": core.check_secret_update,
    "/services": core.check_service_update,
    "/persistentvolumeclaims": storage.check_claim_update,
    "apps/deployments": workloads.check_selector_update,
    "apps/replicasets": workloads.check_selector_update,
    "apps/daemonsets": workloads.check_selector_update,
    "apps/controllerrevisions": workloads.check_revision_update,
    "apps/statefulsets": workloads.check_stateful_set_update,
    "batch/jobs": workloads.check_job_update,
    "apiextensions.k8s.io/customresourcedefinitions": definitions.check_update,
    "scheduling.k8s.io/priorityclasses": core.check_priority_class_update,
    "scheduling.k8s.io/workloads": core.check_workload_update,
    "rbac.authorization.k8s.io/rolebindings": access.check_role_binding_update,
    "rbac.authorization.k8s.io/clusterrolebindings": access.check_role_binding_update,
    "storage.k8s.io/storageclasses": storage.check_storage_class_update,
}

# By kind and subresource.
PART_CHECKS: dict[tuple[str, str], CheckUpdate] = {
    ("/pods", "ephemeralcontainers"): podparts.check_ephemeral,
    ("/pods", "resize"): podparts.check_resize,
    ("/namespaces", "finalize"): core.check_finalized,
    ("/namespaces", "status"): core.check_namespace_status,
    ("policy/poddisruptionbudgets", "status"): workloads.check_budget_status,
}
