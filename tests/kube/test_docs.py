"""What the documentation shows works as it stands there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from spinney.api.core import ConfigMap
from spinney.kube.caches.cache import Change
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from tests.worlds import Cluster

PAGE = Path(__file__).parents[2] / "docs/contributors/controller-runtime.md"


async def test_the_controller_of_the_docs(cluster: Cluster) -> None:
    """The controller in thirty lines says hello, once."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code: dict[str, Any] = {}
    exec(source, code)
    client, namespace = cluster.client(), await cluster.namespace()
    await client.create(ConfigMap, {"metadata": {"name": "a"}, "data": {"x": "1"}}, namespace)
    host = Host(client, SystemClock(), [(code["COMPONENT"], None)])
    greeted = asyncio.Event()

    def look(change: Change[ConfigMap]) -> None:
        if change.object.namespace == namespace and change.object.data.get("greeting") == "hello":
            greeted.set()

    host.caches.of(ConfigMap).on_change(look)
    running = asyncio.ensure_future(host.run())
    try:
        async with asyncio.timeout(120):
            await greeted.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert host.runtimes["greeter"].client.writes.of("ConfigMap", "a", namespace) == 1
