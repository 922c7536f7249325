"""The HTTP endpoints that a kubelet reads: /healthz and /readyz; and /metrics, where only this machine can ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web
from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from spinney.kube.process_settings import is_loopback

Missing = Callable[[], list[str]]


class Health:
    """Serves health, and metrics on loopback. `missing` lists what is not ready yet; an empty list means ready."""

    def __init__(self, missing: Missing) -> None:
        self._missing = missing

    async def serve(self, host: str, port: int, started: Callable[[], None] = lambda: None) -> None:
        """Serve until cancelled; `started` is called once it accepts connections."""
        runner = web.AppRunner(self.application(host), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            started()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    def application(self, host: str) -> web.Application:
        """The application that is served on an address, with its paths."""
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics if is_loopback(host) else self._elsewhere)
        return application

    async def _healthz(self, _: web.Request) -> web.Response:
        # That this line runs is the proof: the event loop is not stuck.
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        missing = self._missing()
        if not missing:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="".join(f"waiting for {name}\n" for name in missing))

    async def _metrics(self, _: web.Request) -> web.Response:
        return await metrics_page()

    async def _elsewhere(self, _: web.Request) -> web.Response:
        text = "metrics are served over TLS, to those who may read them: see --metrics-listen\n"
        return web.Response(status=404, text=text)


async def metrics_page() -> web.Response:
    """All metrics, as Prometheus reads them."""
    # Ten thousand series take a tenth of a second to print: not on the loop that renews leases.
    text = await asyncio.to_thread(generate_latest, REGISTRY)
    return web.Response(body=text, headers={"content-type": CONTENT_TYPE_LATEST})
