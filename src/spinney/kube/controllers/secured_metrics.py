"""/metrics over TLS, for those who may read it: names of queues, gangs and nodes are not for everybody on the network.

The API server says who asks (TokenReview) and whether they may `get` the path /metrics (SubjectAccessReview), as
kube-rbac-proxy does it.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable

from aiohttp import web

from spinney.api.meta import Json, Resource
from spinney.kube.admission.certificates import renewed
from spinney.kube.bounded_server import BoundedServer
from spinney.kube.client.client import Client
from spinney.kube.client.credentials import load_certificate
from spinney.kube.clock import Clock
from spinney.kube.controllers.health import metrics_page
from spinney.kube.errors import ApiError

PATH = "/metrics"
_TOKEN_REVIEW = Resource("authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False)
_ACCESS_REVIEW = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
# Prometheus asks twice a minute; a right that was taken away ends within this time.
_KEPT_SECONDS = 60.0
_MOST_KEPT = 1024
_AT_ONCE = 4
_RENEWAL_SECONDS = 86_400.0


class SecuredMetrics:
    """Serves /metrics over TLS to whoever may read it."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        # Hash of a token → until when the answer counts, and the status.
        self._answers: dict[bytes, tuple[float, int]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def serve(self, host: str, port: int, started: Callable[[int], None] = lambda _: None) -> None:
        """Serve until cancelled; `started` is called with the port once it accepts connections."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._certify(tls)
        runner = web.ServerRunner(BoundedServer(self.answer, most_per_client=64), shutdown_timeout=5)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
            started(runner.addresses[0][1])
            while True:
                await asyncio.sleep(_RENEWAL_SECONDS)
                self._certify(tls)
        finally:
            await runner.cleanup()

    def _certify(self, tls: ssl.SSLContext) -> None:
        """Use a new certificate of our own: it keeps the token secret, and who asks need not know us."""
        bundle = renewed(None, ["localhost"], self._clock.now())
        load_certificate(tls, bundle.certificate, bundle.key)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The page, or why it is refused."""
        if request.path != PATH or request.method != "GET":
            return web.Response(status=404, text=f"only {PATH} is served here\n")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token or not token.isascii():
            return web.Response(status=401, text="a bearer token is needed\n", headers={"www-authenticate": "Bearer"})
        status = await self._status(token.strip())
        if status == 200:
            return await metrics_page()
        return web.Response(status=status, text=_WHY[status])

    async def _status(self, token: str) -> int:
        key, now = hashlib.sha256(token.encode()).digest(), asyncio.get_running_loop().time()
        until, status = self._answers.get(key, (0.0, 0))
        if now < until:
            return status
        async with self._turns:
            try:
                status = await self._review(token)
            except ApiError:
                return 503
        if len(self._answers) >= _MOST_KEPT:
            self._answers.clear()
        self._answers[key] = (now + _KEPT_SECONDS, status)
        return status

    async def _review(self, token: str) -> int:
        review = await self._client.create(_TOKEN_REVIEW, {"spec": {"token": token}})
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return 401
        user: Json = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            **{key: user[key] for key in ("uid", "groups", "extra") if user.get(key)},
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        access = await self._client.create(_ACCESS_REVIEW, {"spec": spec})
        return 200 if (access.get("status") or {}).get("allowed") else 403


_WHY = {
    401: "the token is not valid\n",
    403: "you may not get /metrics: bind the ClusterRole spinney-metrics-reader\n",
    503: "the API server did not say who you are\n",
}
