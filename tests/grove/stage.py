"""A stage for the operator: an embedded cluster in virtual time, the real backends, and a stand-in scheduler."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from spinney import initc
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.crd import crds
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object, Resource, without_nulls
from spinney.api.podgang import PodGang
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.cli.installation import webhook_resource
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import component
from spinney.grove.settings import Settings
from spinney.kube.chance import Chance
from spinney.kube.client import Client
from spinney.kube.discovery import Discovery
from spinney.kube.host import Host
from spinney.kube.manifests import webhook_configurations
from spinney.kube.runtime import Component
from spinney.kube.transport import User
from spinney.sim import loop
from tests import data
from tests.grove.standin import StandIn

GROUPS = ("grove.io", "scheduler.grove.io", "scheduling.run.ai", "kai.scheduler", "resource.nvidia.com")
CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
# How long after a scenario the operator may still answer to its last step.
_LAST_WORDS = 60.0
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
    """What a scenario does and sees."""

    def __init__(self, cluster: Cluster, operator: Client) -> None:
        self.cluster = cluster
        self.client = cluster.client()
        # The operator's own client: its writes are counted.
        self.operator = operator

    async def apply(self, *documents: Json, namespace: str = "default") -> None:
        """Create objects; sets meet the operator's webhooks."""
        for body in documents:
            resource = await self._resource(body)
            space = body["metadata"].get("namespace", namespace) if resource.namespaced else ""
            await self.client.create(resource, body, space)

    async def _resource(self, body: Json) -> Any:
        found = await Discovery(self.client).resource(body["apiVersion"], body["kind"])
        assert found is not None, f"{body['apiVersion']} {body['kind']} is not served"
        return found

    async def until(self, what: Callable[[], Awaitable[bool]], seconds: float = 600.0) -> None:
        """Let time pass until something holds."""
        for _ in range(int(seconds / 0.5)):
            if await what():
                return
            await asyncio.sleep(0.5)
        raise AssertionError(f"not reached within {seconds:g} virtual seconds: {await self.describe()}")

    async def settle(self, seconds: float = 30.0) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def list(self, kind: type[Any], **wanted: str) -> list[Any]:
        """Objects of a kind in the default namespace, by labels."""
        selector = ",".join(f"{key}={value}" for key, value in wanted.items())
        return (await self.client.list(kind, "default", labels=selector)).items

    async def pods(self, clique: str = "") -> list[Pod]:
        """Pods that stay, of one clique or all."""
        found = await self.list(Pod)
        return [
            pod
            for pod in found
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

    async def pcs(self, name: str) -> PodCliqueSet:
        """A set as it is stored."""
        return await self.client.get(PodCliqueSet, name, "default")

    async def gang(self, name: str) -> PodGang:
        """A gang as it is stored."""
        return await self.client.get(PodGang, name, "default")

    async def clique(self, name: str) -> PodClique:
        """A clique as it is stored."""
        return await self.client.get(PodClique, name, "default")

    async def group(self, name: str) -> PodCliqueScalingGroup:
        """A scaling group as it is stored."""
        return await self.client.get(PodCliqueScalingGroup, name, "default")

    async def scale(self, kind: type[Object], name: str, replicas: int) -> None:
        """Scale through the scale subresource, as `kubectl scale` and autoscalers do."""
        await self.client.patch(kind.resource, name, "default", {"spec": {"replicas": replicas}}, subresource="scale")

    async def change_image(self, name: str, image: str, *cliques: str) -> None:
        """A new image for some cliques of a set, or for all: a new revision."""

        def changed(pod_spec: Json) -> None:
            pod_spec["containers"][0]["image"] = image

        await self._change_templates(name, changed, cliques)

    async def change_pods(self, name: str, pod_spec: Json, *cliques: str) -> None:
        """Other members of the pod spec for some cliques of a set, or for all."""
        await self._change_templates(name, lambda found: found.update(pod_spec), cliques)

    async def _change_templates(self, name: str, change: Callable[[Json], None], cliques: tuple[str, ...]) -> None:
        stored = await self.client.get(PodCliqueSet.resource, name, "default")
        templates = stored["spec"]["template"]["cliques"]
        for template in templates:
            if not cliques or template["name"] in cliques:
                change(template["spec"]["podSpec"])
        await self.client.patch(PodCliqueSet, name, "default", {"spec": {"template": {"cliques": templates}}})

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

    async def cordon(self, count: int) -> None:
        """Leave all but `count` nodes open: the first ones are closed."""
        nodes = sorted((await self.client.list(Node)).items, key=lambda node: node.name)
        for at, node in enumerate(nodes):
            closed = at < count
            if node.spec.unschedulable != closed:
                await self.client.patch(Node, node.name, "", {"spec": {"unschedulable": closed or None}})

    async def uncordon(self, count: int) -> None:
        """Open so many of the closed nodes."""
        nodes = sorted((await self.client.list(Node)).items, key=lambda node: node.name)
        for node in [node for node in nodes if node.spec.unschedulable][:count]:
            await self.client.patch(Node, node.name, "", {"spec": {"unschedulable": None}})

    async def no_writes_at_rest(self) -> None:
        """Ten minutes pass without a write by the operator, Leases aside."""
        writes = self.operator.writes
        total, seen = writes.total(), dict(writes.by_object)
        await asyncio.sleep(600)
        news = {key: count - seen.get(key, 0) for key, count in writes.by_object.items() if count != seen.get(key, 0)}
        assert writes.total() == total, f"written at rest: {news}"

    async def describe(self) -> str:
        """What there is, for messages."""
        pods = [f"{p.name}:{p.status.phase}:{[g.name for g in p.spec.scheduling_gates]}" for p in await self.list(Pod)]
        gangs = [
            f"{g.name}:{g.status.phase}:{[(c.type, c.status, c.message) for c in g.status.conditions]}"
            for g in await self.list(PodGang)
        ]
        return f"pods {pods}; gangs {gangs}"


@asynccontextmanager
async def staged(
    nodes: int,
    settings: Settings | None = None,
    pods_per_node: int = 1,
    before: Callable[[Client], Awaitable[None]] | None = None,
) -> AsyncIterator[Stage]:
    """A running stage with so many nodes, each with room for some pods; `before` acts ahead of the operator."""
    chance = Chance(7)
    profile = Profile(count=nodes, labels={"node_role.e2e.grove.nvidia.com": "agent", "type": "kwok"})
    async with Cluster(
        nodes=profile, clock=loop.clock(), chance=chance, programs={"spinney initc": initc.program}
    ) as cluster:
        admin = cluster.client()
        for definition in crds(GROUPS):
            await admin.create(CRD, definition)
        if before is not None:
            await before(admin)
        made = component(settings or Settings(user="operator"))
        operator = _host(cluster, made, "operator")
        backends = _host(cluster, BACKENDS, "backends")
        scheduler = StandIn(cluster.client(_user("scheduler")), pods_per_node)
        tasks = [asyncio.create_task(part.run()) for part in (operator, backends, scheduler)]
        await operator.ready.wait()
        await _register(cluster, operator, made)
        try:
            yield Stage(cluster, operator.runtimes["grove"].client)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _user(name: str) -> User:
    return User(name, ("system:masters", "system:authenticated"))


def _host(cluster: Cluster, made: Component, user: str) -> Host:
    return Host(cluster.client(_user(user)), cluster.clock, [(made, None)])


async def _register(cluster: Cluster, operator: Host, made: Component) -> None:
    """Let the API server ask the operator's webhooks by a direct call."""
    reviewers = operator.reviewers()
    cluster.server.admission.resolve = lambda client: reviewers[client["service"]["path"]]
    for wanted in webhook_configurations(made, "default"):
        await cluster.client().create(webhook_resource(wanted["kind"]), wanted)


def play(scenario: Callable[[Stage], Awaitable[None]], nodes: int = 10, **extra: Any) -> None:
    """Run a scenario on a stage in virtual time; in the end the operator is at rest, whatever was done to it."""

    async def main() -> None:
        async with staged(nodes, **extra) as stage:
            await scenario(stage)
            await stage.settle(_LAST_WORDS)
            await stage.no_writes_at_rest()

    loop.run_virtual(main(), limit=100_000)
