"""The optional Prometheus of an installation, for usage over time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from spinney.api import labels
from spinney.api.duration import prometheus_seconds
from spinney.api.kaiconfig import ConfigSpec, Prometheus, ServiceMonitorConfig
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.services.platform.apply import Place
from spinney.services.platform.deployments import named
from spinney.services.platform.processes import namespace_of

GROUP_VERSION = "monitoring.coreos.com/v1"
# How Prometheus asks our components, which serve metrics over TLS with certificates of their own to those who may read.
SECURED: Json = {
    "scheme": "https",
    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "tlsConfig": {"insecureSkipVerify": True},
}
# When a Prometheus was disabled.
DEPRECATED = "kai/deprecation-timestamp"
_LONGEST_KEPT = "30d"


def plan_prometheus(config: ConfigSpec, present: Mapping[Place, Json], now: datetime) -> list[Json]:
    """The Prometheus (unless an external one is given), its account and Service, and its ServiceMonitors."""
    wanted = config.prometheus or Prometheus()
    monitors = _monitors(config, wanted) if wanted.enabled else []
    if wanted.enabled and not wanted.external_prometheus_url:
        return [*_instance(config, wanted), *monitors]
    existing = present.get(("Prometheus", namespace_of(config), _name(wanted)))
    return [*(_retained(config, wanted, existing, now) if existing is not None else []), *monitors]


def _retained(config: ConfigSpec, wanted: Prometheus, existing: Json, now: datetime) -> list[Json]:
    """A disabled Prometheus is kept for its retention time, in case it was disabled by mistake."""
    since = (existing["metadata"].get("annotations") or {}).get(DEPRECATED) or rfc3339(now)
    try:
        kept = timedelta(seconds=prometheus_seconds(existing.get("spec", {}).get("retention") or _LONGEST_KEPT))
        if now > datetime.fromisoformat(since) + kept:
            return []
    except ValueError:
        # Invalid values are replaced: only the platform writes them.
        since = rfc3339(now)
    objects = _instance(config, wanted)
    for document in objects:
        if document["kind"] == "Prometheus":
            document["metadata"]["annotations"] = {DEPRECATED: since}
            document["spec"] = existing["spec"]
    return objects


def _name(wanted: Prometheus) -> str:
    return wanted.instance_name or "prometheus"


def _instance(config: ConfigSpec, wanted: Prometheus) -> list[Json]:
    namespace = namespace_of(config)
    name = _name(wanted)
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
    settings = wanted.service_monitor or ServiceMonitorConfig()
    if settings.enabled is False:
        return []
    accounting = {wanted.accounting_label_key or labels.ACCOUNTING: wanted.accounting_label_value or "true"}
    endpoint: Json = {
        "interval": settings.interval or "30s",
        "scrapeTimeout": settings.scrape_timeout or "10s",
        **({"bearerTokenFile": settings.bearer_token_file} if settings.bearer_token_file else {}),
    }
    namespace = namespace_of(config)
    places: tuple[tuple[str, Json, str, list[str], Json], ...] = (
        ("queue-controller", {labels.APP: "queue-controller"}, "metrics", [namespace], SECURED),
        ("kube-state-metrics", {"app.kubernetes.io/name": "kube-state-metrics"}, "http", ["monitoring", "default"], {}),
    )
    monitors = []
    for name, selected, port, namespaces, secured in places:
        monitor = named(GROUP_VERSION, "ServiceMonitor", name, namespace)
        monitor["metadata"]["labels"].update(accounting)
        monitor["spec"] = {
            "selector": {"matchLabels": selected},
            "namespaceSelector": {"matchNames": namespaces},
            "endpoints": [{**secured, **endpoint, "port": port}],
        }
        monitors.append(monitor)
    return monitors
