"""An installation for end-to-end tests: every service under its own account, with just the rights it declares."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any

import yaml

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.core import Event, Pod
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import Json, Resource
from spinney.app.components import load
from spinney.app.in_process import load_standing_in, with_stand_in
from spinney.app.operators import start_operators
from spinney.embedded.apiserver.access.credentials import account_user
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.autoscaling.cluster_autoscaler import ClusterAutoscaler
from spinney.embedded.controllers.autoscaling.node_groups import NodeGroup
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.client.transport import User
from spinney.kube.errors import AlreadyExists, ApiError, NotFound
from spinney.services.platform.shard_config import NAMESPACE
from spinney.sim.installation import install_base, platform, wait_ready
from spinney.sim.loop import clock, run_virtual
from tests import make
from tests.waiting import PATIENCE, until


def one_rack(count: int = 1, gpus: int = 8) -> Profile:
    """Some nodes in one rack."""
    return Profile(count=count, gpus=gpus, racks=1, blocks=1)


def documents(path: Path) -> list[Json]:
    """The objects of a file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


class Installed:
    """What a test holds: an administrator's client, and short words for what users do and see."""

    def __init__(self, client: Client, as_user: Callable[[str], Client] | None = None) -> None:
        self.client = client
        self._as_user = as_user
        self._discovery = Discovery(client)

    def as_user(self, name: str) -> Client:
        """A client of an ordinary user."""
        assert self._as_user is not None, "this world has no other users"
        return self._as_user(name)

    async def resource(self, api_version: str, kind: str) -> Resource:
        """Where a kind is served."""
        served = await self._discovery.resource(api_version, kind)
        assert served is not None, f"{kind} of {api_version} is not served"
        return served

    async def reference(self, api_version: str, kind: str) -> Json:
        """The only object of a kind, as its pods name their owner."""
        resource = await self.resource(api_version, kind)
        items = json.loads((await self.client.call("GET", resource.path("default"))).body)["items"]
        assert len(items) == 1
        metadata = items[0]["metadata"]
        named = {"name": metadata["name"], "uid": metadata["uid"]}
        return {"apiVersion": api_version, "kind": kind, **named, "controller": True}

    async def may(self, account: str, group: str, resource: str) -> None:
        """Let a service read a kind that it does not know."""
        rule = {"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]}
        rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": f"{account}-{resource}"}}
        await self.apply({**rbac, "kind": "ClusterRole", "rules": [rule]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{account}-{resource}"}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
        await self.apply({**rbac, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]})

    async def lend(self, queue: str, gpus: float) -> None:
        """Give a queue, and all queues above it, a quota."""
        lender: Queue | None = await self.client.get(Queue, queue)
        while lender is not None:
            share = {"spec": {"resources": {"gpu": {"quota": gpus}, "cpu": {"quota": -1}, "memory": {"quota": -1}}}}
            await self.client.patch(Queue, lender.name, share)
            above = lender.spec.parent_queue
            lender = await self.client.get(Queue, above) if above else None

    async def apply(self, document: Json, namespace: str = "default") -> None:
        """Create an object, in its own namespace or in the one given; where it is there already, change it."""
        resource = await self.resource(document["apiVersion"], document["kind"])
        place = (document["metadata"].get("namespace") or namespace) if resource.namespaced else ""
        try:
            await self.client.create(resource, document, place)
        except AlreadyExists:
            await self.client.patch(resource, (place, document["metadata"]["name"]), document)

    async def apply_file(self, path: Path, namespace: str = "default") -> None:
        """Create the objects of a file, unchanged."""
        for document in documents(path):
            await self.apply(document, namespace)

    async def queue(self, name: str, parent: str = "", **gpu: float) -> None:
        """A queue; without limits unless told."""
        await self.client.create(Queue, make.queue(name, parent).gpu(**gpu).build())

    async def job(self, name: str, pods: int, gpus: int = 1, queue: str = "", **metadata: dict[str, str]) -> None:
        """A Job whose pods run on; `labels` and `annotations` go to the Job, `pod` to the pods' annotations."""
        marks = {labels.QUEUE: queue} if queue else {}
        container = {"name": "main", "image": "busybox", "resources": {"limits": {labels.GPU_RESOURCE: str(gpus)}}}
        template = {
            "metadata": {"labels": marks, "annotations": metadata.get("pod", {})},
            "spec": {"schedulerName": labels.KAI_SCHEDULER, "restartPolicy": "Never", "containers": [container]},
        }
        if not gpus:
            container["resources"] = {"limits": {"cpu": "100m"}}
        document = {
            "metadata": {
                "name": name,
                "labels": {**marks, **metadata.get("labels", {})},
                "annotations": metadata.get("annotations", {}),
            },
            "spec": {"parallelism": pods, "completions": pods, "backoffLimit": 1000, "template": template},
        }
        await self.client.create(Job, document, "default")

    async def drop_job(self, name: str) -> None:
        """Delete a Job with its pods."""
        await self.client.delete(Job, ("default", name), propagation="Background")

    async def pods(self, prefix: str = "", namespace: str = "default") -> list[Pod]:
        """Pods that are not finished and not going."""
        listed = (await self.client.list(Pod, namespace)).items
        return [
            pod
            for pod in listed
            if pod.name.startswith(prefix)
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in ("Succeeded", "Failed")
        ]

    async def running(self, prefix: str = "", namespace: str = "default") -> list[Pod]:
        """Pods that run."""
        return [pod for pod in await self.pods(prefix, namespace) if pod.status.phase == "Running"]

    async def group(self, prefix: str, namespace: str = "default") -> PodGroup:
        """The one group whose name begins so."""
        groups = [each for each in (await self.client.list(PodGroup, namespace)).items if each.name.startswith(prefix)]
        assert len(groups) == 1, [each.name for each in groups]
        return groups[0]

    async def clean(self) -> None:
        """Delete all Jobs and pods, and wait until they are gone."""
        for job in (await self.client.list(Job, "default")).items:
            await self.drop_job(job.name)
        for pod in (await self.client.list(Pod, "default")).items:
            with suppress(NotFound):
                await self.client.delete(Pod, ("default", pod.name), grace_seconds=0)

        async def empty() -> bool:
            return not (await self.client.list(Pod, "default")).items

        await self.eventually(empty)

    async def drop_queue(self, name: str) -> None:
        """Delete a queue, once nothing runs in it by its groups' own word."""

        async def gone() -> bool:
            try:
                await self.client.delete(Queue, name)
            except ApiError:
                return False
            return True

        await self.eventually(gone)

    async def eventually(self, holds: Callable[[], Coroutine[Any, Any, bool]], seconds: float = PATIENCE) -> None:
        """Let time pass until something holds."""
        await until(holds, seconds, every=0.25, describe=self.story)

    async def runs(self, prefix: str, count: int, seconds: float = PATIENCE) -> list[Pod]:
        """Wait until exactly so many pods run."""

        async def enough() -> bool:
            return len(await self.running(prefix)) == count

        await self.eventually(enough, seconds)
        return await self.running(prefix)

    async def story(self) -> str:
        """What a person would look at: pods, groups and warnings."""
        lines = [
            f"{pod.namespace}/{pod.name} {pod.status.phase} on {pod.spec.node_name or '-'}"
            for pod in (await self.client.list(Pod)).items
        ]
        for group in (await self.client.list(PodGroup)).items:
            why = "; ".join(reason.message for each in group.status.scheduling_conditions for reason in each.reasons)
            lines.append(f"group {group.name}: {why}")
        for event in (await self.client.list(Event)).items:
            if event.type == "Warning":
                lines.append(
                    f"{event.involved_object.kind} {event.involved_object.name}: {event.reason} {event.message}"
                )
        return "\n".join(lines)


@asynccontextmanager
async def installed(
    nodes: Profile, *, stand_in: bool = False, operators: bool = False, node_groups: Sequence[NodeGroup] = ()
) -> AsyncIterator[Installed]:
    """A cluster in virtual time with all services, ready.

    Where told, the scheduler stands in for kube-scheduler, and stand-ins run for the operators of other projects and
    for a cluster autoscaler.
    """
    async with Cluster(nodes=nodes, clock=clock(), chance=Chance(5)) as cluster:
        client = cluster.client()
        services = load_standing_in if stand_in else load
        await install_base(client, services)
        if operators:
            await start_operators(cluster)
        if node_groups:
            register = cluster.nodes.register_one
            await cluster.start_controller(partial(ClusterAutoscaler, groups=node_groups, register=register))
        held = Installed(client, lambda name: cluster.client(User(name, ("system:authenticated",))))
        adjust = with_stand_in if stand_in else lambda process: process
        clients = partial(_client_of, cluster)
        async with platform(clients, cluster.clock, adjust=adjust, services=services) as launcher:
            cluster.server.admission.resolve = launcher.resolve
            await wait_ready(client)
            yield held


def _client_of(cluster: Cluster, namespace: str, account: str) -> Client:
    return cluster.client(account_user(namespace, account))


def end_to_end(
    nodes: Profile, **options: Any
) -> Callable[[Callable[[Installed], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Run a test on an installation in virtual time."""

    def decorated(test: Callable[[Installed], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def main() -> None:
            async with installed(nodes, **options) as held:
                await test(held)

        @wraps(test)
        def run() -> None:
            run_virtual(main(), limit=86400)

        # pytest looks through wrappers for parameters, and would take `held` for a fixture.
        del run.__wrapped__  # type: ignore[attr-defined]  # set by `wraps`
        return run

    return decorated
