"""The objects of a process: Deployment, ConfigMap, Service, PodDisruptionBudget, VerticalPodAutoscaler."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec
import yaml

from spinney.api import labels
from spinney.api.kaiconfig import ConfigSpec, Global, Scheduler, SchedulerService
from spinney.api.meta import Json
from spinney.kube.manifests import probes
from spinney.services.platform.ports import Port, ports_of
from spinney.services.platform.processes import Process, image_name, namespace_of

MANAGED = {labels.MANAGED_BY: labels.KAI_OPERATOR}
# By this label the NetworkPolicy of an installation selects pods.
_INSTALLATION = {labels.PART_OF: "spinney"}
_SECURITY: Json = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 10000,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# The Secrets of webhook certificates by process, as upstream names them.
_CERTIFICATES = {
    "admission": "kai-admission-webhook-tls-secret",
    "queue-controller": "queue-webhook-tls-secret",
    "podgroup-controller": "podgroup-webhook-tls-secret",
}
CERTIFICATES = tuple(_CERTIFICATES.values())
_CONFIG_FOLDER = "/etc/spinney"
_CERTIFICATE_FOLDER = "/etc/spinney-webhook"


def plan_deployment(process: Process, config: ConfigSpec, image: str) -> list[Json]:
    """Every object of a process, apart from its account and rights."""
    config_map, template = settings_of(process, config)
    template["spec"] = _pod(process, config, image)
    wanted = [config_map, _deployment(process, config, template), _service(process, config)]
    budget = process.service.pod_disruption_budget
    if budget is not None and budget.enabled and process.replicas > 1:
        wanted.append(_budget(process, config, budget.max_unavailable or 1))
    if process.vpa is not None and process.vpa.enabled:
        wanted.append(_autoscaler(process, config))
    return wanted


def secret_name(process: Process) -> str:
    """The Secret of a process's webhook certificate."""
    return _CERTIFICATES[process.name]


def named(api_version: str, kind: str, name: str, namespace: str = "", app: str = "") -> Json:
    """An object with our labels."""
    metadata: Json = {"name": name, "labels": {labels.APP: app or name, **MANAGED}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def settings_of(process: Process, config: ConfigSpec) -> tuple[Json, Json]:
    """The ConfigMap with a process's settings, and a pod template that changes with them."""
    file = yaml.safe_dump(msgspec.to_builtins(process.settings), sort_keys=True)
    config_map = {**named("v1", "ConfigMap", process.name, namespace_of(config)), "data": {"config.yaml": file}}
    version = hashlib.sha256(file.encode()).hexdigest()[:16]
    marks = {labels.APP: process.name, **_INSTALLATION}
    return config_map, {"metadata": {"labels": marks, "annotations": {"configMapVersion": version}}}


def image_of(process: Process, default: str) -> Json:
    """The image of a process's container, and when to pull it."""
    image = process.service.image
    policy = (image.pull_policy if image else "") or "IfNotPresent"
    return {"image": image_name(image, default), "imagePullPolicy": policy}


def pull_secrets(common: Global) -> list[Json]:
    """The secrets to pull images with, each once."""
    names = dict.fromkeys((*common.additional_image_pull_secrets, common.images_pull_secret))
    return [{"name": name} for name in names if name]


def _deployment(process: Process, config: ConfigSpec, template: Json) -> Json:
    deployment = named("apps/v1", "Deployment", process.name, namespace_of(config))
    deployment["spec"] = {
        "replicas": process.replicas,
        "selector": {"matchLabels": {labels.APP: process.name}},
        # Only the leader acts, so the old pod may serve until the new one does.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": template,
    }
    return deployment


def _pod(process: Process, config: ConfigSpec, image: str) -> Json:
    common = config.global_ or Global()
    spec: Json = {
        "serviceAccountName": process.account,
        "containers": [_container(process, config, image)],
        "volumes": [{"name": "config", "configMap": {"name": process.name}}],
        "affinity": _affinity(process, common),
    }
    if process.webhooks:
        parts = [{"key": key, "path": key} for key in ("tls.crt", "tls.key")]
        spec["volumes"].append({"name": "webhook", "secret": {"secretName": secret_name(process), "items": parts}})
    optional: Mapping[str, object] = {
        "imagePullSecrets": pull_secrets(common),
        "nodeSelector": common.node_selector,
        "tolerations": [msgspec.to_builtins(toleration) for toleration in common.tolerations],
        "priorityClassName": common.priority_class_name,
    }
    return {**spec, **{key: value for key, value in optional.items() if value}}


def _container(process: Process, config: ConfigSpec, image: str) -> Json:
    common = config.global_ or Global()
    named_ports = ports_of(process.component, config)
    ports = [
        {"name": "metrics", "containerPort": named_ports.metrics.target},
        {"name": "health", "containerPort": named_ports.health},
    ]
    mounts = [{"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True}]
    if process.webhooks:
        ports.append({"name": "webhooks", "containerPort": named_ports.webhooks.target})
        mounts.append({"name": "webhook", "mountPath": _CERTIFICATE_FOLDER, "readOnly": True})
    container: Json = {
        "name": process.name,
        **image_of(process, image),
        "args": _arguments(process, config),
        "ports": ports,
        "volumeMounts": mounts,
        "resources": process.needs or {},
        **probes(),
    }
    if not common.openshift:
        security = common.security_context
        container["securityContext"] = msgspec.to_builtins(security) if security is not None else _SECURITY
    return container


def _arguments(process: Process, config: ConfigSpec) -> list[str]:
    arguments = ["run", process.component, "--config", f"{_CONFIG_FOLDER}/config.yaml"]
    arguments += ["--namespace", namespace_of(config)]
    ports = ports_of(process.component, config)
    arguments += ["--metrics-listen", f"0.0.0.0:{ports.metrics.target}", "--health-listen", f"0.0.0.0:{ports.health}"]
    limits = process.service.k8s_client_config
    if limits is not None and limits.qps:
        arguments += ["--qps", str(limits.qps)]
    if limits is not None and limits.burst:
        arguments += ["--burst", str(limits.burst)]
    if (config.global_ or Global()).json_log:
        arguments += ["--log-format", "json"]
    if process.webhooks:
        # Without a CA: the platform registers the webhooks itself.
        arguments += ["--webhook-listen", f"0.0.0.0:{ports.webhooks.target}"]
        arguments += ["--webhook-cert", f"{_CERTIFICATE_FOLDER}/tls.crt"]
        arguments += ["--webhook-key", f"{_CERTIFICATE_FOLDER}/tls.key"]
    return arguments


def _affinity(process: Process, common: Global) -> Json:
    """The service's affinity over the installation's, and by default anti-affinity between replicas."""
    affinity = {**(common.affinity or {}), **(process.service.affinity or {})}
    if "podAntiAffinity" in affinity:
        return affinity
    term = {
        "labelSelector": {"matchLabels": {labels.APP: process.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    if common.require_default_pod_anti_affinity_term:
        anti_affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    else:
        weighted = {"weight": 100, "podAffinityTerm": term}
        anti_affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return {**affinity, "podAntiAffinity": anti_affinity}


def _service(process: Process, config: ConfigSpec) -> Json:
    named_ports = ports_of(process.component, config)
    ports = [_service_port(named_ports.metrics)]
    if process.webhooks:
        ports.append(_service_port(named_ports.webhooks))
    service = named("v1", "Service", process.name, namespace_of(config))
    port = str(named_ports.metrics.target)
    scrape = {"prometheus.io/scrape": "true", "prometheus.io/port": port, "prometheus.io/scheme": "https"}
    service["metadata"]["annotations"] = scrape
    service["spec"] = {"selector": {labels.APP: process.name}, "ports": ports}
    if process.component == "scheduler":
        settings = (config.scheduler or Scheduler()).scheduler_service or SchedulerService()
        service["spec"]["type"] = settings.type or "ClusterIP"
        if service["spec"]["type"] == "ClusterIP":
            service["spec"]["clusterIP"] = "None"
            # A headless Service without a selector would get two families, and be refused with one again.
            service["spec"]["ipFamilyPolicy"] = "SingleStack"
        if process.replicas > 1:
            # Only the leader serves metrics: `leader_endpoints` writes the endpoints.
            del service["spec"]["selector"]
    return service


def _service_port(port: Port) -> Json:
    return {"name": port.name, "port": port.port, "targetPort": port.target, "protocol": "TCP"}


def _budget(process: Process, config: ConfigSpec, most: int) -> Json:
    budget = named("policy/v1", "PodDisruptionBudget", process.name, namespace_of(config))
    budget["spec"] = {"maxUnavailable": most, "selector": {"matchLabels": {labels.APP: process.name}}}
    return budget


def _autoscaler(process: Process, config: ConfigSpec) -> Json:
    assert process.vpa is not None
    settings = msgspec.to_builtins(process.vpa)
    autoscaler = named("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", process.name, namespace_of(config))
    autoscaler["spec"] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": process.name},
        "updatePolicy": settings.get("updatePolicy") or {"updateMode": "InPlaceOrRecreate"},
        **({"resourcePolicy": settings["resourcePolicy"]} if "resourcePolicy" in settings else {}),
    }
    return autoscaler
