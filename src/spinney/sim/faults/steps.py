"""The steps that scenarios consist of: what users and administrators do to a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.core import Node
from spinney.api.kai import Queue
from spinney.api.meta import Json, Object
from spinney.api.pod import Pod
from spinney.api.pod_state import is_active
from spinney.kube.errors import ApiError, NotFound
from spinney.sim.faults.world import World

Step = Callable[[World], Awaitable[None]]

_KAI = labels.KAI_SCHEDULER
_QUEUED = {labels.QUEUE: labels.DEFAULT_QUEUE}
_UNLIMITED = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
_RETRY_SECONDS = 0.5


def described(step: Step, text: str) -> Step:
    """The step, with its line of the story."""
    step.__doc__ = text
    return step


async def until_admitted(request: Callable[[], Awaitable[object]]) -> None:
    """Send a user's request, again while the process that admits it is down."""
    while True:
        try:
            await request()
        except ApiError as error:
            if "failed calling webhook" not in str(error):
                raise
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


def create(kind: type[Object], document: Json, namespace: str = "default") -> Step:
    """Create an object."""

    async def step(world: World) -> None:
        await until_admitted(lambda: world.client.create(kind, document, namespace))

    return described(step, f"create {kind.__name__} {document['metadata']['name']}")


def change(kind: type[Object], name: str, patch: Json, namespace: str = "default") -> Step:
    """Patch an object."""

    async def step(world: World) -> None:
        await until_admitted(lambda: world.client.patch(kind, (namespace, name), patch))

    return described(step, f"change {kind.__name__} {name}")


def remove(kind: type[Object], name: str, namespace: str = "default") -> Step:
    """Delete an object, unless another user has done so."""

    async def step(world: World) -> None:
        with suppress(NotFound):
            await until_admitted(lambda: world.client.delete(kind, (namespace, name), propagation="Background"))

    return described(step, f"delete {kind.__name__} {name}")


def in_a_row(seconds: float, *steps: Step) -> Step:
    """Take several steps, so many seconds apart, without waiting for rest."""

    async def step(world: World) -> None:
        for each in steps:
            await each(world)
            await asyncio.sleep(seconds)

    return described(step, f"{seconds:g} s apart: {', '.join(each.__doc__ or '' for each in steps)}")


def lose(prefix: str, count: int = 1) -> Step:
    """Delete the first running pods with a name prefix."""

    async def step(world: World) -> None:
        pods = sorted((await world.client.list(Pod, "default")).items, key=lambda pod: pod.name)
        running = [pod for pod in pods if pod.name.startswith(prefix) and is_active(pod)]
        for pod in running[:count]:
            await world.client.delete(Pod, ("default", pod.name))

    return described(step, f"delete {count} pods {prefix}*")


def cordon(*, closed: bool) -> Step:
    """Cordon or uncordon every node."""

    async def step(world: World) -> None:
        for node in (await world.client.list(Node)).items:
            await world.client.patch(Node, node.name, {"spec": {"unschedulable": closed}})

    return described(step, "cordon every node" if closed else "uncordon every node")


def drain(name: str) -> Step:
    """Cordon a node and evict its pods."""

    async def step(world: World) -> None:
        await world.client.patch(Node, name, {"spec": {"unschedulable": True}})
        for pod in (await world.client.list(Pod, "default")).items:
            if pod.spec.node_name == name:
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
                await world.client.post(Pod, pod.key, "eviction", body)

    return described(step, f"drain node {name}")


def job(name: str, pods: int, gpus: int, queue: str, **metadata: dict[str, str]) -> Step:
    """Create a Job whose pods run on; `labels` and `annotations` are the Job's."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {labels.GPU_RESOURCE: str(gpus)}}}
    template = {
        "metadata": {"labels": {labels.QUEUE: queue}},
        "spec": {"schedulerName": _KAI, "restartPolicy": "Never", "containers": [container]},
    }
    own_labels = {labels.QUEUE: queue, **metadata.get("labels", {})}
    document = {
        "metadata": {"name": name, "labels": own_labels, "annotations": metadata.get("annotations", {})},
        "spec": {"parallelism": pods, "completions": pods, "backoffLimit": 1000, "template": template},
    }
    return create(Job, document)


def pod(
    name: str, annotations: dict[str, str] | None = None, own_labels: dict[str, str] | None = None, **spec: object
) -> Step:
    """Create a pod of one container for our scheduler."""
    metadata = {"name": name, "labels": own_labels or _QUEUED, "annotations": annotations or {}}
    containers = [{"name": "main", "image": "busybox"}]
    return create(Pod, {"metadata": metadata, "spec": {"schedulerName": _KAI, "containers": containers, **spec}})


def share(name: str, fraction: str) -> Step:
    """Create a pod with a fraction of a GPU."""
    return pod(name, {labels.GPU_FRACTION: fraction})


def queue(
    name: str,
    quota: int,
    parent: str = labels.DEFAULT_PARENT_QUEUE,
    limit: int = -1,
    own_labels: dict[str, str] | None = None,
) -> Step:
    """Create a queue below a parent."""
    resources = {"cpu": _UNLIMITED, "memory": _UNLIMITED, "gpu": {**_UNLIMITED, "quota": quota, "limit": limit}}
    spec = {"parentQueue": parent, "resources": resources}
    return create(Queue, {"metadata": {"name": name, "labels": own_labels or {}}, "spec": spec}, "")


def remove_queue(name: str) -> Step:
    """Delete a queue as soon as its webhook allows that."""

    async def step(world: World) -> None:
        while True:
            try:
                await world.client.delete(Queue, name)
            except ApiError:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    return described(step, f"delete Queue {name}")


def serving_set(scheduler: str, image: str = "app:1", replicas: int = 1) -> Json:
    """A PodCliqueSet `serve` with one clique by itself and a scaling group of two."""

    def clique(name: str, replicas: int, amounts: dict[str, str], **more: int) -> Json:
        container = {"name": "main", "image": image, "resources": {"limits": amounts, "requests": amounts}}
        pod_spec = {"schedulerName": scheduler, "containers": [container]}
        return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod_spec, **more}}

    gpu = {labels.GPU_RESOURCE: "1"}
    decode = {"name": "decode", "cliqueNames": ["leader", "worker"], "replicas": 1, "minAvailable": 1}
    template = {
        "cliques": [
            clique("router", 2, {"cpu": "100m"}, minAvailable=1),
            clique("leader", 1, gpu),
            clique("worker", 1, gpu),
        ],
        "podCliqueScalingGroups": [decode],
        "terminationDelay": "20s",
    }
    return {"metadata": {"name": "serve", "labels": _QUEUED}, "spec": {"replicas": replicas, "template": template}}
