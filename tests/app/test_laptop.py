"""Everything in one process: what happens to a cluster while it runs."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.apps import Deployment
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json
from spinney.app.laptop import Laptop, Options, laptop
from spinney.backends.registry import Registry
from spinney.cli.backends import runs
from spinney.cli.demo import apply_file
from spinney.embedded.nodes.profile import Profile
from tests import make
from tests.waiting import cache_until, object_until, until


async def until_pods(running: Laptop, holds: Callable[[list[Pod]], bool]) -> None:
    """Wait until all pods together are as they should be."""
    cache = running.cluster.caches.of(Pod)
    await cache_until(lambda: holds(list(cache)), cache)


def all_run(count: int) -> Callable[[list[Pod]], bool]:
    """Whether so many pods run, and no others are there."""
    return lambda pods: len(pods) == count and all(pod.status.phase == "Running" for pod in pods)


def deployment(scheduler: str) -> Json:
    """Two pods for a scheduler."""
    template = {
        "metadata": {"labels": {"app": scheduler, "kai.scheduler/queue": "default-queue"}},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "main", "image": "x"}]},
    }
    selector = {"matchLabels": {"app": scheduler}}
    return {"metadata": {"name": scheduler}, "spec": {"replicas": 2, "selector": selector, "template": template}}


async def test_pods_of_either_scheduler_run() -> None:
    """Ours, and those that would be kube-scheduler's; a pod that names nobody is kube-scheduler's."""
    async with laptop(Options(nodes=Profile(count=2, racks=1))) as running:
        for name in ("kai-scheduler", "default-scheduler"):
            await running.client.create(Deployment, deployment(name), "default")
        await running.client.create(Pod, make.pod("plain").build(), "default")
        await until_pods(running, all_run(5))


async def test_a_scheduler_that_is_reconfigured_goes_on() -> None:
    """A change of the shard restarts it among gangs that run; pods that come afterwards run as well."""
    async with laptop(Options(nodes=Profile(count=2, racks=1))) as running:
        await apply_file(running.client, "2-evaluation")
        await until_pods(running, all_run(4))
        patch = {"spec": {"placementStrategy": {"gpu": "spread", "cpu": "spread"}}}
        await running.client.patch(SchedulingShard, "default", patch)
        await restarted(running)
        await running.client.create(Deployment, deployment("kai-scheduler"), "default")
        await until_pods(running, all_run(6))


async def restarted(running: Laptop) -> None:
    """Wait until the shard is ready again after a change."""

    def is_ready(shard: SchedulingShard | None) -> bool:
        ready = find(shard.status.conditions, "Ready") if shard is not None else None
        return shard is not None and ready is not None and ready.observed_generation == shard.metadata.generation

    await object_until(running.client, SchedulingShard, ("", "default"), is_ready)


async def test_metrics_of_components_can_be_read() -> None:
    """Nothing served the metrics of components on a laptop."""
    async with laptop(Options(nodes=Profile(count=1))) as running:
        page = (await running.client.call("GET", "/metrics")).body.decode()
        assert 'spinney_reconciles_total{controller="grove-set"' in page
        assert "apiserver_resource_objects" in page


async def test_backends_tell_which_schedulers_run_here() -> None:
    """Nobody holds a lease for KAI here: its shards tell whether it runs, and why not."""
    async with laptop(Options(nodes=Profile(count=2, racks=1))) as running:
        running_schedulers = {backend.name: await runs(running.client, backend) for backend in Registry.load()}
        assert running_schedulers["kai"] == "yes: shard default"
        assert running_schedulers["volcano"] == "no lease found"
        await running.client.patch(SchedulingShard, "default", {"spec": {"args": {"nope": "1"}}})
        kai = next(backend for backend in Registry.load() if backend.name == "kai")

        async def is_refused() -> bool:
            said = await runs(running.client, kai)
            return said.startswith("not ready: shard default: spec.args: flag nope is unknown")

        await until(is_refused, every=0.1, describe=lambda: runs(running.client, kai))
        await running.client.delete(SchedulingShard, "default")
        assert await runs(running.client, kai) == "no: there is no SchedulingShard, and no lease"
