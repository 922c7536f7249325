"""The dashboard beside a cluster in this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from spinney.answers.applying import Expand, refuse_workloads
from spinney.embedded.cluster import Cluster
from spinney.kube.runtime import Runtime
from spinney.web.component import serve_dashboard
from spinney.web.settings import PORT, DashboardSettings


@asynccontextmanager
async def dashboard_of(
    cluster: Cluster, settings: DashboardSettings | None, expand: Expand = refuse_workloads
) -> AsyncIterator[str]:
    """Serve the dashboard for the block, which gets its link; without settings there is none."""
    if settings is None:
        yield ""
        return
    runtime = Runtime(client=cluster.client().named("dashboard"), caches=cluster.caches, clock=cluster.clock)
    link: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    life = asyncio.create_task(serve_dashboard(runtime, settings, link.set_result, expand), name="dashboard")
    try:
        waited: set[asyncio.Future[Any]] = {link, life}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        yield await link
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


def on_a_free_port(port: int | None) -> DashboardSettings:
    """Settings for a port; without one for the usual port, or any free one where that is taken."""
    if port is not None:
        return DashboardSettings(port=port)
    settings = DashboardSettings()
    with socket.socket() as probe:
        # As a server binds: connections of an earlier one that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, PORT))
        except OSError:
            return msgspec.structs.replace(settings, port=0)
    return settings
