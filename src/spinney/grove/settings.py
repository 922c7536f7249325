"""The operator's settings: upstream's configuration file, and our additions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from spinney.api import duration
from spinney.api.groveconfig import (
    ClientConnection,
    Controllers,
    ControllerSyncs,
    HealthServer,
    LeaderElection,
    MetricsServer,
    OperatorConfiguration,
    SchedulerSettings,
    Server,
    TopologyAwareScheduling,
    WebhookServer,
)
from spinney.api.image import default_image
from spinney.backends.registry import FALLBACK
from spinney.kube.process_settings import Listen, ProcessOptions, Timing

_IMAGE_VARIABLE = "GROVE_INIT_CONTAINER_IMAGE"
_ACCOUNT_VARIABLE = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"
_ANYWHERE = "0.0.0.0"  # what upstream's empty bindAddress means; probes come from outside the pod
_JSON = "application/json"


class Schedulers(SchedulerSettings, frozen=True, forbid_unknown_fields=True):
    """Upstream's block, and the backend of sets whose `schedulerName` no backend claims."""

    fallback_backend: str = FALLBACK


class GroveConfiguration(OperatorConfiguration, frozen=True, forbid_unknown_fields=True):
    """Upstream's file, with the defaults of `spinney run` for missing blocks, and topology enabled."""

    runtime_client_connection: ClientConnection = ClientConnection(qps=2000, burst=4000)
    leader_election: LeaderElection = LeaderElection(enabled=True)
    server: Server = Server(
        webhooks=WebhookServer(port=9443, secret_name=""),
        health_probes=HealthServer(enable=False),
        metrics=MetricsServer(port=0),
    )
    controllers: Controllers = Controllers(
        pod_clique_set=ControllerSyncs(concurrent_syncs=8),
        pod_clique=ControllerSyncs(concurrent_syncs=80),
        pod_clique_scaling_group=ControllerSyncs(concurrent_syncs=16),
        pod_gang=ControllerSyncs(concurrent_syncs=8),
    )
    log_format: str = "text"
    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling(enabled=True)
    scheduler: Schedulers = Schedulers()


@dataclass(frozen=True)
class Settings:
    """The operator's settings."""

    config: OperatorConfiguration = field(default_factory=GroveConfiguration)
    # The image whose `spinney initc` keeps the start-up order.
    init_image: str = field(default_factory=lambda: os.environ.get(_IMAGE_VARIABLE) or default_image())
    # The operator's user name, whom the authorizer allows to change managed objects.
    user: str = field(default_factory=lambda: os.environ.get(_ACCOUNT_VARIABLE, ""))
    # How many seconds changes of pods are collected before a status is written.
    status_window: float = 0.1

    @property
    def topology_aware(self) -> bool:
        """Whether topology constraints are accepted."""
        older = self.config.cluster_topology
        return self.config.topology_aware_scheduling.enabled if older is None else bool(older.get("enabled"))

    @property
    def mnnvl(self) -> bool:
        """Whether ComputeDomains are created."""
        return self.config.network.auto_mnnvl_enabled

    @property
    def default_profile(self) -> str:
        """The scheduler of sets that name none."""
        return self.config.scheduler.default_profile_name

    @property
    def fallback_backend(self) -> str:
        """The backend of sets whose scheduler no backend claims."""
        schedulers = self.config.scheduler
        return schedulers.fallback_backend if isinstance(schedulers, Schedulers) else FALLBACK

    def is_enabled(self, scheduler: str) -> bool:
        """Whether sets may be placed by a scheduler: where profiles are listed, by those and by kube-scheduler."""
        profiles = self.config.scheduler
        return not profiles.profiles or scheduler in profiles.names

    @property
    def sets_at_once(self) -> int:
        """How many sets are reconciled at once."""
        return self.config.controllers.pod_clique_set.concurrent_syncs

    @property
    def replicas_at_once(self) -> int:
        """How many set replicas are reconciled at once: one controller has their cliques and scaling groups."""
        controllers = self.config.controllers
        return controllers.pod_clique.concurrent_syncs + controllers.pod_clique_scaling_group.concurrent_syncs

    @property
    def statuses_at_once(self) -> int:
        """How many set replicas have their statuses written at once."""
        return self.config.controllers.pod_gang.concurrent_syncs


def lease(config: OperatorConfiguration | None) -> str:
    """Upstream's Lease, so that its operator and ours never act at the same time."""
    election = (config or GroveConfiguration()).leader_election
    return f"{election.resource_namespace}/{election.resource_name}"


def process(config: OperatorConfiguration) -> ProcessOptions:
    """What the file sets for the operator's process."""
    connection, election, server = config.runtime_client_connection, config.leader_election, config.server
    manual = server.webhooks.cert_provision_mode == "manual"
    return ProcessOptions(
        qps=connection.qps,
        burst=max(1, connection.burst),
        elect=election.enabled,
        timing=Timing(
            duration.seconds(election.lease_duration),
            duration.seconds(election.renew_deadline),
            duration.seconds(election.retry_period),
        ),
        webhooks=_listen(server.webhooks.bind_address, server.webhooks.port),
        certificates=Path(server.webhooks.server_cert_dir) if manual else None,
        secret=server.webhooks.secret_name,
        health=_listen(server.health_probes.bind_address, server.health_probes.port)
        if server.health_probes.enable
        else None,
        metrics=_listen(server.metrics.bind_address, server.metrics.port),
        log_level=config.log_level,
        log_format=config.log_format,
        ignored=tuple(_ignored(config)),
    )


def _listen(address: str, port: int) -> Listen | None:
    return Listen(address or _ANYWHERE, port) if port else None


def _ignored(config: OperatorConfiguration) -> list[str]:
    """Warnings about fields that this operator ignores."""
    warnings: list[str] = []
    connection = config.runtime_client_connection
    for name, value in (
        ("contentType", connection.content_type),
        ("acceptContentTypes", connection.accept_content_types),
    ):
        if value not in ("", _JSON):
            warnings.append(f"runtimeClientConnection.{name}: {value!r} is not spoken here, only {_JSON}")
    if config.debugging is not None and config.debugging.enable_profiling:
        warnings.append("debugging.enableProfiling: there is no pprof here; py-spy can look at the running process")
    if config.cluster_topology is not None:
        warnings.append(
            "clusterTopology: an older name; `enabled` is heeded, levels belong in a ClusterTopologyBinding"
        )
    warnings += [
        f"scheduler.profiles[{at}].config: profile {profile.name!r} has no settings here"
        for at, profile in enumerate(config.scheduler.profiles)
        if profile.config
    ]
    return warnings
