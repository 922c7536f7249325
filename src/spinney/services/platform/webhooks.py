"""The webhook configurations and certificates of the services, under upstream's names."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urlsplit

import structlog

from spinney.api import labels
from spinney.api.kaiconfig import Admission, ConfigSpec, ControllerWebhooks, Global
from spinney.api.meta import Json
from spinney.kube.admission.certificates import Bundle, renewed
from spinney.kube.manifests import webhook_configurations
from spinney.kube.runtime import Component
from spinney.services.platform.deployments import named, secret_name
from spinney.services.platform.ports import ports_of
from spinney.services.platform.processes import Process, namespace_of
from spinney.services.platform.settings import PlatformSettings

_log = structlog.get_logger("spinney.platform")


def plan_certificate(
    process: Process, config: ConfigSpec, existing: Json | None, now: datetime, url: str = ""
) -> tuple[Json, str]:
    """The Secret of a process's certificate, renewed if due, and its CA bundle."""
    namespace = namespace_of(config)
    names = [f"{process.name}.{namespace}.svc", f"{process.name}.{namespace}.svc.cluster.local"]
    if host := urlsplit(url).hostname:
        names.append(host)
    try:
        bundle = renewed(_bundle(existing), names, now)
    except ValueError:
        _log.warning("certificate.unreadable", secret=secret_name(process))
        bundle = renewed(None, names, now)
    secret = named("v1", "Secret", secret_name(process), namespace, app=process.name)
    secret["type"] = "kubernetes.io/tls"
    parts = {
        "tls.crt": bundle.certificate,
        "tls.key": bundle.key,
        "ca.crt": bundle.authority,
        "ca.key": bundle.authority_key,
        "previous.crt": bundle.previous,
    }
    secret["data"] = {key: base64.b64encode(text.encode()).decode() for key, text in parts.items()}
    return secret, base64.b64encode(bundle.trusted.encode()).decode()


def _bundle(secret: Json | None) -> Bundle | None:
    data: Mapping[str, str] = (secret or {}).get("data") or {}
    if "ca.key" not in data:
        return None
    text = {key: base64.b64decode(value).decode() for key, value in data.items()}
    return Bundle(
        authority=text.get("ca.crt", ""),
        authority_key=text["ca.key"],
        previous=text.get("previous.crt", ""),
        certificate=text.get("tls.crt", ""),
        key=text.get("tls.key", ""),
    )


def plan_webhooks(
    process: Process, component: Component, config: ConfigSpec, trusted: str, settings: PlatformSettings
) -> list[Json]:
    """The webhook configurations of a process, at its Service or at a URL."""
    if component.configured is not None:
        component = component.configured(process.settings)
    url = settings.webhook_urls.get(process.name, "")
    documents = webhook_configurations(component, namespace_of(config), url, trusted)
    return [_registered(document, process, config, settings.left_out_namespaces) for document in documents]


def _registered(document: Json, process: Process, config: ConfigSpec, left_out: Sequence[str]) -> Json:
    ours = named(document["apiVersion"], document["kind"], _name(document["kind"], process, config), app=process.name)
    ours["webhooks"] = [_restricted(hook, process, config, left_out) for hook in document["webhooks"]]
    if document["kind"] == "MutatingWebhookConfiguration":
        for hook in ours["webhooks"]:
            hook["reinvocationPolicy"] = "IfNeeded"
    return ours


def _name(kind: str, process: Process, config: ConfigSpec) -> str:
    if process.name == "admission":
        admission = config.admission or Admission()
        if kind == "MutatingWebhookConfiguration":
            return admission.mutating_webhook_configuration_name or "mutating-kai-admission"
        return admission.validating_webhook_configuration_name or "validating-kai-admission"
    by_name: dict[str, tuple[ControllerWebhooks | None, str]] = {
        "queue-controller": (
            config.queue_controller.webhooks if config.queue_controller else None,
            "kai-queue-validation-",
        ),
        "podgroup-controller": (
            config.pod_group_controller.webhooks if config.pod_group_controller else None,
            "kai-podgroup-validation-",
        ),
    }
    block, default = by_name[process.name]
    prefix = (block.webhook_configuration_name_prefix if block else "") or default
    return f"{prefix}{namespace_of(config)}"


def _restricted(hook: Json, process: Process, config: ConfigSpec, left_out: Sequence[str]) -> Json:
    """The webhook with the process's Service; Config may limit those for pods to some namespaces and pods."""
    client: Json = dict(hook["clientConfig"])
    if "service" in client:
        port = ports_of(process.component, config).webhooks.port
        client["service"] = {**client["service"], "name": process.name, "port": port}
    narrowed: Json = {**hook, "clientConfig": client}
    if not any("pods" in rule["resources"] for rule in hook["rules"]):
        return narrowed
    common, admission = config.global_ or Global(), config.admission or Admission()
    expressions: list[Json] = list(hook["namespaceSelector"]["matchExpressions"])
    if left_out:
        expressions.append({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(left_out)})
    if admission.queue_label_selector:
        expressions.append({"key": common.queue_label_key or labels.QUEUE, "operator": "Exists"})
    narrowed["namespaceSelector"] = {"matchExpressions": expressions}
    if common.namespace_label_selector:
        narrowed["namespaceSelector"]["matchLabels"] = common.namespace_label_selector
    if common.pod_label_selector:
        narrowed["objectSelector"] = {"matchLabels": common.pod_label_selector}
    return narrowed
