"""Webhooks outside the process: what they answer is bounded, and comes from where it was asked for."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable

import pytest
from aiohttp import web

from spinney.embedded.apiserver.admission.remote_webhooks import over_https
from tests.kube.tls import AUTHORITY, serving

Answer = Callable[[web.BaseRequest], web.StreamResponse]


async def asked(answer: Answer) -> bytes:
    """What a webhook that answers so is understood to say."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return answer(request)

    bundle = base64.b64encode(AUTHORITY.cert_pem.bytes()).decode()
    async with serving(handle) as server:
        return await over_https({"url": f"{server.url}/review", "caBundle": bundle})(b"{}")


async def test_an_answer_without_end_filled_the_memory() -> None:
    """What has more bytes than any review is refused as soon as that is known."""
    with pytest.raises(OSError, match="the answer has more than 8388608 bytes"):
        await asked(lambda request: web.Response(body=b" " * 9_000_000))


async def test_a_packed_answer_was_unpacked() -> None:
    """Nobody asked for it: a few kilobytes that stand for a gigabyte stay a few kilobytes."""
    packed = gzip.compress(b" " * 50_000_000)
    headers = {"content-encoding": "gzip"}
    assert await asked(lambda request: web.Response(body=packed, headers=headers)) == packed


async def test_a_redirect_was_followed() -> None:
    """A webhook must not send the server, with what it knows, to another address."""
    with pytest.raises(OSError, match="status 307"):
        await asked(
            lambda request: (
                web.Response(status=307, headers={"location": "/other"})
                if request.path == "/review"
                else web.Response(body=b"followed")
            )
        )
