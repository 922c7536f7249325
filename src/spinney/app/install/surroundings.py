"""What surrounds components: priority classes, network policies, and what Prometheus and Grafana get."""

from __future__ import annotations

import json

from spinney.api.labels import KAI_OPERATOR, MANAGED_BY
from spinney.api.meta import Json
from spinney.app.install.dashboard import ALERTS, DASHBOARD
from spinney.app.install.template import NAMESPACE, Merged, Tree, When, all_of, serves, value
from spinney.app.install.workloads import METRICS, SCRAPED, named
from spinney.app.installation import PRIORITIES
from spinney.services.platform.prometheus import SECURED

_RBAC, _READER = "rbac.authorization.k8s.io/v1", "spinney-metrics-reader"
_PROMETHEUS = "monitoring.coreos.com/v1"
_OURS = {"app.kubernetes.io/part-of": "spinney"}
_REACHED = ("metrics", "health", "webhooks", "pages")
_MONITORED = all_of(value("monitoring.enabled"), serves(_PROMETHEUS))


def priority_classes() -> list[Tree]:
    """KAI's priority classes: from 100 on, pods are not preempted."""
    documents = []
    for name, number in PRIORITIES.items():
        document = named("scheduling.k8s.io/v1", "PriorityClass", name, namespaced=False)
        documents.append(When(value("priorityClasses"), {**document, "value": number}))
    return documents


def network_policies() -> list[Tree]:
    """Let anyone reach webhooks, metrics and pages, and our pods reach anyone.

    API servers run outside of the pods' network, at addresses and ports that only the cluster knows. Ports go by name,
    since Config may give services others.
    """
    policy = named("networking.k8s.io/v1", "NetworkPolicy", "spinney")
    policy["spec"] = {
        "podSelector": {"matchLabels": dict(_OURS)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": port} for port in _REACHED]}],
        "egress": [{}],
    }
    return [When(value("networkPolicies"), policy)]


def monitoring() -> list[Tree]:
    """A Service for metrics, monitors for ours and for the platform's services, alert rules, and a dashboard."""
    metrics = named("v1", "Service", "spinney-metrics")
    ports = [{"name": "metrics", "port": METRICS, "targetPort": "metrics"}]
    metrics["spec"] = {"clusterIP": "None", "selector": dict(SCRAPED), "ports": ports}
    rules: Tree = named(_PROMETHEUS, "PrometheusRule", "spinney")
    rules["metadata"]["labels"] = _selected("spinney")
    rules["spec"] = {"groups": [{"name": "spinney", "rules": ALERTS}]}
    dashboard: Tree = named("v1", "ConfigMap", "spinney-grafana")
    dashboard["metadata"]["labels"] = {**dashboard["metadata"]["labels"], "grafana_dashboard": "1"}
    dashboard["data"] = {"spinney.json": json.dumps(DASHBOARD, sort_keys=True)}
    services = {MANAGED_BY: KAI_OPERATOR}
    return [
        metrics,
        *_readers(),
        When(_MONITORED, _monitor("spinney", {"app.kubernetes.io/name": "spinney-metrics"}, "metrics")),
        When(_MONITORED, _monitor("spinney-services", services, "http-metrics", "metrics")),
        When(_MONITORED, rules),
        When(value("monitoring.dashboard"), dashboard),
    ]


def _readers() -> list[Tree]:
    """The role of those who may read metrics; the Prometheus that a Config asks for has it."""
    role: Tree = named(_RBAC, "ClusterRole", _READER, namespaced=False)
    role["rules"] = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    binding: Tree = named(_RBAC, "ClusterRoleBinding", _READER, namespaced=False)
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _READER}
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "prometheus", "namespace": NAMESPACE}]
    return [role, binding]


def _monitor(name: str, selected: Json, *ports: str) -> Tree:
    monitor: Tree = named(_PROMETHEUS, "ServiceMonitor", name)
    monitor["metadata"]["labels"] = _selected(name)
    monitor["spec"] = {
        "namespaceSelector": {"matchNames": [NAMESPACE]},
        "selector": {"matchLabels": selected},
        "endpoints": [{"port": port, **SECURED} for port in ports],
    }
    return monitor


def _selected(name: str) -> Tree:
    return Merged(f"labels-{name}", {"app.kubernetes.io/name": name, **_OURS}, value("monitoring.labels"))
