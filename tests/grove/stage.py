"""What a scenario does to the operator and sees of it, the same in virtual time and on a real API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object, Resource, without_nulls
from spinney.api.podgang import PodGang
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from tests import data
from tests.waiting import until

T = TypeVar("T")

GROUPS = ("grove.io", "scheduler.grove.io", "scheduling.run.ai", "kai.scheduler", "resource.nvidia.com")
TOPOLOGY = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "grove-topology"},
    "spec": {
        "levels": [
            {"domain": "zone", "key": "kubernetes.io/zone"},
            {"domain": "block", "key": "kubernetes.io/block"},
            {"domain": "rack", "key": "kubernetes.io/rack"},
            {"domain": "host", "key": "kubernetes.io/hostname"},
        ]
    },
}


def sample(name: str) -> list[Json]:
    """The objects of one of upstream's manifests; keys without a value are dropped, as kubectl does on create."""
    text = Path(data.path(f"samples/grove/{name}.yaml")).read_text()
    return [without_nulls(document) for document in yaml.safe_load_all(text) if document]


class Stage:
    """A running operator with backends, a stand-in for a scheduler, and some nodes, in a namespace."""

    def __init__(self, client: Client, operator: Client, namespace: str = "default", nodes: str = "") -> None:
        self.client = client
        # The operator's own client: its writes are counted.
        self.operator = operator
        self.namespace = namespace
        # What the names of its nodes begin with.
        self._prefix = nodes

    async def apply(self, *documents: Json) -> None:
        """Create objects, in the stage's namespace where they are of one."""
        for body in documents:
            resource = await Discovery(self.client).resource(body["apiVersion"], body["kind"])
            assert resource is not None, f"{body['apiVersion']} {body['kind']} is not served"
            await self.create(resource, body, self.namespace if resource.namespaced else "")

    async def create(self, resource: Resource, body: Json, namespace: str) -> None:
        """Create one object."""
        place = {"namespace": namespace} if namespace else {}
        await self.client.create(resource, {**body, "metadata": {**body["metadata"], **place}}, namespace)

    async def until(self, what: Callable[[], Awaitable[bool]], seconds: float = 600.0) -> None:
        """Let time pass until something holds."""
        await until(what, seconds, every=0.5, describe=self.describe)

    async def sees(self, look: Callable[[], Awaitable[T]], wanted: T) -> None:
        """Wait until something looks as it should."""
        last: list[T] = []

        async def alike() -> bool:
            last[:] = [await look()]
            return last[0] == wanted

        try:
            await self.until(alike)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"found {last}, wanted {wanted}") from error

    async def settle(self, seconds: float = 30.0) -> None:
        """Let time pass, for what must not happen."""
        await asyncio.sleep(seconds)

    async def list(self, kind: type[Any], **wanted: str) -> list[Any]:
        """Objects of a kind in the stage's namespace, by labels."""
        selector = ",".join(f"{key}={value}" for key, value in wanted.items())
        return (await self.client.list(kind, self.namespace, labels=selector)).items

    async def pods(self, clique: str = "") -> list[Pod]:
        """Pods that stay, of one clique or all."""
        listed = await self.list(Pod)
        return [
            pod
            for pod in listed
            if pod.metadata.deletion_timestamp is None
            and (not clique or pod.metadata.labels.get(labels.PODCLIQUE) == clique)
        ]

    async def running(self) -> int:
        """How many pods are ready."""
        return sum(
            any(c.type == "Ready" and c.status == "True" for c in p.status.conditions) for p in await self.pods()
        )

    async def runs(self, count: int, seconds: float = 600.0) -> None:
        """Wait until so many pods are ready, and stay so."""

        async def enough() -> bool:
            return await self.running() == count

        await self.until(enough, seconds)
        await self.settle(10)
        assert await self.running() == count, await self.describe()

    async def holds(self, pods: int, running: int) -> None:
        """Wait until there are so many pods; no more of them than `running` run."""

        async def made() -> bool:
            return len(await self.pods()) == pods

        await self.until(made)
        await self.settle()
        assert (len(await self.pods()), await self.running()) == (pods, running), await self.describe()

    async def phase(self, gang: str) -> str:
        """A gang's phase."""
        return (await self.gang(gang)).status.phase

    async def ready(self, pcs: str) -> str:
        """How many replicas of a set are ready, of how many."""
        return (await self.pcs(pcs)).status.ready

    async def uids(self, clique: str = "") -> set[str]:
        """The identities of pods that stay."""
        return {pod.uid for pod in await self.pods(clique)}

    async def delete(self, kind: type[Object], name: str) -> None:
        """Delete something, as a user does."""
        await self.client.delete(kind, (self.namespace, name))

    async def pcs(self, name: str) -> PodCliqueSet:
        """A set as it is stored."""
        return await self.client.get(PodCliqueSet, (self.namespace, name))

    async def gang(self, name: str) -> PodGang:
        """A gang as it is stored."""
        return await self.client.get(PodGang, (self.namespace, name))

    async def clique(self, name: str) -> PodClique:
        """A clique as it is stored."""
        return await self.client.get(PodClique, (self.namespace, name))

    async def group(self, name: str) -> PodCliqueScalingGroup:
        """A scaling group as it is stored."""
        return await self.client.get(PodCliqueScalingGroup, (self.namespace, name))

    async def scale(self, kind: type[Object], name: str, replicas: int) -> None:
        """Scale through the scale subresource, as `kubectl scale` and autoscalers do."""
        await self.client.patch(
            kind.resource, (self.namespace, name), {"spec": {"replicas": replicas}}, subresource="scale"
        )

    async def change_image(self, name: str, image: str, *cliques: str) -> None:
        """A new image for some cliques of a set, or for all: a new revision."""

        def changed(pod_spec: Json) -> None:
            pod_spec["containers"][0]["image"] = image

        await self._change_templates(name, changed, cliques)

    async def change_pods(self, name: str, pod_spec: Json, *cliques: str) -> None:
        """Other members of the pod spec for some cliques of a set, or for all."""
        await self._change_templates(name, lambda spec: spec.update(pod_spec), cliques)

    async def _change_templates(self, name: str, change: Callable[[Json], None], cliques: tuple[str, ...]) -> None:
        stored = await self.client.get(PodCliqueSet.resource, (self.namespace, name))
        templates = stored["spec"]["template"]["cliques"]
        for template in templates:
            if not cliques or template["name"] in cliques:
                change(template["spec"]["podSpec"])
        await self.client.patch(PodCliqueSet, (self.namespace, name), {"spec": {"template": {"cliques": templates}}})

    async def images(self) -> Counter[str]:
        """How many pods run which image."""
        return Counter(pod.spec.containers[0].image for pod in await self.pods())

    async def updated(self, name: str, seconds: float = 900) -> None:
        """Wait until a set says that its update has ended."""

        async def ended() -> bool:
            progress = (await self.pcs(name)).status.update_progress
            return progress is not None and progress.update_ended_at is not None

        await self.until(ended, seconds)
        await self.settle(5)

    async def nodes(self) -> list[Node]:
        """The stage's nodes, by name."""
        listed = [node for node in (await self.client.list(Node)).items if node.name.startswith(self._prefix)]
        return sorted(listed, key=lambda node: node.name)

    async def cordon(self, count: int) -> None:
        """Close the first `count` nodes, and open the others."""
        for at, node in enumerate(await self.nodes()):
            closed = at < count
            if node.spec.unschedulable != closed:
                await self.client.patch(Node, node.name, {"spec": {"unschedulable": closed or None}})

    async def uncordon(self, count: int) -> None:
        """Open so many of the closed nodes."""
        for node in [node for node in await self.nodes() if node.spec.unschedulable][:count]:
            await self.client.patch(Node, node.name, {"spec": {"unschedulable": None}})

    async def describe(self) -> str:
        """What there is, for messages."""
        pods = [f"{p.name}:{p.status.phase}:{[g.name for g in p.spec.scheduling_gates]}" for p in await self.list(Pod)]
        gangs = [
            f"{g.name}:{g.status.phase}:{[(c.type, c.status, c.message) for c in g.status.conditions]}"
            for g in await self.list(PodGang)
        ]
        return f"pods {pods}; gangs {gangs}"
