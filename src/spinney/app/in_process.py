"""All components in the process of an embedded cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec

from spinney.api.conditions import find
from spinney.api.kaiconfig import Config
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, convert
from spinney.api.schedulerfile import DecisionLogSettings, SchedulerFile
from spinney.app.broken_backends import warn_of_broken_backends
from spinney.app.components import load, load_third_party, registered
from spinney.app.installation import SYSTEM_NAMESPACE, apply
from spinney.embedded.apiserver.access.credentials import account_user
from spinney.embedded.apiserver.admission.remote_webhooks import over_https
from spinney.embedded.apiserver.admission.webhooks import Resolver
from spinney.embedded.cluster import Cluster
from spinney.kube.admission.review import Reviewer
from spinney.kube.caches.cache import Caches
from spinney.kube.controllers.host import Host
from spinney.kube.manifests import account_name, webhook_configurations, webhook_resource
from spinney.kube.runtime import Component
from spinney.services.platform.component import in_process
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.processes import Process

READY_SECONDS = 60.0
# These run only inside reservation pods, and on nodes that have a kubelet; the dashboard is served beside the rest.
_NOT_HERE = ("reservation", "numa-placement-exporter", "dashboard")


class NotReady(RuntimeError):
    """Components that did not start in time."""


@asynccontextmanager
async def components_in(
    cluster: Cluster, settings: Mapping[str, Json], decision_log: str = ""
) -> AsyncIterator[tuple[list[str], asyncio.Task[None]]]:
    """Run the operator, its backends and what Config and SchedulingShards ask for; inside the block all are ready.

    `settings` holds the configurations that differ from the defaults, by component. Yields the components' names and
    the task that ends when one of them fails. `decision_log` is the folder that the scheduler keeps its decisions in.
    """
    # Shared with the cluster's own controllers, which watch the same kinds.
    caches = cluster.caches
    launcher = Launcher(
        load,
        lambda namespace, account: cluster.client(account_user(namespace, account)),
        lambda _: caches,
        cluster.clock,
        adjust=lambda process: with_decision_log(with_stand_in(process), decision_log),
    )
    warn_of_broken_backends(registered())
    loaded = [load("grove"), load("backends"), *load_third_party()]
    configured = [(component, _configuration(component, settings)) for component in loaded]
    configured.append((in_process(load_standing_in, launcher), None))
    host = Host(cluster.client(), cluster.clock, configured, namespace=SYSTEM_NAMESPACE, caches=caches)
    cluster.server.admission.resolve = _resolver(host, loaded, launcher)
    life = asyncio.create_task(host.run(), name="components")
    try:
        await _wait_for_host(host, life)
        await register_webhooks(cluster, loaded)
        await _wait_for_services(caches, life)
        yield [name for name in registered() if name not in _NOT_HERE], life
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


def with_stand_in(process: Process) -> Process:
    """No kube-scheduler runs here, so the scheduler of the nodes outside of any pool serves its pods as well."""
    file = process.settings
    if not isinstance(file, SchedulerFile) or file.partition_label_value:
        return process
    return replace(process, settings=msgspec.structs.replace(file, stand_in=True))


def load_standing_in(name: str) -> Component:
    """A component by name; the scheduler with the rights of one that serves kube-scheduler's pods as well."""
    component = load(name)
    if name != "scheduler" or component.configured is None:
        return component
    return component.configured(SchedulerFile(stand_in=True))


def with_decision_log(process: Process, folder: str) -> Process:
    """Let a scheduler keep its decisions in a folder; without one, none."""
    file = process.settings
    if not folder or not isinstance(file, SchedulerFile):
        return process
    return replace(process, settings=msgspec.structs.replace(file, decision_log=DecisionLogSettings(folder=folder)))


async def _wait_for_services(caches: Caches, life: asyncio.Task[None]) -> None:
    """Wait until the services that Config and SchedulingShards ask for are ready."""
    configs, shards = caches.of(Config), caches.of(SchedulingShard)
    changed = asyncio.Event()
    for cache in (configs, shards):
        cache.on_change(lambda _: changed.set())
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not life.done() and (late := _not_ready([*configs, *shards])):
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise NotReady(f"not ready after {READY_SECONDS:g} s: {'; '.join(late)}") from None
    if life.done():
        life.result()


def _not_ready(installed: list[Config | SchedulingShard]) -> list[str]:
    waiting = []
    for item in installed:
        ready = find(item.status.conditions, "Ready")
        if ready is None or ready.status != "True":
            waiting.append(f"{type(item).__name__} {item.name}: {ready.message if ready else 'not looked at yet'}")
    return waiting


def _resolver(host: Host, components: list[Component], launcher: Launcher) -> Resolver:
    """Let the API server call our webhooks directly, and those of others over HTTPS."""
    ours = {account_name(component) for component in components}
    reviewers = host.reviewers()

    def resolve(client: Json) -> Reviewer:
        service = client.get("service") or {}
        if service.get("namespace") == SYSTEM_NAMESPACE and service.get("name") in ours:
            return reviewers[service["path"]]
        if service.get("namespace") in launcher.namespaces:
            return launcher.resolve(client)
        return over_https(client)

    return resolve


async def register_webhooks(cluster: Cluster, components: list[Component]) -> None:
    """Have the API server ask the webhooks of components."""
    for component in components:
        for wanted in webhook_configurations(component, SYSTEM_NAMESPACE):
            await apply(cluster.client(), webhook_resource(wanted["kind"]), wanted)


async def _wait_for_host(host: Host, life: asyncio.Task[None]) -> None:
    ready = asyncio.create_task(host.ready.wait())
    await asyncio.wait([ready, life], timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        ready.cancel()
        life.result()
    if not ready.done():
        ready.cancel()
        raise NotReady(f"not ready after {READY_SECONDS:g} s: {', '.join(host.not_ready)}")


def _configuration(component: Component, settings: Mapping[str, Json]) -> Any:
    if component.settings is None:
        return None
    return convert(component.settings, settings.get(component.name, {}))
