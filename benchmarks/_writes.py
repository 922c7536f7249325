"""What each write on a pod's way costs the API server by itself, when nobody watches and nobody reacts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from _machine import children, cpu_seconds

from spinney.api.core import Pod
from spinney.api.kai import BindRequest, PodGroup
from spinney.api.meta import Json
from spinney.kube.client.client import Client, Patch

IN_FLIGHT = 16
_OWNER = {"apiVersion": "v1", "kind": "Pod", "uid": "00000000-0000-0000-0000-000000000000"}
_AMOUNTS = {"cpu": "1", "nvidia.com/gpu": "1"}
_PLACED = {"type": "Scheduled", "status": "True", "reason": "MinMembersPlaced", "message": "1 pods have a node"}


async def costs(
    creator: Client, services: Client, pod: Callable[[int], Json], node: str, count: int
) -> dict[str, float]:
    """Milliseconds of CPU time of API server and etcd for each kind of write, the creator's and the services'."""
    writes: dict[str, Callable[[str, int], Awaitable[Any]]] = {
        "pod created": lambda name, number: creator.create(Pod, pod(number), "default"),
        "its group": lambda name, number: services.create(PodGroup, _group(name), "default"),
        "its place in the group": lambda name, number: services.patch(
            Pod, ("default", name), {"metadata": {"annotations": {"pod-group-name": name}}}, kind=Patch.STRATEGIC
        ),
        "BindRequest": lambda name, number: services.create(BindRequest, _request(name, node), "default"),
        "binding": lambda name, number: services.post(Pod, ("default", name), "binding", _binding(name, node)),
        "request's status": lambda name, number: services.patch(
            BindRequest, ("default", name), {"status": {"phase": "Succeeded"}}, subresource="status"
        ),
        "group's status": lambda name, number: services.patch(
            PodGroup, ("default", name), {"status": _status()}, subresource="status"
        ),
    }
    names = [str(pod(number)["metadata"]["name"]) for number in range(count)]
    # The first requests of a server's life cost more than those that follow.
    await asyncio.gather(*(creator.create(Pod, pod(count + number), "default") for number in range(count // 2)))
    return {kind: await cost(write, names) for kind, write in writes.items()}


async def cost(write: Callable[[str, int], Awaitable[Any]], names: list[str]) -> float:
    """Milliseconds of CPU time of API server and etcd for one write to each of some names."""
    pids = list(children())
    left = iter(enumerate(names))

    async def worker() -> None:
        for number, name in left:
            await write(name, number)

    began = cpu_seconds(pids)
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return round((cpu_seconds(pids) - began) / len(names) * 1000, 2)


def _group(name: str) -> Json:
    metadata = {
        "name": name,
        "labels": {"kai.scheduler/queue": "default-queue"},
        "annotations": {
            "kai.scheduler/top-owner-metadata": f"name: {name}\nuid: {_OWNER['uid']}\nversion: v1\nkind: Pod\n"
        },
        "ownerReferences": [{**_OWNER, "name": name}],
    }
    return {"metadata": metadata, "spec": {"minMember": 1, "queue": "default-queue", "priorityClassName": "train"}}


def _request(name: str, node: str) -> Json:
    metadata = {"name": name, "labels": {"selected-node": node}, "ownerReferences": [{**_OWNER, "name": name}]}
    given = {"count": 1, "portion": "1.00"}
    spec = {"podName": name, "selectedNode": node, "receivedResourceType": "Regular", "receivedGPU": given}
    return {"metadata": metadata, "spec": {**spec, "backoffLimit": 3}}


def _binding(name: str, node: str) -> Json:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def _status() -> Json:
    held = {"requested": _AMOUNTS, "allocated": _AMOUNTS, "allocatedNonPreemptible": {}}
    stamped = {**_PLACED, "transitionID": "1", "lastTransitionTime": "2026-11-15T10:00:00Z"}
    return {"resourcesStatus": held, "conditions": [stamped]}
