"""The dashboard beside a cluster in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from spinney.answers.whatif.applying import Expand, refuse_workloads
from spinney.embedded.cluster import Cluster
from spinney.kube.runtime import Runtime
from spinney.web.component import serve_dashboard
from spinney.web.settings import DashboardSettings


@asynccontextmanager
async def dashboard_of(
    cluster: Cluster, settings: DashboardSettings | None, expand: Expand | None = None
) -> AsyncIterator[str]:
    """Serve the dashboard for the block, which gets its link; without settings there is none."""
    if settings is None:
        yield ""
        return
    runtime = Runtime(client=cluster.client().named("dashboard"), caches=cluster.caches, clock=cluster.clock)
    link: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    served = serve_dashboard(runtime, settings, link.set_result, expand or refuse_workloads)
    life = asyncio.create_task(served, name="dashboard")
    try:
        waited: set[asyncio.Future[Any]] = {link, life}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        yield await link
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
