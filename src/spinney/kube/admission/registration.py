"""Registration of admission webhooks: certificates in a Secret, and configurations that trust them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import msgspec
import structlog

from spinney.api.meta import Json, Resource
from spinney.kube.admission.certificates import Bundle, renewed
from spinney.kube.admission.configurations import wanted_registration
from spinney.kube.admission.server import WebhookServer
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.desired import plan
from spinney.kube.errors import AlreadyExists, Conflict
from spinney.kube.manifests import account_name, certificate_name, webhook_configurations, webhook_resource
from spinney.kube.runtime import Component
from spinney.kube.writer import Writer

SECRET = Resource("v1", "Secret", "secrets")

_log = structlog.get_logger("spinney.kube.admission.registration")

# How often certificates and registrations are looked at; they last for months.
_CHECK_SECONDS = 60.0


class Registration:
    """Keeps certificates in a Secret current, the server on them, and the webhook configurations trusting them.

    Replicas share the Secret: whoever comes first makes it, the others take what is there.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        components: Sequence[Component],
        server: WebhookServer,
        *,
        namespace: str,
        url: str = "",
        names: Sequence[str] = (),
        secret: str = "",
    ) -> None:
        self._client = client
        self._writer = Writer(client)
        self._clock = clock
        self._components = components
        self._server = server
        self._namespace = namespace
        self._url = url
        self._secret = secret or certificate_name(components[0])
        self._names = [*names, *(f"{account_name(component)}.{namespace}.svc" for component in components)]
        self._served: Bundle | None = None

    async def run(self) -> None:
        """Check once a minute until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            try:
                await self.refresh()
            except Exception:
                _log.exception("webhook.refresh_failed", secret=self._secret)

    async def refresh(self) -> None:
        """Bring certificate, server and webhook configurations up to date."""
        bundle = await self.certify()
        await self.register(bundle.trusted)

    async def certify(self) -> Bundle:
        """Give the server its certificate. Do this before registering, or requests fail in between."""
        bundle = await self._bundle()
        if bundle != self._served:
            self._server.use(bundle.certificate, bundle.key)
            self._served = bundle
        return bundle

    async def register(self, trusted: str) -> None:
        """Let the webhook configurations trust this authority; create those that are missing."""
        ca_bundle = base64.b64encode(trusted.encode()).decode()
        for component in self._components:
            for body in webhook_configurations(component, self._namespace, self._url, ca_bundle):
                await self._register(body)

    async def _register(self, served: Json) -> None:
        resource, name = webhook_resource(served["kind"]), served["metadata"]["name"]
        for last in (False, False, False, True):
            live = await self._client.find(resource, name)
            step = plan(wanted_registration(served, live), live)
            if step is None or step.act == "wait":
                return
            try:
                await self._writer.apply(step)
            except Conflict:
                # Another replica or an administrator was quicker: look again at what is there now.
                if last:
                    raise
            else:
                _log.info("webhook.registered", kind=served["kind"], name=name)

    async def _bundle(self) -> Bundle:
        name = self._secret
        while True:
            secret = await self._client.find(SECRET, (self._namespace, name))
            stored = _bundle_in(secret)
            wanted = self._renewed(stored)
            if wanted == stored:
                return wanted
            try:
                await self._store(name, secret, wanted)
            except (AlreadyExists, Conflict):
                # Another replica was quicker: take what it made.
                continue
            return wanted

    def _renewed(self, stored: Bundle | None) -> Bundle:
        try:
            return renewed(stored, self._names, self._clock.now())
        except ValueError:
            _log.warning("webhook.certificate_unreadable", secret=self._secret)
            return renewed(None, self._names, self._clock.now())

    async def _store(self, name: str, secret: Json | None, wanted: Bundle) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in msgspec.to_builtins(wanted).items()}
        if secret is None:
            body = {"metadata": {"name": name}, "type": "Opaque", "data": data}
            await self._client.create(SECRET, body, self._namespace)
            return
        precondition = {"resourceVersion": secret["metadata"]["resourceVersion"]}
        await self._client.patch(SECRET, (self._namespace, name), {"metadata": precondition, "data": data})


def _bundle_in(secret: Json | None) -> Bundle | None:
    data: dict[str, Any] = (secret or {}).get("data") or {}
    try:
        return msgspec.convert({key: base64.b64decode(value).decode() for key, value in data.items()}, Bundle)
    except (msgspec.ValidationError, ValueError):
        return None
