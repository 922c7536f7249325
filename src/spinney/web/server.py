"""The web server of the dashboard: middlewares, routes, and where it listens."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Callable

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from spinney.web import files
from spinney.web.endpoints import Endpoints
from spinney.web.limits import ClientLimits, TooMany
from spinney.web.safety import Handler, add_headers, same_site
from spinney.web.settings import DashboardSettings
from spinney.web.users import NotLoggedIn

_log = structlog.get_logger("spinney.web")

# Every view has an address; all of them are the same page, which shows what its address says.
VIEWS = (
    "",
    "map",
    "workloads",
    "workloads/{namespace}/{kind}/{name}",
    "queues",
    "waiting",
    "evictions",
    "history",
    "what-if",
    "login",
)


def application(settings: DashboardSettings, endpoints: Endpoints, limits: ClientLimits) -> web.Application:
    """The dashboard as an application."""
    middlewares = [same_site(settings), _errors, _limited(limits)]
    app = web.Application(middlewares=middlewares, client_max_size=settings.limits.body_bytes)
    app.on_response_prepare.append(add_headers)
    for view in VIEWS:
        app.router.add_get(f"/{view}", _page)
    app.router.add_get("/static/{name:.+}", _file)
    endpoints.add_routes(app.router)
    return app


async def serve(app: web.Application, settings: DashboardSettings, started: Callable[[str], None]) -> None:
    """Serve until cancelled; `started` gets the link once connections are accepted."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
    await runner.setup()
    context = None
    if settings.tls.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    try:
        await _listen(runner, settings, context)
        port = runner.addresses[0][1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        started(f"{'https' if context else 'http'}://{host}:{port}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, settings: DashboardSettings, context: ssl.SSLContext | None) -> None:
    try:
        await web.TCPSite(runner, settings.host, settings.port, ssl_context=context).start()
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not settings.any_port:
            raise
        await web.TCPSite(runner, settings.host, 0, ssl_context=context).start()


async def _page(request: web.Request) -> web.Response:
    return files.respond(request, "index.html")


async def _file(request: web.Request) -> web.Response:
    return files.respond(request, request.match_info["name"])


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer expected failures in one line, and unexpected ones without details."""
    try:
        return await handler(request)
    except NotLoggedIn as error:
        return web.json_response({"text": str(error)}, status=401)
    except TooMany as error:
        return web.json_response({"text": str(error)}, status=429, headers={"Retry-After": str(int(error.after) + 1)})
    except (web.HTTPException, asyncio.CancelledError, ConnectionError):
        raise
    except Exception:
        _log.exception("request.failed", path=request.path)
        return web.json_response({"text": "the server failed; its log says why"}, status=500)


def _limited(limits: ClientLimits) -> Middleware:
    @web.middleware
    async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/api/"):
            limits.request(request.remote or "")
        return await handler(request)

    return limited
