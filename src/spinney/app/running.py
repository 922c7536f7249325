"""Components against an API server in one process, with their webhooks, health and metrics."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spinney.app.process_settings import ProcessSettings
from spinney.app.serving import WebhookOptions, serve_health, serve_metrics, serve_webhooks
from spinney.kube.chance import Chance
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import Server
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.gc_tuning import keep_what_is_here
from spinney.kube.runtime import Component


async def run_components(
    server: Server,
    configured: Sequence[tuple[Component, Any]],
    settings: ProcessSettings,
    webhooks: WebhookOptions,
    namespace: str,
) -> None:
    """Run until cancelled, or until a component fails. Leases and certificates are kept in the namespace."""
    chance = Chance()
    client = connect(server, chance=chance, per_second=settings.qps, burst=settings.burst)
    identity = f"{socket.gethostname()}_{chance.uid()}" if settings.elect else ""
    hooked = [component for component, _ in configured if component.webhooks]
    try:
        # Ask once before anything starts, so that a wrong address or credential is reported at once.
        await client.call("GET", "/version")
        host = Host(client, SystemClock(), configured, namespace=namespace, identity=identity, timing=settings.timing)
        async with asyncio.TaskGroup() as tasks:
            # Serve health first: its pages must answer once a component reports that it leads.
            if settings.health is not None:
                listening = asyncio.Event()
                tasks.create_task(serve_health(host, settings.health, listening.set))
                await listening.wait()
            if settings.metrics is not None and settings.metrics != settings.health:
                tasks.create_task(serve_metrics(host, settings.metrics))
            tasks.create_task(host.run())
            tasks.create_task(_freeze(host))
            if hooked and (webhooks.url or webhooks.listen or "KUBERNETES_SERVICE_HOST" in os.environ):
                if not webhooks.listen and not webhooks.url:
                    webhooks = replace(webhooks, listen=settings.webhooks)
                tasks.create_task(serve_webhooks(host, hooked, webhooks, namespace))
    finally:
        await client.close()


async def _freeze(host: Host) -> None:
    """Exclude the objects in the filled caches from garbage collection."""
    await host.ready.wait()
    keep_what_is_here()
