"""Carry a defragmentation out: one node after the other is cordoned, emptied and opened again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby

from spinney.answers.model import Displacement
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.meta import Key
from spinney.kube.client.client import Client
from spinney.kube.errors import NotFound, TooManyRequests

# How long the pods that left a node may take to find another one, before it is open again.
_PLACED_SECONDS = 120.0


async def move_pods(client: Client, moves: Sequence[Displacement], pause: float, tell: Callable[[str], None]) -> None:
    """Evict every pod by the Eviction API, with a pause after each; what a budget keeps stays."""
    for node, leaving in groupby(moves, key=lambda move: move.node or ""):
        cordoned = await _cordon(client, node)
        try:
            groups: set[Key] = set()
            for move in leaving:
                if (group := await _evict(client, move, tell)) is not None:
                    groups.add(group)
                    await asyncio.sleep(pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(_placed(client, groups), _PLACED_SECONDS)
        finally:
            if cordoned:
                await client.patch(Node, node, {"spec": {"unschedulable": None}})


async def _cordon(client: Client, node: str) -> bool:
    """Cordon a node, so that its pods do not come back to it; False if somebody did already."""
    if (await client.get(Node, node)).spec.unschedulable:
        return False
    await client.patch(Node, node, {"spec": {"unschedulable": True}})
    return True


async def _evict(client: Client, move: Displacement, tell: Callable[[str], None]) -> Key | None:
    """Evict a pod; returns its PodGroup, None if it stays or is gone."""
    namespace, _, name = move.pod.partition("/")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": name}}
    try:
        pod = await client.get(Pod, (namespace, name))
        await client.post(Pod, (namespace, name), "eviction", body)
    except TooManyRequests as error:
        tell(f"kept {move.pod}: {error}")
    except NotFound:
        tell(f"{move.pod} is gone already")
    else:
        tell(f"evicted {move.pod} from {move.node}")
        return namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")
    return None


async def _placed(client: Client, groups: set[Key]) -> None:
    """Wait until all pods of some PodGroups have a node, and none is leaving one."""
    for namespace, group in groups:
        while True:
            pods = [
                pod
                for pod in (await client.list(Pod, namespace)).items
                if pod.metadata.annotations.get(labels.POD_GROUP, "") == group
            ]
            if all(pod.spec.node_name and pod.metadata.deletion_timestamp is None for pod in pods):
                break
            await asyncio.sleep(1.0)
