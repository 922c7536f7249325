"""Gates are removed in the order that schedulers need, however long each write takes."""

from __future__ import annotations

import asyncio

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.pod import Pod
from spinney.embedded.nodes.profile import Profile
from tests import make
from tests.faults.lossy import lossy_installation
from tests.virtual_time import virtual


@virtual
async def test_small_pods_are_not_released_before_large_ones() -> None:
    """Concurrent writes arrive in any order, so each size waits for the answers of the one before."""
    built = make.pcs("serve").label(labels.QUEUE, labels.DEFAULT_QUEUE)
    for name, cpu in (("small", "1"), ("large", "4"), ("middle", "2")):
        container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
        built.clique(name, 4, 4, schedulerName=labels.KAI_SCHEDULER, containers=[container])
    freed: dict[str, str] = {}
    async with lossy_installation(Profile(count=4), seed=3, lag=1.0) as client:
        await client.create(PodCliqueSet, built.build(), "default")
        async with asyncio.timeout(600):
            async for event in client.stream(Pod, "default"):
                pod = event.object
                if pod is not None and not pod.spec.scheduling_gates:
                    freed.setdefault(pod.name, pod.metadata.labels[labels.PODCLIQUE].removeprefix("serve-0-"))
                if len(freed) == 12:
                    break
    assert list(freed.values()) == ["large"] * 4 + ["middle"] * 4 + ["small"] * 4
