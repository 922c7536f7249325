"""Health pages: alive, ready, measured."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.health import Health
from spinney.kube.controllers.secured_metrics import SecuredMetrics
from spinney.kube.metrics import metrics


async def test_pages() -> None:
    """/healthz always answers, /readyz says what is missing, /metrics counts."""
    missing = ["scheduler"]
    async with TestClient(TestServer(Health(lambda: missing).application("127.0.0.1"))) as client:
        assert (await client.get("/healthz")).status == 200
        waiting = await client.get("/readyz")
        assert (waiting.status, await waiting.text()) == (503, "waiting for scheduler\n")
        missing.clear()
        assert (await client.get("/readyz")).status == 200
        metrics().controller("pages").done.inc()
        text = await (await client.get("/metrics")).text()
        assert 'spinney_reconciles_total{controller="pages",result="done"} 1.0' in text


async def test_metrics_were_open_to_the_network() -> None:
    """On an address that others reach, the health pages have no metrics, and say where they are."""
    async with TestClient(TestServer(Health(list).application("0.0.0.0"))) as client:
        answer = await client.get("/metrics")
        assert (answer.status, "--metrics-listen" in await answer.text()) == (404, True)
        assert (await client.get("/healthz")).status == 200


class Reviews:
    """An API server that knows two tokens, of which one may read metrics; it counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def create(self, resource: Resource, body: Json) -> Json:
        """Answer a review."""
        self.asked.append(resource.kind)
        if resource.kind == "TokenReview":
            token = body["spec"]["token"]
            return {"status": {"authenticated": token in ("reader", "other"), "user": {"username": token}}}
        assert body["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"status": {"allowed": body["spec"]["user"] == "reader"}}


@pytest.mark.parametrize(
    ("authorization", "status"),
    [("", 401), ("Basic reader", 401), ("Bearer nobody", 401), ("Bearer other", 403), ("Bearer reader", 200)],
)
async def test_metrics_are_for_those_who_may_read_them(authorization: str, status: int) -> None:
    """By TokenReview and SubjectAccessReview; an answer counts for a while."""
    reviews = Reviews()
    page = SecuredMetrics(cast(Client, reviews), SystemClock())

    async def asked() -> web.StreamResponse:
        return await page.answer(make_mocked_request("GET", "/metrics", {"authorization": authorization}))

    assert (await asked()).status == status
    before = list(reviews.asked)
    assert (await asked()).status == status
    assert reviews.asked == before


async def test_bytes_that_are_no_text_in_a_token_ended_in_an_exception() -> None:
    """aiohttp hands them over as lone surrogates."""
    page = SecuredMetrics(cast(Client, Reviews()), SystemClock())
    request = SimpleNamespace(path="/metrics", method="GET", headers={"authorization": "Bearer \udcff"})
    assert (await page.answer(cast(web.BaseRequest, request))).status == 401


async def test_metrics_are_served_over_tls() -> None:
    """With a certificate of its own, and nothing but metrics."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    page = SecuredMetrics(cast(Client, Reviews()), SystemClock())
    serving = asyncio.ensure_future(page.serve("127.0.0.1", 0, port.set_result))
    try:
        answers = await _statuses(f"https://127.0.0.1:{await port}")
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert answers == {"/metrics": 200, "/healthz": 404}


async def _statuses(url: str) -> dict[str, Any]:
    headers = {"authorization": "Bearer reader"}
    async with aiohttp.ClientSession(headers=headers) as session:
        return {path: (await session.get(url + path, ssl=False)).status for path in ("/metrics", "/healthz")}
