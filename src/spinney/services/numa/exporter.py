"""`spinney run numa-placement-exporter`: on each node, annotates pods with their NUMA placement."""

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
    """The node, and where its kubelet and kernel keep their state."""

    # Default: NODE_NAME of the environment.
    node: str = ""
    kubelet: str = "/var/lib/kubelet"
    sysfs: str = "/sys"
    poll_seconds: float = 1.0


def observed(zones: Zones) -> str:
    """A placement as the value of the annotation."""
    entries = [{"zone": zone, "amount": _amounts(amounts)} for zone, amounts in sorted(zones.items())]
    return msgspec.json.encode(entries).decode()


def _amounts(amounts: dict[str, int]) -> dict[str, str]:
    sizes = {"memory"}
    return {name: binary(value) if name in sizes else str(value) for name, value in sorted(amounts.items())}


class Exporter:
    """Compares the kubelet's state with the pods' annotations; the watch shows drift, so no resync is needed."""

    def __init__(self, runtime: Runtime, node: str, read: Callable[[], dict[str, Zones]]) -> None:
        self._client = runtime.client
        self._read = read
        self.pods = runtime.caches.of(Pod, fields=f"spec.nodeName={node}")

    async def export(self) -> None:
        """Annotate the pods whose placement has changed."""
        zones_of = self._read()
        for pod in list(self.pods):
            zones = zones_of.get(pod.uid)
            if not zones or pod.metadata.annotations.get(labels.NUMA_OBSERVED) == observed(zones):
                continue
            patch = {"metadata": {"uid": pod.uid, "annotations": {labels.NUMA_OBSERVED: observed(zones)}}}
            with suppress(NotFound):
                await self._client.patch(Pod, pod.key, patch)


async def run(runtime: Runtime, settings: NumaSettings | None = None) -> None:
    """Export in a loop until cancelled."""
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
            # The kubelet is writing the file, or uses an unknown format.
            _log.warning("numa.unreadable", error=str(error))
        await asyncio.sleep(settings.poll_seconds)


COMPONENT = Component(
    name="numa-placement-exporter",
    summary="Tells on pods in which NUMA zones their node's kubelet put them.",
    run=run,
    settings=NumaSettings,
    rules=(Rule(("",), ("pods",), ("get", "list", "watch", "patch")),),
)
