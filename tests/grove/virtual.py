"""The operator's stage in virtual time: an embedded cluster, the real backends, and a stand-in scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from spinney import initc
from spinney.api.crd import crds
from spinney.api.meta import Json, Resource
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import component
from spinney.grove.settings import Settings
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import User
from spinney.kube.controllers.host import Host
from spinney.kube.manifests import manifests, webhook_configurations, webhook_resource
from spinney.kube.runtime import Component
from spinney.sim import loop
from spinney.sim.gang_stand_in import GangStandIn
from tests.grove.stage import GROUPS, Stage
from tests.virtual_time import first_argument_from

CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
_RBAC = "rbac.authorization.k8s.io"
_ROLE = Resource(f"{_RBAC}/v1", "ClusterRole", "clusterroles", namespaced=False)
_BINDING = Resource(f"{_RBAC}/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
# How long after a scenario the operator may still answer to its last step.
_LAST_WORDS = 60.0


# What one object may cost from nothing to ready, as docs/contributors/operator.md promises.
BUDGET = {
    "Pod": 2,
    "PodGang": 4,
    "PodClique": 5,
    "PodCliqueScalingGroup": 5,
    # And one for each replica.
    "PodCliqueSet": 7,
    "Service": 1,
    "ServiceAccount": 1,
    "Role": 1,
    "RoleBinding": 1,
    "Secret": 1,
    "HorizontalPodAutoscaler": 1,
    "ResourceClaim": 1,
    "ComputeDomain": 1,
}


class VirtualStage(Stage):
    """A stage on an embedded cluster of its own; sets meet the operator's webhooks."""

    def __init__(self, cluster: Cluster, operator: Client) -> None:
        super().__init__(cluster.client(), operator)
        self.cluster = cluster

    def within_budget(self, replicas: int) -> None:
        """No object of a set with so many replicas has cost the operator more writes than it may."""
        counts = self.operator.writes.by_object
        most = {**BUDGET, "PodCliqueSet": BUDGET["PodCliqueSet"] + replicas}
        over = {key: count for key, count in counts.items() if key[0] != "Event" and count > most.get(key[0], 0)}
        assert not over, over

    async def no_writes_at_rest(self) -> None:
        """Ten minutes pass without a write by the operator, Leases aside."""
        writes = self.operator.writes
        total, seen = writes.total(), dict(writes.by_object)
        await asyncio.sleep(600)
        news = {key: count - seen.get(key, 0) for key, count in writes.by_object.items() if count != seen.get(key, 0)}
        assert writes.total() == total, f"written at rest: {news}"


@asynccontextmanager
async def staged(
    nodes: int,
    settings: Settings | None = None,
    pods_per_node: int = 1,
    before: Callable[[Client, str], Awaitable[None]] | None = None,
    admission: Callable[[Cluster, Host, Component], Awaitable[None]] | None = None,
) -> AsyncIterator[VirtualStage]:
    """A running stage with so many nodes, each with room for some pods.

    `before` acts ahead of the operator, `admission` lets the API server ask the operator's webhooks or does not.
    """
    chance = Chance(7)
    profile = Profile(count=nodes, labels={"node_role.e2e.grove.nvidia.com": "agent", "type": "kwok"})
    async with Cluster(
        nodes=profile, clock=loop.clock(), chance=chance, programs={"spinney initc": initc.program}
    ) as cluster:
        admin = cluster.client()
        for definition in crds(GROUPS):
            await admin.create(CRD, definition)
        if before is not None:
            await before(admin, "default")
        made = component(settings or Settings(user="operator"))
        operator, backends = [await _host(cluster, part) for part in (made, BACKENDS)]
        scheduler = GangStandIn(cluster.client(_user("scheduler")), pods_per_node=pods_per_node)
        tasks = [asyncio.create_task(part.run()) for part in (operator, backends, scheduler)]
        await operator.ready.wait()
        await (admission or _register)(cluster, operator, made)
        try:
            yield VirtualStage(cluster, operator.runtimes["grove"].client)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _user(name: str) -> User:
    return User(name, ("system:masters", "system:authenticated"))


async def _host(cluster: Cluster, made: Component) -> Host:
    """A component with the rights that it declares, and no others."""
    name = "operator" if made.name == "grove" else made.name
    role = next(document for document in manifests(made, "default") if document["kind"] == "ClusterRole")
    reference: Json = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]}
    subject = {"kind": "User", "name": name, "apiGroup": _RBAC}
    await cluster.client().create(_ROLE, role)
    await cluster.client().create(_BINDING, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    return Host(cluster.client(User(name, ("system:authenticated",))), cluster.clock, [(made, None)])


async def unasked(cluster: Cluster, operator: Host, made: Component) -> None:
    """The API server asks no webhook: sets that admission would refuse reach the operator."""


async def _register(cluster: Cluster, operator: Host, made: Component) -> None:
    """Let the API server ask the operator's webhooks by a direct call."""
    reviewers = operator.reviewers()
    cluster.server.admission.resolve = lambda client: reviewers[client["service"]["path"]]
    for wanted in webhook_configurations(made, "default"):
        await cluster.client().create(webhook_resource(wanted["kind"]), wanted)


def play(scenario: Callable[[VirtualStage], Awaitable[None]], nodes: int = 10, **extra: Any) -> None:
    """Run a scenario on a stage in virtual time; in the end the operator is at rest, whatever was done to it."""

    async def main() -> None:
        async with staged(nodes, **extra) as stage:
            await scenario(stage)
            await stage.settle(_LAST_WORDS)
            await stage.no_writes_at_rest()

    loop.run_virtual(main(), limit=100_000)


def played(**options: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A test that is a scenario; the options are those of `play`."""
    return first_argument_from(lambda scenario: play(scenario, **options))
