"""The platform's controllers: Config and SchedulingShards → running services and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from spinney.api import labels
from spinney.api.apps import DaemonSet, Deployment
from spinney.api.kaiconfig import Binder, Config, ConfigSpec
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, Key
from spinney.kube.caches.cache import Change
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import seconds
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Component, Runtime
from spinney.services.platform.apply import Applier, Place, place_of
from spinney.services.platform.binder_plugins import cdi_from_cluster, cdi_from_config
from spinney.services.platform.deployments import MANAGED, secret_name
from spinney.services.platform.namespaces import (
    check_namespaces,
    plan_namespaces,
    plan_reservation,
    reservation_namespace,
)
from spinney.services.platform.node_agents import plan_exporter
from spinney.services.platform.processes import Process, namespace_of, plan_processes, plan_scheduler
from spinney.services.platform.prometheus import plan_prometheus
from spinney.services.platform.prometheus_probe import Ping, PrometheusProbe, over_http
from spinney.services.platform.rights import plan_rights
from spinney.services.platform.runners import Runner
from spinney.services.platform.settings import PlatformSettings
from spinney.services.platform.shard_config import ShardError, check_pool
from spinney.services.platform.status import Findings, plan_conditions
from spinney.services.platform.webhooks import plan_certificate, plan_webhooks

CONFIG: Key = ("", labels.KAI_CONFIG)
# How often certificates are checked and drift is corrected.
_LOOK_AGAIN_SECONDS = 300.0


class Platform:
    """The controllers of the Config and of the shards, and the Prometheus probe."""

    def __init__(
        self,
        runtime: Runtime,
        settings: PlatformSettings,
        load: Callable[[str], Component],
        runner: Runner,
        ping: Ping = over_http,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._load = load
        self._runner = runner
        self._applier = Applier(runtime.client)
        self._discovery = Discovery(runtime.client)
        self._configs = runtime.caches.of(Config)
        self._shards = runtime.caches.of(SchedulingShard)
        self._deployments = deployments = runtime.caches.of(Deployment)
        # Also namespaces of earlier Configs.
        self._namespaces: set[str] = set()
        # The namespaces of reservation pods.
        self._reserved: set[str] = set()
        self.configs = Controller("platform", runtime, self.reconcile_config, concurrency=1)
        self.configs.watch(self._configs, when=_spec_changed).watch(deployments, self._of_config)
        self.configs.watch(runtime.caches.of(DaemonSet), self._of_config)
        # Shards decide whether the NUMA exporter runs.
        self.configs.watch(self._shards, lambda _: [CONFIG], _spec_changed)
        self.shards = Controller("shards", runtime, self.reconcile_shard, concurrency=1)
        # All shards: a deleted one may leave its pool to another.
        self.shards.watch(self._shards, self._every_shard, _spec_changed)
        self.shards.watch(self._configs, self._every_shard, _spec_changed)
        self.shards.watch(deployments, self._of_shard)
        self.probe = PrometheusProbe(runtime, ping, lambda: self.configs.enqueue(*CONFIG))
        self.controllers = (self.configs, self.shards, self.probe.controller)

    def reconcile_all(self) -> None:
        """Reconcile everything: the state of a process changed."""
        self.configs.enqueue(*CONFIG)
        for shard in self._shards:
            self.shards.enqueue("", shard.name)

    def _of_config(self, change: Change[Deployment] | Change[DaemonSet]) -> Sequence[Key]:
        return [CONFIG] if any(o.kind == "Config" for o in change.object.metadata.owner_references) else []

    def _of_shard(self, change: Change[Deployment]) -> Sequence[Key]:
        owners = change.object.metadata.owner_references
        return [("", owner.name) for owner in owners if owner.kind == "SchedulingShard"]

    def _every_shard(self, change: Change[Config] | Change[SchedulingShard]) -> Sequence[Key]:
        changed = [change.object.name] if isinstance(change.object, SchedulingShard) else []
        return [("", name) for name in dict.fromkeys([*changed, *(shard.name for shard in self._shards)])]

    async def reconcile_config(self, key: Key) -> After | None:
        """Run every service except the schedulers."""
        config = self._configs.get(key[1]) if key == CONFIG else None
        if config is None:
            if key == CONFIG:
                await self._runner.keep("config", ())
            return None
        cdi = await self._uses_cdi(config.spec)
        try:
            check_namespaces(config.spec)
            processes = plan_processes(config.spec, self._settings.image, config.metadata.annotations, cdi=cdi)
            processes += plan_exporter(config.spec, self._shards)
        except ValueError as error:
            # Running services stay as they are.
            return await self._report(config, Findings(mistake=f"spec: {error}"))
        present = await self._present(config.spec)
        wanted = plan_prometheus(config.spec, present, seconds(self._runtime.clock.now()))
        for process in processes:
            wanted += self._objects(process, config.spec, present)
        errors = await self._applier.keep(self._namespace_objects(config.spec))
        outcome = await self._applier.apply(config, [*wanted, *self._shared_accounts(config.spec)], present)
        await self._runner.keep("config", processes)
        findings = Findings(
            errors=[*errors, *outcome.errors],
            missing=outcome.missing,
            waiting=self._waiting(processes, config.spec),
            prometheus=self.probe.problem,
        )
        return await self._report(config, findings)

    async def reconcile_shard(self, key: Key) -> After | None:
        """Run the scheduler of one shard."""
        group = f"shard/{key[1]}"
        shard, config = self._shards.get(key[1]), self._configs.get(labels.KAI_CONFIG)
        if shard is None:
            await self._runner.keep(group, ())
            return None
        if config is None:
            return await self._stop_scheduler(shard, group)
        try:
            check_pool(shard, self._shards)
            process = plan_scheduler(shard, config.spec)
            _check_config(config)
        except ShardError as error:
            # The running scheduler stays as it is: a typo must not stop a cluster.
            return await self._report(shard, Findings(mistake=str(error)))
        processes = [process] if process is not None else []
        present = await self._present(config.spec)
        wanted = [document for each in processes for document in self._runner.objects(each, config.spec, self._image)]
        errors = await self._applier.keep(self._namespace_objects(config.spec))
        outcome = await self._applier.apply(shard, wanted, present)
        await self._runner.keep(group, processes)
        findings = Findings(
            errors=[*errors, *outcome.errors],
            missing=outcome.missing,
            waiting=self._waiting(processes, config.spec),
        )
        return await self._report(shard, findings)

    async def _stop_scheduler(self, shard: SchedulingShard, group: str) -> After:
        """Stop a shard's scheduler while there is no Config, and so no account for it."""
        await self._runner.keep(group, ())
        present = await self._applier.present(self._known_namespaces(), self._reserved)
        outcome = await self._applier.apply(shard, (), present)
        missing = f"Config {labels.KAI_CONFIG}"
        findings = Findings(errors=outcome.errors, missing=[missing], waiting=[f"{missing} does not exist"])
        return await self._report(shard, findings)

    async def _uses_cdi(self, config: ConfigSpec) -> bool:
        if cdi_from_config(config.binder or Binder()) is not None:
            return False
        return await cdi_from_cluster(self._runtime.client, self._discovery)

    @property
    def _image(self) -> str:
        return self._settings.image

    def _namespace_objects(self, config: ConfigSpec) -> list[Json]:
        return plan_namespaces(config, restricted=self._settings.network_policies)

    async def _present(self, config: ConfigSpec) -> dict[Place, Json]:
        self._namespaces.add(namespace_of(config))
        self._reserved.add(reservation_namespace(config))
        return await self._applier.present(self._known_namespaces(), self._reserved)

    def _known_namespaces(self) -> set[str]:
        """The namespaces of our objects; Deployments show those of an earlier process."""
        managed = (each for each in self._deployments if MANAGED.items() <= each.metadata.labels.items())
        return self._namespaces | {deployment.namespace for deployment in managed}

    def _objects(self, process: Process, config: ConfigSpec, present: dict[Place, Json]) -> list[Json]:
        component = self._load(process.component)
        wanted = plan_rights(process, component, namespace_of(config))
        wanted += self._runner.objects(process, config, self._image)
        if process.webhooks:
            place = ("Secret", namespace_of(config), secret_name(process))
            now = self._runtime.clock.now()
            url = self._settings.webhook_urls.get(process.name, "")
            secret, trusted = plan_certificate(process, config, present.get(place), now, url)
            wanted.append(secret)
            hooks = plan_webhooks(process, component, config, trusted, self._settings)
            # A webhook without a server would block all requests: it is registered once it is served.
            served = not self._runner.waiting(process, namespace_of(config))
            wanted += [hook for hook in hooks if served or place_of(hook) in present]
        return wanted

    def _shared_accounts(self, config: ConfigSpec) -> list[Json]:
        """The account that all schedulers share, and that of reservation pods."""
        scheduler = Process("scheduler", "scheduler", "scheduler", self._settings)
        return [
            *plan_rights(scheduler, self._load("scheduler"), namespace_of(config)),
            *plan_reservation(config, self._load("reservation")),
        ]

    def _waiting(self, processes: Sequence[Process], config: ConfigSpec) -> list[str]:
        reasons = (self._runner.waiting(process, namespace_of(config)) for process in processes)
        return [why for why in reasons if why]

    async def _report(self, owner: Config | SchedulingShard, findings: Findings) -> After:
        patch = plan_conditions(owner, findings, seconds(self._runtime.clock.now()))
        if patch is not None:
            with suppress(NotFound):
                await self._runtime.client.patch(type(owner), owner.name, patch, subresource="status")
        return After(_LOOK_AGAIN_SECONDS if not findings.errors else 10.0)


def _check_config(config: Config) -> None:
    """Leave a shard as it is while Config names impossible namespaces."""
    try:
        check_namespaces(config.spec)
    except ValueError as error:
        raise ShardError(f"Config {config.name}: spec: {error}") from None


def _spec_changed(change: Change[Config] | Change[SchedulingShard]) -> bool:
    """Whether spec or annotations changed, not only the status."""
    if change.old is None or change.new is None or change.old.spec != change.new.spec:
        return True
    return change.old.metadata.annotations != change.new.metadata.annotations
