"""Admission webhooks: reviews as plain functions of bytes, served over TLS, and registered with a current CA bundle."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec
import structlog
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from spinney.api.meta import Json, Resource
from spinney.kube.admission.certificates import Bundle, renewed
from spinney.kube.admission.jsonpatch import diff
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.credentials import load_certificate
from spinney.kube.client.retry import holds
from spinney.kube.clock import Clock
from spinney.kube.errors import AlreadyExists, Conflict, NotFound
from spinney.kube.manifests import account_name, webhook_configurations
from spinney.kube.metrics import REVIEWS
from spinney.kube.runtime import Component, Runtime, Webhook

SECRET = Resource("v1", "Secret", "secrets")

_log = structlog.get_logger("spinney.kube.admission.webhooks")

# How often certificates and registrations are looked at; they last for months.
_CHECK_SECONDS = 60.0

# A review carries the old and the new object, each of up to 3 MiB.
_MOST_BYTES = 8 * 2**20

Reviewer = Callable[[bytes], Awaitable[bytes]]


def allow(warnings: Iterable[str] = ()) -> Json:
    """The answer of a review that has no objection."""
    return {"allowed": True, **({"warnings": list(warnings)} if warnings else {})}


def deny(message: str, reason: str = "Forbidden", code: int = 403, warnings: Iterable[str] = ()) -> Json:
    """The answer of a review that refuses, with what the user is told."""
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"allowed": False, "status": status, **({"warnings": list(warnings)} if warnings else {})}


def change(before: Json, after: Json, warnings: Iterable[str] = ()) -> Json:
    """The answer of a review that changes the object."""
    operations = diff(before, after)
    answer = allow(warnings)
    if operations:
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(msgspec.json.encode(operations)).decode()
    return answer


def reviewers(component: Component, runtime: Runtime) -> dict[str, Reviewer]:
    """What answers on each path of a component: an AdmissionReview in bytes in, one out."""
    return {hook.path: _reviewer(hook, hook.review(runtime)) for hook in component.webhooks}


def _reviewer(hook: Webhook, review: Callable[[Json], Awaitable[Json]]) -> Reviewer:
    async def answer(body: bytes) -> bytes:
        document: Json = msgspec.json.decode(body)
        request: Json = document["request"]
        try:
            response = await review(request)
        except Exception:
            # With failurePolicy Fail the request is refused either way; so is it here, with a reason.
            _log.exception("review.failed", webhook=hook.name, name=request.get("name"))
            response = deny(f"webhook {hook.name}: internal error, see its log", "InternalError", 500)
        REVIEWS.labels(hook.name, str(response["allowed"]).lower()).inc()
        return msgspec.json.encode(
            {
                "apiVersion": document.get("apiVersion", "admission.k8s.io/v1"),
                "kind": "AdmissionReview",
                "response": {"uid": request.get("uid", ""), **response},
            }
        )

    return answer


class WebhookServer:
    """Serves reviews over TLS. `use` sets the certificate, again and again while it runs."""

    def __init__(self, paths: dict[str, Reviewer]) -> None:
        self._paths = paths
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2

    def use(self, certificate: str, key: str) -> None:
        """Serve new connections with this certificate."""
        load_certificate(self._tls, certificate, key)

    async def serve(self, host: str, port: int, started: Callable[[int], None] = lambda _: None) -> None:
        """Serve until cancelled; `started` is told the port once connections are taken."""
        # No router: one dictionary is enough, and faster.
        server = web.Server(self._answer, request_factory=_request, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port, ssl_context=self._tls)
            await site.start()
            started(runner.addresses[0][1])
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        reviewer = self._paths.get(request.path)
        if reviewer is None:
            return web.Response(status=404, text=f"no webhook at {request.path}\n")
        if request.method != "POST":
            return web.Response(status=405, text="a webhook takes POST\n")
        try:
            body = await reviewer(await request.read())
        except (msgspec.DecodeError, KeyError, TypeError):
            return web.Response(status=400, text="not an AdmissionReview with a request\n")
        return web.Response(body=body, content_type="application/json")


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_MOST_BYTES)


class Registration:
    """Keeps certificates fresh in a Secret, the server on them, and the components' registrations trusting them.

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
        self._clock = clock
        self._components = components
        self._server = server
        self._namespace = namespace
        self._url = url
        self._secret = secret or f"{account_name(components[0])}-webhook"
        self._names = [*names, *(f"{account_name(component)}.{namespace}.svc" for component in components)]
        self._served: Bundle | None = None

    async def run(self) -> None:
        """Look once a minute until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            try:
                await self.refresh()
            except Exception:
                _log.exception("webhook.refresh_failed", secret=self._secret)

    async def refresh(self) -> None:
        """Bring certificate, server and registrations up to date; writes only what is not."""
        bundle = await self.certify()
        await self.register(bundle.trusted)

    async def certify(self) -> Bundle:
        """Give the server a certificate; it must serve before it is registered, or requests fail in between."""
        bundle = await self._bundle()
        if bundle != self._served:
            self._server.use(bundle.certificate, bundle.key)
            self._served = bundle
        return bundle

    async def register(self, trusted: str) -> None:
        """Write the webhook configurations, unless they are as they should be."""
        ca_bundle = base64.b64encode(trusted.encode()).decode()
        for component in self._components:
            for wanted in webhook_configurations(component, self._namespace, self._url, ca_bundle):
                await self._apply(wanted)

    async def _apply(self, wanted: Json) -> None:
        name = wanted["metadata"]["name"]
        resource = Resource(wanted["apiVersion"], wanted["kind"], wanted["kind"].lower() + "s", namespaced=False)
        try:
            found: Json | None = await self._client.get(resource, name)
        except NotFound:
            found = None
        if found is None or not holds(found, wanted):
            await self._client.patch(resource, name, wanted, kind=Patch.APPLY, force=True)
            _log.info("webhook.registered", kind=wanted["kind"], name=name)

    async def _bundle(self) -> Bundle:
        name = self._secret
        while True:
            try:
                found: Json | None = await self._client.get(SECRET, (self._namespace, name))
            except NotFound:
                found = None
            known = _bundle_in(found)
            wanted = self._renewed(known)
            if wanted == known:
                return wanted
            try:
                await self._store(name, found, wanted)
            except (AlreadyExists, Conflict):
                # Another replica was quicker: take what it made.
                continue
            return wanted

    def _renewed(self, known: Bundle | None) -> Bundle:
        try:
            return renewed(known, self._names, self._clock.now())
        except ValueError:
            _log.warning("webhook.certificate_unreadable", secret=self._secret)
            return renewed(None, self._names, self._clock.now())

    async def _store(self, name: str, found: Json | None, wanted: Bundle) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in msgspec.to_builtins(wanted).items()}
        if found is None:
            body = {"metadata": {"name": name}, "type": "Opaque", "data": data}
            await self._client.create(SECRET, body, self._namespace)
            return
        precondition = {"resourceVersion": found["metadata"]["resourceVersion"]}
        await self._client.patch(SECRET, (self._namespace, name), {"metadata": precondition, "data": data})


def _bundle_in(secret: Json | None) -> Bundle | None:
    data: dict[str, Any] = (secret or {}).get("data") or {}
    try:
        return msgspec.convert({key: base64.b64decode(value).decode() for key, value in data.items()}, Bundle)
    except (msgspec.ValidationError, ValueError):
        return None
