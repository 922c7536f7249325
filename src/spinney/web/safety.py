"""What every response carries and every request must satisfy, so that no other site can use the dashboard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from spinney.kube.process_settings import is_loopback
from spinney.web.settings import DashboardSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Set the security headers, also on errors and streams."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    # aiohttp would reveal its version.
    response.headers["Server"] = "spinney"


def same_site(settings: DashboardSettings) -> Middleware:
    """A middleware that refuses foreign host names on loopback, and changes that another site sends."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        # DNS rebinding: another site's name may point to 127.0.0.1, and its pages then count as ours.
        if settings.login == "none" and not is_loopback((request.url.host or "").strip("[]")):
            raise web.HTTPForbidden(text="ask for 127.0.0.1 or localhost\n")
        if request.method not in ("GET", "HEAD"):
            _refuse_foreign(request)
        return await handler(request)

    return check


def _refuse_foreign(request: web.Request) -> None:
    """Refuse other sites: they cannot send JSON or our origin without a preflight, which is never answered."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("Host"):
        raise web.HTTPForbidden(text="requests of other sites are refused\n")
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise web.HTTPForbidden(text="requests of other sites are refused\n")
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json\n")
