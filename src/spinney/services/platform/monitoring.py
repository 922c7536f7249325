"""Prometheus beside the services, for usage over time: made only where Config asks for it."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.kaiconfig import ConfigSpec, Prometheus, ServiceMonitorConfig
from spinney.api.meta import Json
from spinney.services.platform.deployments import named
from spinney.services.platform.processes import namespace_of

GROUP_VERSION = "monitoring.coreos.com/v1"


def wants_monitoring(config: ConfigSpec) -> bool:
    """Whether anything here needs the kinds of prometheus-operator."""
    return config.prometheus is not None and bool(config.prometheus.enabled)


def plan_monitoring(config: ConfigSpec) -> list[Json]:
    """The Prometheus of an installation (unless it has one elsewhere), its account and Service, and what it scrapes."""
    wanted = config.prometheus
    if wanted is None or not wanted.enabled:
        return []
    found = _monitors(config, wanted)
    if wanted.external_prometheus_url:
        return found
    return [*_instance(config, wanted), *found]


def _instance(config: ConfigSpec, wanted: Prometheus) -> list[Json]:
    namespace = namespace_of(config)
    name = wanted.instance_name or "prometheus"
    account = named("v1", "ServiceAccount", name, namespace)
    accounting = {wanted.accounting_label_key or labels.ACCOUNTING: wanted.accounting_label_value or "true"}
    prometheus = named(GROUP_VERSION, "Prometheus", name, namespace)
    prometheus["spec"] = {
        "serviceAccountName": name,
        "retention": wanted.retention_period or "2w",
        "scrapeInterval": wanted.sample_interval or "1m",
        "serviceMonitorSelector": {"matchLabels": accounting},
        "serviceMonitorNamespaceSelector": {},
        "ruleSelector": {"matchLabels": accounting},
    }
    if wanted.enable_persistent_storage:
        claim = {
            "storageClassName": wanted.storage_class_name or "standard",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": wanted.storage_size or "50Gi"}},
        }
        prometheus["spec"]["storage"] = {"volumeClaimTemplate": {"spec": claim}}
    service = named("v1", "Service", "usage-prometheus", namespace)
    service["spec"] = {
        "selector": {"prometheus": name},
        "ports": [{"name": "web", "port": 9090, "targetPort": 9090, "protocol": "TCP"}],
    }
    return [account, prometheus, service]


def _monitors(config: ConfigSpec, wanted: Prometheus) -> list[Json]:
    said = wanted.service_monitor or ServiceMonitorConfig()
    if said.enabled is False:
        return []
    accounting = {wanted.accounting_label_key or labels.ACCOUNTING: wanted.accounting_label_value or "true"}
    endpoint: Json = {
        "interval": said.interval or "30s",
        "scrapeTimeout": said.scrape_timeout or "10s",
        **({"bearerTokenFile": said.bearer_token_file} if said.bearer_token_file else {}),
    }
    namespace = namespace_of(config)
    places = (
        ("queue-controller", {labels.APP: "queue-controller"}, "metrics", [namespace]),
        ("kube-state-metrics", {"app.kubernetes.io/name": "kube-state-metrics"}, "http", ["monitoring", "default"]),
    )
    found = []
    for name, selected, port, namespaces in places:
        monitor = named(GROUP_VERSION, "ServiceMonitor", name, namespace)
        monitor["metadata"]["labels"].update(accounting)
        monitor["spec"] = {
            "selector": {"matchLabels": selected},
            "namespaceSelector": {"matchNames": namespaces},
            "endpoints": [{**endpoint, "port": port}],
        }
        found.append(monitor)
    return found
