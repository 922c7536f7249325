"""Deployments of the operator, of backends, of the platform and of the dashboard, with their settings."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.app.install.template import (
    NAMESPACE,
    VERSION,
    Digest,
    Document,
    Expression,
    Merged,
    Tree,
    When,
    above,
    all_of,
    either,
    is_,
    item,
    mapped,
    not_,
    text,
    value,
)
from spinney.kube.manifests import probes

METRICS, HEALTH, WEBHOOKS, PAGES = 8080, 8081, 9443, 8787
_SETTINGS, _CERTIFICATES = "/etc/spinney", "/etc/spinney-webhook"
_USER = 65532
# Pods whose metrics are read by `spinney-metrics`; those of the platform have Services of their own.
SCRAPED = {"spinney.dev/metrics-service": "spinney-metrics"}

IMAGE = text(value("image.repository"), ":", either(value("image.tag"), VERSION))
OWN_CERTIFICATES = is_(value("certificates.mode"), "own")


@dataclass(frozen=True)
class Workload:
    """One Deployment of a component."""

    name: Tree
    component: str
    resources: Expression
    settings: Document | None = None
    arguments: tuple[Tree, ...] = ()
    webhooks: bool = False
    # Names and numbers of ports beside those for metrics and webhooks.
    ports: tuple[tuple[str, int], ...] = ()


def labels_of(name: Tree) -> Tree:
    """The labels of an object of the installation."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "spinney"}


def named(api_version: str, kind: str, name: Tree, *, namespaced: bool = True) -> Tree:
    """An object of the installation, in its namespace or in none."""
    metadata = {"name": name, "labels": labels_of(name), **({"namespace": NAMESPACE} if namespaced else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def grove() -> Workload:
    """The operator."""
    arguments = (
        When(not_(OWN_CERTIFICATES), f"--webhook-cert={_CERTIFICATES}/tls.crt"),
        When(not_(OWN_CERTIFICATES), f"--webhook-key={_CERTIFICATES}/tls.key"),
        When(not_(OWN_CERTIFICATES), f"--webhook-listen=0.0.0.0:{WEBHOOKS}"),
    )
    return Workload(
        "spinney-grove",
        "grove",
        value("grove.resources"),
        Document("grove-settings", Merged("grove-defaults", {"logLevel": value("log.level")}, value("grove.config"))),
        arguments,
        webhooks=True,
    )


BACKENDS_NAME = Expression(
    'printf "spinney-backends%s" (ternary "" (printf "-%s" ($item.name)) (empty $item.name))',
    lambda scope: "spinney-backends" + (f"-{scope.item['name']}" if scope.item["name"] else ""),
)


def backends() -> Workload:
    """One Deployment of backends; inside of a loop over them."""
    only = Expression(
        'printf "--only=%s" (join "," $item.only)', lambda scope: "--only=" + ",".join(scope.item["only"])
    )
    return Workload(BACKENDS_NAME, "backends", value("backends.resources"), arguments=(When(item("only"), only),))


def platform() -> Workload:
    """The platform operator."""
    return Workload("spinney-platform", "platform", value("platform.resources"), platform_settings())


def dashboard() -> Workload:
    """The dashboard; its users log in with a token of the cluster."""
    defaults = {"host": "0.0.0.0", "port": PAGES, "login": "token"}
    return Workload(
        "spinney-dashboard",
        "dashboard",
        value("dashboard.resources"),
        Document("dashboard-settings", Merged("dashboard-defaults", defaults, value("dashboard.config"))),
        ports=(("pages", PAGES),),
    )


def dashboard_service() -> Tree:
    """Where the dashboard is reached; a reader stays with one pod, since each counts changes by itself."""
    service = named("v1", "Service", "spinney-dashboard")
    service["spec"] = {
        "selector": labels_of("spinney-dashboard"),
        "sessionAffinity": "ClientIP",
        "ports": [{"name": "pages", "port": PAGES, "targetPort": "pages"}],
    }
    return service


def platform_settings() -> Document:
    """The settings of the platform: the image, and the Config, shards and queues of the installation."""
    common = {
        "replicaCount": value("replicas"),
        "jsonLog": is_(value("log.format"), "json"),
        "tolerations": When(value("tolerations"), value("tolerations")),
        "nodeSelector": When(value("nodeSelector"), value("nodeSelector")),
        "priorityClassName": When(value("priorityClassName"), value("priorityClassName")),
        "additionalImagePullSecrets": When(value("image.pullSecrets"), value("image.pullSecrets")),
    }
    config = Merged("kai-config", {"namespace": NAMESPACE, "global": common}, value("config"))
    queues = {kind: value(f"queues.{kind}") for kind in ("gpu", "cpu", "memory")}
    return Document(
        "platform-settings",
        {
            "image": IMAGE,
            "owner": "spinney-platform",
            "leftOutNamespaces": value("excludedNamespaces"),
            "networkPolicies": value("networkPolicies"),
            "config": config,
            "shards": value("shards"),
            "queues": When(value("queues.enabled"), queues),
        },
    )


def documents_of(workload: Workload) -> list[Tree]:
    """The Deployment, its settings and its budget."""
    documents = [_deployment(workload)]
    if workload.settings is not None:
        settings = named("v1", "ConfigMap", workload.name)
        documents.insert(0, {**settings, "data": {"config.yaml": workload.settings}})
    budget = named("policy/v1", "PodDisruptionBudget", workload.name)
    budget["spec"] = {"maxUnavailable": 1, "selector": {"matchLabels": labels_of(workload.name)}}
    return [*documents, When(all_of(value("podDisruptionBudgets"), above(value("replicas"), 1)), budget)]


def _deployment(workload: Workload) -> Tree:
    template: Tree = {"metadata": {"labels": {**labels_of(workload.name), **SCRAPED}}, "spec": _pod(workload)}
    if workload.settings is not None:
        template["metadata"]["annotations"] = {"spinney.dev/settings": Digest(workload.settings)}
    return {
        **named("apps/v1", "Deployment", workload.name),
        "spec": {
            "replicas": value("replicas"),
            "selector": {"matchLabels": labels_of(workload.name)},
            # Only the leader acts, so the old pod may serve until the new one does.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": template,
        },
    }


def _pod(workload: Workload) -> Tree:
    spec: Tree = {
        "serviceAccountName": workload.name,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_apart(workload)]}},
        "containers": [_container(workload)],
        "tolerations": When(value("tolerations"), value("tolerations")),
        "nodeSelector": When(value("nodeSelector"), value("nodeSelector")),
        "priorityClassName": When(value("priorityClassName"), value("priorityClassName")),
        "imagePullSecrets": When(value("image.pullSecrets"), mapped(value("image.pullSecrets"), "name")),
    }
    volumes: list[Tree] = []
    if workload.settings is not None:
        volumes.append({"name": "settings", "configMap": {"name": workload.name}})
    if workload.webhooks:
        secret = {"name": "certificates", "secret": {"secretName": value("certificates.secret")}}
        volumes.append(When(not_(OWN_CERTIFICATES), secret))
    return {**spec, **({"volumes": volumes} if volumes else {})}


def _apart(workload: Workload) -> Tree:
    term = {"labelSelector": {"matchLabels": labels_of(workload.name)}, "topologyKey": "kubernetes.io/hostname"}
    return {"weight": 100, "podAffinityTerm": term}


def _container(workload: Workload) -> Tree:
    arguments: list[Tree] = ["run", workload.component, text("--namespace=", NAMESPACE)]
    arguments += [f"--metrics-listen=0.0.0.0:{METRICS}", f"--health-listen=0.0.0.0:{HEALTH}"]
    arguments += [text("--log-format=", value("log.format")), text("--log-level=", value("log.level"))]
    ports: list[Tree] = [{"name": "metrics", "containerPort": METRICS}, {"name": "health", "containerPort": HEALTH}]
    ports += [{"name": name, "containerPort": number} for name, number in workload.ports]
    mounts: list[Tree] = []
    if workload.settings is not None:
        arguments.append(f"--config={_SETTINGS}/config.yaml")
        mounts.append({"name": "settings", "mountPath": _SETTINGS, "readOnly": True})
    if workload.webhooks:
        ports.append({"name": "webhooks", "containerPort": WEBHOOKS})
        certificates = {"name": "certificates", "mountPath": _CERTIFICATES, "readOnly": True}
        mounts.append(When(not_(OWN_CERTIFICATES), certificates))
    return {
        "name": workload.component,
        "image": IMAGE,
        "imagePullPolicy": value("image.pullPolicy"),
        "args": [*arguments, *workload.arguments],
        "env": [{"name": "SPINNEY_IMAGE", "value": IMAGE}],
        "ports": ports,
        **({"volumeMounts": mounts} if mounts else {}),
        "resources": workload.resources,
        **probes(),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
