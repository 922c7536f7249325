"""`spinney run numa-placement-exporter`: on each node, tells on pods where the kubelet really put them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Struct
from spinney.api.quantity import binary
from spinney.kube.client.credentials import ConfigError
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.numa.kubelet_state import Zones, placements

_log = structlog.get_logger("spinney.numa")


class NumaSettings(Struct, frozen=True):
    """Which node this is, and where its kubelet and its kernel tell about it."""

    # Empty: as the environment says (NODE_NAME).
    node: str = ""
    kubelet: str = "/var/lib/kubelet"
    sysfs: str = "/sys"
    poll_seconds: float = 1.0


def observed(zones: Zones) -> str:
    """A placement as the annotation spells it."""
    entries = [{"zone": zone, "amount": _amounts(amounts)} for zone, amounts in sorted(zones.items())]
    return msgspec.json.encode(entries).decode()


def _amounts(amounts: dict[str, int]) -> dict[str, str]:
    sizes = {"memory"}
    return {name: binary(value) if name in sizes else str(value) for name, value in sorted(amounts.items())}


class Exporter:
    """Compares what the kubelet says with what the pods say; the watch shows drift as well, so there is no resync."""

    def __init__(self, runtime: Runtime, node: str, read: Callable[[], dict[str, Zones]]) -> None:
        self._client = runtime.client
        self._read = read
        self.pods = runtime.caches.of(Pod, fields=f"spec.nodeName={node}")

    async def export(self) -> None:
        """Write what differs."""
        zones_of = self._read()
        for pod in list(self.pods):
            zones = zones_of.get(pod.uid)
            if not zones or pod.metadata.annotations.get(labels.NUMA_OBSERVED) == observed(zones):
                continue
            patch = {"metadata": {"uid": pod.uid, "annotations": {labels.NUMA_OBSERVED: observed(zones)}}}
            with suppress(NotFound):
                await self._client.patch(Pod, pod.key, patch)


async def run(runtime: Runtime, settings: NumaSettings | None = None) -> None:
    """Look again and again until cancelled."""
    settings = settings or NumaSettings()
    node = settings.node or os.environ.get("NODE_NAME", "")
    if not node:
        raise ConfigError("which node is this? Set NODE_NAME, as the platform does")
    exporter = Exporter(runtime, node, lambda: placements(Path(settings.kubelet), Path(settings.sysfs)))
    await exporter.pods.synced()
    runtime.ready()
    while True:
        try:
            await exporter.export()
        except (ValueError, KeyError, OSError) as error:
            # The kubelet was writing just now, or keeps its state in a way that we do not know.
            _log.warning("numa.unreadable", error=str(error))
        await asyncio.sleep(settings.poll_seconds)


COMPONENT = Component(
    name="numa-placement-exporter",
    summary="Tells on pods in which NUMA zones their node's kubelet put them.",
    run=run,
    settings=NumaSettings,
    rules=(Rule(("",), ("pods",), ("get", "list", "watch", "patch")),),
)
