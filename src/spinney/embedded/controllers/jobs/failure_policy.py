"""Pod failure policies: what a failed pod means for its Job, by exit code or condition."""

from __future__ import annotations

from spinney.api.batch import Job
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Json


def action(job: Job, pod: Pod) -> tuple[str, str]:
    """The action of the first rule that matches a failed pod, and a message; `Count` where none does."""
    for number, rule in enumerate((job.spec.pod_failure_policy or {}).get("rules") or []):
        match = _by_exit_code(rule, pod) or _by_condition(rule, pod)
        if match:
            return rule["action"], f"{match} matching {rule['action']} rule at index {number}"
    return "Count", ""


def _by_exit_code(rule: Json, pod: Pod) -> str:
    codes = rule.get("onExitCodes")
    if codes is None:
        return ""
    for status in pod.status.container_statuses:
        ended = status.state.terminated
        if ended is None or not ended.exit_code or codes.get("containerName") not in (None, status.name):
            continue
        if (ended.exit_code in codes["values"]) == (codes["operator"] == "In"):
            where = f"Container {status.name} for pod {pod.namespace}/{pod.name}"
            return f"{where} failed with exit code {ended.exit_code}"
    return ""


def _by_condition(rule: Json, pod: Pod) -> str:
    for pattern in rule.get("onPodConditions") or []:
        condition = find(pod.status.conditions, pattern["type"])
        if condition is not None and condition.status == pattern.get("status", "True"):
            return f"Pod {pod.namespace}/{pod.name} has condition {pattern['type']}"
    return ""
