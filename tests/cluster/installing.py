"""Spinney installed on the real cluster by its chart, and questions about what runs there."""

from __future__ import annotations

import json

from spinney.api.image import REPOSITORY
from spinney.api.meta import Json
from spinney.testing.cluster.cluster import RealCluster
from tests.cluster.waiting import until

NAMESPACE = "spinney-system"
# The same image under another name: what an upgrade goes to.
NEXT = f"{REPOSITORY}:99.0.0-next"
# Everything that the default values run: what the chart deploys, and what the platform deploys in turn.
DEPLOYMENTS = 10
# Upstream's Config has no replicas for it.
_ALONE = ("node-scale-adjuster",)
# The device plugin gives containers their GPUs by itself: any handler will do.
RUNTIME_CLASS: Json = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "runc",
}


class Installation:
    """The release on a cluster."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster

    async def available(self, replicas: int = 1, image: str = "") -> None:
        """Wait until all Deployments are rolled out: so many pods each, of one image."""

        def rolled_out() -> bool:
            deployments = self.deployments()
            return len(deployments) >= DEPLOYMENTS and all(
                _is_rolled_out(each, replicas, image) for each in deployments
            )

        await until(rolled_out, every=0.5, describe=self.story)

    def deployments(self) -> list[Json]:
        """Every Deployment of ours."""
        return self.items("deployments", NAMESPACE)

    def items(self, kind: str, namespace: str, selector: str = "") -> list[Json]:
        """The objects of a kind in a namespace."""
        listing = self.cluster.kubectl("get", kind, "-n", namespace, "-l", selector, "-o", "json")
        return list(json.loads(listing)["items"])

    def ready_pods(self, namespace: str, part_of: str) -> dict[str, Json]:
        """The ready pods of a set, by name."""
        pods = self.items("pods", namespace, f"app.kubernetes.io/part-of={part_of}")
        return {pod["metadata"]["name"]: pod for pod in pods if is_ready(pod)}

    async def set_ready(self, namespace: str, name: str, count: int) -> dict[str, Json]:
        """The pods of a set once so many are ready, and no others are left."""

        def complete() -> bool:
            pods = self.items("pods", namespace, f"app.kubernetes.io/part-of={name}")
            return len(pods) == count and all(is_ready(pod) for pod in pods)

        await until(complete, every=0.3, describe=lambda: self.story(namespace))
        return self.ready_pods(namespace, name)

    async def story(self, namespace: str = NAMESPACE) -> str:
        """What a reader of a failure wants to see."""
        asked = [
            ("get", "pods,podgangs,podgroups.scheduling.run.ai,bindrequests", "-n", namespace, "-o", "wide"),
            ("get", "deployments,pods", "-n", NAMESPACE, "-o", "wide"),
            ("get", "events", "-n", namespace, "--sort-by=.lastTimestamp"),
        ]
        return "\n".join(self._answer(*each) for each in asked)

    def _answer(self, *arguments: str) -> str:
        try:
            return self.cluster.kubectl(*arguments)[-6000:]
        except Exception as error:
            return str(error)


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready and stays."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def uids(pods: dict[str, Json]) -> set[str]:
    """The identities of pods: a pod that was replaced has another."""
    return {pod["metadata"]["uid"] for pod in pods.values()}


def lives(pods: dict[str, Json]) -> dict[str, tuple[str, int]]:
    """The identity of each pod, and how often its containers have been restarted."""
    return {
        name: (pod["metadata"]["uid"], sum(each["restartCount"] for each in pod["status"]["containerStatuses"]))
        for name, pod in pods.items()
    }


def _is_rolled_out(deployment: Json, replicas: int, image: str) -> bool:
    status, spec = deployment["status"], deployment["spec"]
    images = {container["image"] for container in spec["template"]["spec"]["containers"]}
    counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")}
    seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    wanted = 1 if deployment["metadata"]["name"] in _ALONE else replicas
    return seen and counts == {wanted} and spec["replicas"] == wanted and (not image or images == {image})
