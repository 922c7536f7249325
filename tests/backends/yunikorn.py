"""A stand-in for YuniKorn: an application is placed whole or, when its time is over, failed whole and dead for good."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from contextlib import suppress
from datetime import datetime

from spinney.api import labels
from spinney.api.core import Node
from spinney.api.pod import Pod
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client, Patch
from spinney.kube.clock import Clock
from spinney.kube.errors import ApiError


class YuniKornStandIn:
    """Reads nothing but what YuniKorn reads: labels and annotations of pods that no gate holds."""

    def __init__(self, client: Client, clock: Clock, refusals: int) -> None:
        # How many applications of a namespace time out before there is room for one.
        self._refusals = refusals
        self._seen: dict[str, datetime] = {}
        # By namespace, the applications that timed out.
        self.dead: dict[str, list[str]] = defaultdict(list)
        self._client = client
        self._clock = clock
        self._caches = Caches(client)
        self._pods = self._caches.of(Pod)
        self._nodes = self._caches.of(Node)

    async def run(self) -> None:
        """A cycle every second."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._caches.run())
            await self._caches.synced()
            while True:
                await asyncio.sleep(1.0)
                for application, pods in self._waiting().items():
                    await self._settle(application, pods)

    def _waiting(self) -> dict[str, list[Pod]]:
        applications: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._pods:
            free = not pod.spec.scheduling_gates and not pod.spec.node_name and pod.status.phase == "Pending"
            if free and pod.spec.scheduler_name == "yunikorn" and pod.metadata.deletion_timestamp is None:
                applications[pod.metadata.labels[labels.YUNIKORN_APP_ID]].append(pod)
        return applications

    async def _settle(self, application: str, pods: list[Pod]) -> None:
        since = self._seen.setdefault(application, self._clock.now())
        dead = self.dead[pods[0].namespace]
        if application not in dead and len(dead) >= self._refusals and len(pods) >= _reserved(pods[0]):
            await asyncio.gather(*(self._bind(pod) for pod in pods))
            return
        if application not in dead and (self._clock.now() - since).total_seconds() >= _patience(pods[0]):
            dead.append(application)
        if application in dead:
            await asyncio.gather(*(self._fail(pod) for pod in pods))

    async def _bind(self, pod: Pod) -> None:
        node = next(iter(self._nodes)).name
        body = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": node}}
        with suppress(ApiError):
            await self._client.post(Pod, pod.key, "binding", body)

    async def _fail(self, pod: Pod) -> None:
        status = {"phase": "Failed", "reason": "ResourceReservationTimeout", "message": "no room for placeholders"}
        with suppress(ApiError):
            patch = {"status": status}
            await self._client.patch(Pod, pod.key, patch, kind=Patch.MERGE, subresource="status")


def _reserved(pod: Pod) -> int:
    """How many placeholders its application wants."""
    groups = json.loads(pod.metadata.annotations[labels.YUNIKORN_TASK_GROUPS])
    return sum(int(group["minMember"]) for group in groups)


def _patience(pod: Pod) -> float:
    words = dict(word.split("=") for word in pod.metadata.annotations[labels.YUNIKORN_POLICY].split())
    assert words["gangSchedulingStyle"] == "Hard"
    return float(words["placeholderTimeoutInSeconds"])
