"""Fake GPUs on the nodes of a real cluster, by the device plugin that users deploy, too."""

from __future__ import annotations

import json
import time

from spinney.api import labels
from spinney.api.image import default_image
from spinney.services.fakegpus.manifest import daemon_set
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.golang import Unavailable

_SECONDS = 600.0


def offer(cluster: RealCluster, count: int) -> None:
    """Deploy the device plugin, and wait until every node has its GPUs."""
    cluster.apply(daemon_set("kube-system", default_image(), count))
    end = time.monotonic() + _SECONDS
    while any(offered != count for offered in allocatable(cluster).values()):
        if time.monotonic() > end:
            raise Unavailable(f"nodes have these GPUs after {_SECONDS:.0f} s: {allocatable(cluster)}")
        time.sleep(0.2)


def allocatable(cluster: RealCluster) -> dict[str, int]:
    """The GPUs of each node."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    return {node["metadata"]["name"]: int(node["status"]["allocatable"].get(labels.GPU_RESOURCE, 0)) for node in nodes}
