"""An HTTPS server on loopback that answers as a test wants."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import trustme
from aiohttp import web

from spinney.kube.client.credentials import Auth, StaticToken
from spinney.kube.client.kubeconfig import Server

AUTHORITY = trustme.CA()


@asynccontextmanager
async def serving(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    auth: Auth | None = None,
    not_after: datetime | None = None,
) -> AsyncIterator[Server]:
    """A server with a certificate of AUTHORITY, and how to reach it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("127.0.0.1", not_after=not_after).configure_cert(context)
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    trusting = ssl.create_default_context()
    AUTHORITY.configure_trust(trusting)
    try:
        yield Server(f"https://127.0.0.1:{runner.addresses[0][1]}", auth or StaticToken(), trusting)
    finally:
        await runner.cleanup()
