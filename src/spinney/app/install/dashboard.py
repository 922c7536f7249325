"""The Grafana dashboard and the alert rules, from the names of our metrics."""

from __future__ import annotations

from spinney.api.meta import Json

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Title, query, and the legend of each line.
_PANELS = (
    ("Gangs by phase", "sum by (phase) (spinney_grove_gangs)", "{{phase}}"),
    ("Pods held by a gate", "sum(spinney_grove_pods_gated)", "pods"),
    ("GPUs in use by queue", "sum by (queue_name) (kai_queue_gpu_usage)", "{{queue_name}}"),
    ("Fair share of GPUs by queue", "sum by (queue_name) (kai_queue_fair_share_gpu)", "{{queue_name}}"),
    ("Length of a scheduling cycle, ms", "max(kai_e2e_scheduling_latency_milliseconds)", "cycle"),
    ("Evicted pods per minute", "60 * sum by (action) (rate(kai_pod_group_evicted_pods_total[5m]))", "{{action}}"),
    (
        "Failed reconciles per minute",
        '60 * sum by (controller) (rate(spinney_reconciles_total{result="failed"}[5m]))',
        "{{controller}}",
    ),
    ("Keys that wait for a worker", "sum by (controller) (spinney_queue_depth)", "{{controller}}"),
    ("Requests to the API server per second", "sum by (code) (rate(spinney_requests_total[5m]))", "{{code}}"),
    ("Writes per second", "sum by (component) (rate(spinney_writes_total[5m]))", "{{component}}"),
    ("Refused reviews per minute", '60 * sum(rate(spinney_admission_reviews_total{allowed="false"}[5m]))', "refused"),
    ("Who leads", "max by (lease, pod) (spinney_leading)", "{{lease}} {{pod}}"),
)


def _panel(number: int, title: str, query: str, legend: str) -> Json:
    return {
        "id": number + 1,
        "title": title,
        "type": "timeseries",
        "datasource": _SOURCE,
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "targets": [{"refId": "A", "expr": query, "legendFormat": legend}],
    }


DASHBOARD: Json = {
    "uid": "spinney",
    "title": "Spinney",
    "tags": ["kubernetes", "scheduling"],
    "schemaVersion": 39,
    "time": {"from": "now-6h", "to": "now"},
    "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
    "panels": [_panel(number, *panel) for number, panel in enumerate(_PANELS)],
}


def _alert(name: str, query: str, wait: str, summary: str, advice: str) -> Json:
    annotations = {"summary": summary, "description": advice}
    return {"alert": name, "expr": query, "for": wait, "labels": {"severity": "warning"}, "annotations": annotations}


ALERTS: list[Json] = [
    _alert(
        "SpinneyNobodyLeads",
        "max by (lease) (spinney_leading) == 0",
        "2m",
        "No replica holds the Lease {{ $labels.lease }}.",
        "Its component does nothing. Look at the logs of its pods, and run `spinney doctor`.",
    ),
    _alert(
        "SpinneyReconcilesFail",
        'sum by (controller) (rate(spinney_reconciles_total{result="failed"}[10m])) > 0.1',
        "15m",
        "Reconciles of {{ $labels.controller }} fail.",
        "The component's log names the objects and the errors.",
    ),
    _alert(
        "SpinneyFallsBehind",
        "max by (controller) (spinney_queue_depth) > 1000",
        "15m",
        "More than 1000 keys wait for {{ $labels.controller }}.",
        "The API server or the component is too slow: look at CPU throttling and at spinney_requests_total by code.",
    ),
    _alert(
        "SpinneyIsRefused",
        'sum by (pod) (rate(spinney_requests_total{code="403"}[10m])) > 0',
        "10m",
        "The API server refuses requests of {{ $labels.pod }}.",
        "A right is missing: apply the manifests of this version again, and run `spinney doctor`.",
    ),
]
