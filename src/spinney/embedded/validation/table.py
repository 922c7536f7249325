"""Which check belongs to which kind."""

from __future__ import annotations

from spinney.embedded.validation import Check, CheckUpdate, core, definitions, pods, webhooks, workloads

CHECKS: dict[str, Check] = {
    "/pods": pods.check,
    "/configmaps": core.check_config_map,
    "/secrets": core.check_secret,
    "/services": core.check_service,
    "/namespaces": core.check_namespace,
    "/nodes": core.check_node,
    "/persistentvolumeclaims": core.check_claim,
    "/resourcequotas": core.check_quota,
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
    "rbac.authorization.k8s.io/roles": core.check_role,
    "rbac.authorization.k8s.io/clusterroles": core.check_role,
    "rbac.authorization.k8s.io/rolebindings": core.check_role_binding,
    "rbac.authorization.k8s.io/clusterrolebindings": core.check_role_binding,
    "coordination.k8s.io/leases": core.check_lease,
    "storage.k8s.io/storageclasses": core.check_storage_class,
    "/events": core.check_event,
    "apiextensions.k8s.io/customresourcedefinitions": definitions.check,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": webhooks.check,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": webhooks.check,
}

CREATE_CHECKS: dict[str, Check] = {"/pods": pods.check_create}

UPDATE_CHECKS: dict[str, CheckUpdate] = {
    "/pods": pods.check_update,
    "/configmaps": core.check_config_map_update,
    "/secrets": core.check_secret_update,
    "/services": core.check_service_update,
    "/persistentvolumeclaims": core.check_claim_update,
    "apps/deployments": workloads.check_selector_update,
    "apps/replicasets": workloads.check_selector_update,
    "apps/daemonsets": workloads.check_selector_update,
    "apps/statefulsets": workloads.check_stateful_set_update,
    "batch/jobs": workloads.check_job_update,
    "apiextensions.k8s.io/customresourcedefinitions": definitions.check_update,
    "scheduling.k8s.io/priorityclasses": core.check_priority_class_update,
    "scheduling.k8s.io/workloads": core.check_workload_update,
    "rbac.authorization.k8s.io/rolebindings": core.check_role_binding_update,
    "rbac.authorization.k8s.io/clusterrolebindings": core.check_role_binding_update,
    "storage.k8s.io/storageclasses": core.check_storage_class_update,
}
