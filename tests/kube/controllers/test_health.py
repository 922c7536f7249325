"""Health pages: alive, ready, measured."""

from __future__ import annotations

from aiohttp.test_utils import TestClient, TestServer

from spinney.kube.controllers.health import Health
from spinney.kube.metrics import metrics


async def test_pages() -> None:
    """/healthz always answers, /readyz says what is missing, /metrics counts."""
    missing = ["scheduler"]
    async with TestClient(TestServer(Health(lambda: missing).application())) as client:
        assert (await client.get("/healthz")).status == 200
        waiting = await client.get("/readyz")
        assert (waiting.status, await waiting.text()) == (503, "waiting for scheduler\n")
        missing.clear()
        assert (await client.get("/readyz")).status == 200
        metrics().controller("pages").done.inc()
        text = await (await client.get("/metrics")).text()
        assert 'spinney_reconciles_total{controller="pages",result="done"} 1.0' in text
