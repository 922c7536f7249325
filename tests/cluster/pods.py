"""Pods of this checkout's image that do one thing, and what they say."""

from __future__ import annotations

import json
from typing import Any

from spinney.api.image import default_image
from spinney.api.meta import Json
from spinney.testing.cluster.cluster import RealCluster
from tests.cluster.waiting import until
from tests.make import pod


def python_pod(name: str, namespace: str, program: str, **container: Any) -> Json:
    """A pod that runs a Python program once."""
    made = {"name": "main", "image": default_image(), "command": ["python3", "-c", program], **container}
    return pod(name, namespace).spec(containers=[made], restartPolicy="Never").build()


async def pod_until(cluster: RealCluster, namespace: str, name: str, phase: str) -> Json:
    """The pod once it is in a phase."""

    def look() -> Json:
        return dict(json.loads(cluster.kubectl("get", "pod", name, "-n", namespace, "-o", "json")))

    async def story() -> str:
        return cluster.kubectl("describe", "pod", name, "-n", namespace)

    await until(lambda: look()["status"].get("phase") == phase, every=0.3, describe=story)
    return look()
