"""Defaults of what makes and scales pods: sets, jobs and autoscalers."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.pod_defaults import fill, pod_spec

# Kept for clients of the time when a DaemonSet counted its templates itself.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _template(spec: Json) -> Json:
    template: Json = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))
    return template


def deployment(document: Json) -> None:
    """A Deployment."""
    spec = document.setdefault("spec", {})
    _template(spec)
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def replica_set(document: Json) -> None:
    """A ReplicaSet."""
    spec = document.setdefault("spec", {})
    _template(spec)
    spec.setdefault("replicas", 1)


def stateful_set(document: Json) -> None:
    """A StatefulSet."""
    spec = document.setdefault("spec", {})
    _template(spec)
    fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady", serviceName="")
    fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("partition", 0)
        # The feature that knows it is not switched on.
        rolling.pop("maxUnavailable", None)
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, kind="PersistentVolumeClaim", apiVersion="v1")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def daemon_set(document: Json) -> None:
    """A DaemonSet."""
    spec = document.setdefault("spec", {})
    metadata = document["metadata"]
    metadata["annotations"] = {TEMPLATE_GENERATION: "1", **(metadata.get("annotations") or {})}
    _template(spec)
    fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)


def job_spec(spec: Json) -> None:
    """A Job's spec, of a Job or of a CronJob's template."""
    _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    each = spec.get("backoffLimitPerIndex") is not None
    fill(
        spec,
        parallelism=1,
        backoffLimit=2**31 - 1 if each else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
    )
    policy = spec.get("podFailurePolicy")
    if policy is not None and not policy.get("rules"):
        policy["rules"] = None
    for rule in (policy or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition.setdefault("status", "True")
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")


def job(document: Json) -> None:
    """A Job."""
    job_spec(document.setdefault("spec", {}))


def cron_job(document: Json) -> None:
    """A CronJob."""
    spec = document.setdefault("spec", {})
    fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    inner = template.setdefault("spec", {})
    _template(inner)


def pod_template(document: Json) -> None:
    """A PodTemplate."""
    _template(document)


def replication_controller(document: Json) -> None:
    """A ReplicationController."""
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if "template" not in spec:
        return
    labels = _template(spec)["metadata"].get("labels")
    if labels:
        fill(spec, selector=dict(labels))
        fill(document["metadata"], labels=dict(labels))


def autoscaler(document: Json) -> None:
    """A HorizontalPodAutoscaler."""
    spec = document.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if document.get("apiVersion") == "autoscaling/v1":
        spec.setdefault("targetCPUUtilizationPercentage", 80)
    if document.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if spec.get("behavior") is not None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up, down = spec["behavior"].setdefault("scaleUp", {}), spec["behavior"].setdefault("scaleDown", {})
        fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        fill(up, policies=[{"type": "Pods", "value": 4, "periodSeconds": 15}, percent])
        fill(down, selectPolicy="Max", policies=[percent])
