"""Carry a defragmentation out: one node after the other is cordoned, emptied and opened again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from itertools import groupby
from typing import cast

from spinney.answers.model import Displacement
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.meta import Key
from spinney.kube.client.client import Client
from spinney.kube.client.wire import WatchEvent
from spinney.kube.errors import ConnectionLost, Gone, NotFound, TooManyRequests

# How long the pods that left a node may take to find another one, before it is open again.
_PLACED_SECONDS = 120.0


async def move_pods(client: Client, moves: Sequence[Displacement], pause: float, report: Callable[[str], None]) -> None:
    """Evict every pod by the Eviction API, with a pause after each; what a budget keeps stays."""
    for node, leaving in groupby(moves, key=lambda move: move.node or ""):
        cordoned = await _cordon(client, node)
        try:
            groups: set[Key] = set()
            for move in leaving:
                if (group := await _evict(client, move, report)) is not None:
                    groups.add(group)
                    await asyncio.sleep(pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(_placed(client, groups), _PLACED_SECONDS)
        finally:
            if cordoned:
                await client.patch(Node, node, {"spec": {"unschedulable": None}})


async def _cordon(client: Client, node: str) -> bool:
    """Cordon a node, so that its pods do not come back to it; False if it was cordoned already."""
    if (await client.get(Node, node)).spec.unschedulable:
        return False
    await client.patch(Node, node, {"spec": {"unschedulable": True}})
    return True


async def _evict(client: Client, move: Displacement, report: Callable[[str], None]) -> Key | None:
    """Evict a pod; returns its PodGroup, None if it stays or is gone."""
    namespace, _, name = move.pod.partition("/")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": name}}
    try:
        pod = await client.get(Pod, (namespace, name))
        await client.post(Pod, (namespace, name), "eviction", body)
    except TooManyRequests as error:
        report(f"kept {move.pod}: {error}")
    except NotFound:
        report(f"{move.pod} is gone already")
    else:
        report(f"evicted {move.pod} from {move.node}")
        return namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")
    return None


async def _placed(client: Client, groups: set[Key]) -> None:
    """Wait until all pods of some PodGroups have a node and none is leaving one, looking whenever one changes."""
    for namespace, group in groups:
        while True:
            listing = await client.list(Pod, namespace)
            if all(map(_is_placed, _members(listing.items, group))):
                break
            watch = client.watch(Pod, namespace, resource_version=listing.resource_version)
            async with aclosing(cast(AsyncGenerator[WatchEvent[Pod], None], watch)) as events:
                # A watch that ended or became too old is no more than a reason to look again.
                with suppress(Gone, ConnectionLost):
                    async for event in events:
                        if event.object is not None and _members([event.object], group):
                            break


def _members(pods: Iterable[Pod], group: str) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.annotations.get(labels.POD_GROUP, "") == group]


def _is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None
