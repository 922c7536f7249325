"""A cluster in virtual time whose backend can be killed at any of its writes, and a picture of what it leaves."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from spinney.api import labels
from spinney.api.core import Namespace
from spinney.api.crd import GROUPS, crds
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.backends.kube_scheduler.releases import GANG_APIS
from spinney.backends.registry import Registry
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.caches.cache import Change
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response, Transport
from spinney.kube.controllers.host import Host
from spinney.kube.errors import NotFound
from spinney.sim.gang_stand_in import GangStandIn
from spinney.sim.loop import clock, run_virtual
from tests import make
from tests.backends import live

LEVELS = [
    {"domain": "block", "key": "example.com/block"},
    {"domain": "rack", "key": "example.com/rack"},
]
BINDING: Json = {"metadata": {"name": "grove-topology"}, "spec": {"levels": LEVELS}}
SETTLE_SECONDS = 120.0


class Dying:
    """A wire that is cut at the n-th write after it was armed: whoever writes gets no answer any more."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._at: int | None = None
        self._arrives = False
        self.writes = 0
        self.cut = asyncio.Event()

    def arm(self, at: int | None, *, arrives: bool = False) -> None:
        """Count from here, and cut at that write, before it arrives or after; None only counts."""
        self._at, self._arrives, self.writes = at, arrives, 0

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or "/events" in request.path:
            return await self._transport.send(request)
        self.writes += 1
        if self._at is None or self.writes < self._at:
            return await self._transport.send(request)
        if self.writes == self._at and self._arrives:
            await self._transport.send(request)
        self.cut.set()
        return await asyncio.get_running_loop().create_future()

    async def close(self) -> None: ...


class Stage:
    """The operator and a stand-in scheduler at work; the backend comes and goes."""

    def __init__(self, cluster: Cluster, backend: str) -> None:
        self.client = cluster.client()
        self.backend = backend
        self._cluster = cluster
        self._released: Counter[str] = Counter()
        cluster.caches.of(PodGang).on_change(self._gang_changed)
        plugin = Registry.load().get(backend)
        assert plugin is not None
        self._resources = plugin.resources

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Dying]:
        """The backend, on a wire that can be cut."""
        wire = Dying(self.client.transport)
        config = BackendsConfig(only=(self.backend,))
        host = Host(Client(wire, self.client.chance), self._cluster.clock, [(BACKENDS, config)])
        life = asyncio.create_task(host.run())
        await host.ready.wait()
        try:
            yield wire
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)

    def _gang_changed(self, change: Change[PodGang]) -> None:
        if _is_released(change.new) and not _is_released(change.old):
            self._released[change.object.namespace] += 1

    async def picture(self, namespace: str) -> Json:
        """All that a set led to, without what differs from one run to the next."""
        gangs = (await self.client.list(PodGang, namespace)).items
        pods = [pod for pod in (await self.client.list(Pod, namespace)).items if _stays(pod)]
        state: Json = {"gangs": [_gang(gang) for gang in gangs], "pods": sorted(_pod(pod) for pod in pods)}
        state["times released"] = self._released[namespace]
        for resource in self._resources:
            with suppress(NotFound):
                state[f"{resource.api_version} {resource.kind}"] = await self._objects(resource, namespace)
        text = json.dumps(state, sort_keys=True).replace(namespace, "NAMESPACE")
        for gang in gangs:
            # YuniKorn's application id has the first eight characters only.
            text = text.replace(gang.uid, f"UID-{gang.name}").replace(gang.uid[:8], f"UID8-{gang.name}")
        picture: Json = json.loads(text)
        return picture

    async def _objects(self, resource: Resource, namespace: str) -> list[Json]:
        listing = await self.client.list(untyped(resource), namespace if resource.namespaced else "")
        objects = [live.plain() for live in listing.items]
        kept = ("name", "labels", "annotations")
        return sorted(
            ({**{key: item["metadata"].get(key) for key in kept}, "spec": item["spec"]} for item in objects),
            key=lambda item: str(item["name"]),
        )


def _stays(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


def _is_released(gang: PodGang | None) -> bool:
    return any(c.type == "BackendReady" and c.reason == "Released" for c in (gang.status.conditions if gang else ()))


def _gang(gang: PodGang) -> Json:
    ours = ("BackendReady", "Downgraded", "Scheduled")
    return {
        "name": gang.name,
        "annotations": {**gang.metadata.annotations, **_attempts(gang)},
        "groups": [[group.name, group.min_replicas, len(group.pod_references)] for group in gang.spec.podgroups],
        "conditions": {c.type: [c.status, c.reason] for c in gang.status.conditions if c.type in ours},
    }


def _attempts(gang: PodGang) -> Json:
    """How often it was let go in vain; when that was differs from one run to the next."""
    attempts_noted = gang.metadata.annotations.get(labels.RELEASE_ATTEMPTS)
    return {labels.RELEASE_ATTEMPTS: len(attempts_noted.split())} if attempts_noted else {}


def _pod(pod: Pod) -> list[Any]:
    own = pod.metadata.labels
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    attempt = own.get(labels.YUNIKORN_APP_ID, "")
    return [own[labels.PODCLIQUE], own.get(labels.POD_INDEX), gates, bool(pod.spec.node_name), attempt]


class Scheduler(Protocol):
    """Whoever gives pods their nodes."""

    async def run(self) -> None:
        """Schedule until cancelled."""


def roomy(cluster: Cluster) -> Scheduler:
    """A scheduler that finds room for everything."""
    return GangStandIn(cluster.client(), pods_per_node=50)


def full(cluster: Cluster) -> Scheduler:
    """A scheduler that says of every pod that there is no room."""
    return GangStandIn(cluster.client(), pods_per_node=0)


@asynccontextmanager
async def staged(backend: str, scheduler: Callable[[Cluster], Scheduler]) -> AsyncIterator[Stage]:
    """A stage with one node; a backend may be of a release: `default 1.37`."""
    nodes = Profile(count=1, racks=1, blocks=1)
    async with Cluster(nodes=nodes, clock=clock(), chance=Chance(5)) as cluster:
        client = cluster.client()
        name, _, release = backend.partition(" ")
        apis = GANG_APIS.get(release, ())
        # What this server has built in is of another release, and no definition may have the name of a built-in kind.
        tables = {f"{resource.group}/{resource.plural}" for resource in apis}
        cluster.server.core.built_in = frozenset(cluster.server.core.built_in) - tables
        await live.install(client, [*crds(GROUPS), *map(_loose_definition, apis)])
        await client.create(ClusterTopologyBinding, BINDING)
        config = GROVE.settings() if GROVE.settings else None
        host = Host(cluster.client(), cluster.clock, [(GROVE, config)])
        lives = [asyncio.create_task(part.run()) for part in (host, scheduler(cluster))]
        await host.ready.wait()
        try:
            yield Stage(cluster, name)
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)


def _loose_definition(resource: Resource) -> Json:
    """A kind that the embedded server does not have built in; what its fields may hold is for other tests."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    made = make.crd(resource.group, resource.kind, schema, subresources={"status": {}})
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for tests"}
    made["spec"]["versions"][0]["name"] = resource.version
    return made


@dataclass(frozen=True)
class Step:
    """A change that a user makes, to a set where one is there before; `settle` is how long its effects may take."""

    before: Callable[[str], make.SetBuilder] | None
    act: Callable[[Client, str], Awaitable[None]]
    settle: float = SETTLE_SECONDS


async def play(stage: Stage, step: Step, namespace: str, at: int | None, *, arrives: bool) -> tuple[int, Json]:
    """One life of a set with the change in it: the writes until the end or the cut, and the picture at the end."""
    client = stage.client
    await client.create(Namespace, {"metadata": {"name": namespace}})
    await client.patch(ClusterTopologyBinding, BINDING["metadata"]["name"], {"spec": BINDING["spec"]})
    async with stage.running() as wire:
        if step.before is not None:
            await client.create(PodCliqueSet, step.before(namespace).build(), namespace)
        await asyncio.sleep(SETTLE_SECONDS)
        wire.arm(at, arrives=arrives)
        await step.act(client, namespace)
        with suppress(TimeoutError):
            await asyncio.wait_for(wire.cut.wait(), step.settle)
        assert wire.cut.is_set() == (at is not None), f"{stage.backend}: write {at} never came"
    async with stage.running():
        await asyncio.sleep(step.settle)
    picture = await stage.picture(namespace)
    with suppress(NotFound):
        await client.delete(PodCliqueSet, (namespace, "train"))
    await asyncio.sleep(SETTLE_SECONDS)
    return wire.writes, picture


def killed_everywhere(
    backend: str, step: Step, scheduler: Callable[[Cluster], Scheduler] = roomy, most: int = 100
) -> Json:
    """Play a change undisturbed, then killed at each write of it, before it arrives and after: the end is the same.

    Of a change that goes on in rounds only the first writes are cut, `most` of them. Returns the picture at the end.
    """

    async def main() -> Json:
        async with staged(backend, scheduler) as stage:
            writes, wanted = await play(stage, step, "calm", None, arrives=True)
            for at in range(1, min(writes, most) + 1):
                for arrives in (False, True):
                    namespace = f"cut-{at}-{'after' if arrives else 'before'}"
                    _, end = await play(stage, step, namespace, at, arrives=arrives)
                    assert end == wanted, f"{backend} cut at write {at} of {writes}, arrived: {arrives}"
            return wanted

    return run_virtual(main(), limit=10_000_000)
