"""Webhooks that concern our kinds: what serves them, whether they answer, and when their certificates expire."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import timedelta

from cryptography import x509

from spinney.api import labels
from spinney.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration, Webhook
from spinney.api.core import Pod
from spinney.api.crd import OUR_GROUPS
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import Queue
from spinney.api.meta import Json, Object
from spinney.app.doctor.api_server import is_laptop
from spinney.app.doctor.findings import Finding, Target
from spinney.kube.errors import AlreadyExists, ApiError, NotFound

_NAME = "spinney-doctor"
_SOON = timedelta(days=14)
_CONTAINER = {"name": "main", "image": "busybox"}
_POD: Json = {"schedulerName": labels.KAI_SCHEDULER, "containers": [_CONTAINER]}
_SET: Json = {"replicas": 1, "template": {"cliques": [{"name": "a", "spec": {"replicas": 1, "podSpec": _POD}}]}}
# What is created with dryRun, so that the API server asks the webhooks and stores nothing.
_TRIALS: tuple[tuple[type[Object], Json], ...] = (
    (PodCliqueSet, {"metadata": {"name": _NAME}, "spec": _SET}),
    (Pod, {"metadata": {"name": _NAME}, "spec": _POD}),
    (Queue, {"metadata": {"name": _NAME}, "spec": {"resources": {"gpu": {"quota": -1, "limit": -1}}}}),
)
_UNANSWERED = "failed calling webhook"
_REFUSED = "admission webhook"

Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration


async def check_webhooks(target: Target) -> list[Finding]:
    """Who serves which webhook, whether all of them answer, and their certificates."""
    mutating = (await target.client.list(MutatingWebhookConfiguration)).items
    validating = (await target.client.list(ValidatingWebhookConfiguration)).items
    both: list[Configuration] = [*mutating, *validating]
    concerned = [(configuration, hook) for configuration in both for hook in _concerned(configuration)]
    if not concerned:
        text = "no webhook checks our kinds: objects get no defaults, and mistakes are accepted"
        return [Finding(check="webhooks", status="problem", text=text, advice="install: see docs/users/install.md")]
    findings = [
        Finding(check="webhooks", status="ok", text=f"{configuration.name}: {hook.name} is served {_where(hook)}")
        for configuration, hook in concerned
    ]
    for kind, body in _TRIALS:
        findings += await _trial(target, kind, body)
    in_process = await is_laptop(target)
    for configuration, hook in concerned:
        findings += list(_authorities(target, configuration.name, hook, in_process=in_process))
    return findings


def _concerned(configuration: Configuration) -> Iterator[Webhook]:
    for hook in configuration.webhooks:
        groups = {group for rule in hook.rules for group in rule.api_groups}
        if groups & set(OUR_GROUPS) or "kai.scheduler" in hook.name:
            yield hook


def _where(hook: Webhook) -> str:
    service = hook.client_config.service
    if service is None:
        return f"at {hook.client_config.url}"
    return f"by Service {service.namespace}/{service.name}"


async def _trial(target: Target, kind: type[Object], body: Json) -> list[Finding]:
    """Create an object without storing it."""
    name, namespaced = kind.resource.kind, kind.resource.namespaced
    path = kind.resource.path("default" if namespaced else "")
    # Of kinds that it has by a CRD, a real API server takes no object without them.
    typed = {"apiVersion": kind.resource.api_version, "kind": name, **body}
    try:
        await target.client.call("POST", path, [("dryRun", "All")], body=typed)
    except NotFound:
        # The check of CRDs says so.
        return []
    except ApiError as error:
        if _UNANSWERED in str(error):
            advice = "kubectl get pods -n NAMESPACE of its Service: start what serves it, or delete the configuration"
            return [Finding(check="webhooks", status="problem", text=f"{name}: {error}", advice=advice)]
        if _REFUSED not in str(error) and not isinstance(error, AlreadyExists):
            text = f"whether webhooks for a {name} answer could not be tried: {error}"
            return [Finding(check="webhooks", status="unknown", text=text, advice="ask an administrator")]
    return [Finding(check="webhooks", status="ok", text=f"all webhooks for a {name} answer")]


def _authorities(target: Target, configuration: str, hook: Webhook, *, in_process: bool) -> Iterator[Finding]:
    """Certificates in the CA bundle that ended, or end soon."""
    name = f"{configuration}: {hook.name}"
    if not hook.client_config.ca_bundle:
        if hook.client_config.service is not None and in_process:
            text = f"{name} needs no CA bundle: it is served in the API server's process"
            yield Finding(check="certificates", status="ok", text=text)
        elif hook.client_config.service is not None:
            advice = "its component fills it in when it starts; with cert-manager, cert-manager does"
            text = f"{name} has no CA bundle: only an API server in the same process trusts it"
            yield Finding(check="certificates", status="note", text=text, advice=advice)
        return
    try:
        bundle = x509.load_pem_x509_certificates(base64.b64decode(hook.client_config.ca_bundle))
    except ValueError:
        advice = "delete it: the component writes it anew within a minute"
        yield Finding(check="certificates", status="problem", text=f"{name}: unreadable CA bundle", advice=advice)
        return
    last = max(certificate.not_valid_after_utc for certificate in bundle)
    if last - target.clock.now() < _SOON:
        text = f"{name}: the authority of its certificate ends on {last:%Y-%m-%d}"
        advice = "a component renews it long before: look whether it runs and leads"
        yield Finding(check="certificates", status="problem", text=text, advice=advice)
    else:
        yield Finding(check="certificates", status="ok", text=f"{name}: trusted until {last:%Y-%m-%d}")
