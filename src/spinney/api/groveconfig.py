"""operator.config.grove.io: the operator's configuration file, its defaults and its checks."""

from __future__ import annotations

import msgspec

from spinney.api import duration
from spinney.api.meta import Json, Struct

VERSION = "operator.config.grove.io/v1alpha1"


class ConfigurationError(ValueError):
    """A configuration that cannot be used; every problem found, one per line."""


class ClientConnection(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits on the operator's requests to the API server."""

    qps: float = 100
    burst: int = 120
    content_type: str = ""
    accept_content_types: str = ""


class LeaderElection(Struct, frozen=True, forbid_unknown_fields=True):
    """Leader election among several operators."""

    enabled: bool = False
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "grove-operator-leader-election"
    resource_namespace: str = ""


class WebhookServer(Struct, frozen=True, forbid_unknown_fields=True):
    """The address and certificate of webhooks."""

    bind_address: str = ""
    port: int = 2750
    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"
    cert_provision_mode: str = "auto"


class HealthServer(Struct, frozen=True, forbid_unknown_fields=True):
    """The address of health probes."""

    enable: bool = True
    bind_address: str = ""
    port: int = 2751


class MetricsServer(Struct, frozen=True, forbid_unknown_fields=True):
    """The address of metrics."""

    bind_address: str = ""
    port: int = 2752


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """All addresses to listen on."""

    webhooks: WebhookServer = WebhookServer()
    health_probes: HealthServer = HealthServer()
    metrics: MetricsServer = MetricsServer()


class Debugging(Struct, frozen=True, forbid_unknown_fields=True):
    """Profiling; accepted and ignored."""

    enable_profiling: bool = False
    pprof_bind_host: str = "127.0.0.1"
    pprof_bind_port: int = 2753


class ControllerSyncs(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of concurrent reconciles of a controller."""

    concurrent_syncs: int = 10


class Controllers(Struct, frozen=True, forbid_unknown_fields=True):
    """The operator's controllers."""

    pod_clique_set: ControllerSyncs = ControllerSyncs()
    pod_clique: ControllerSyncs = ControllerSyncs()
    pod_clique_scaling_group: ControllerSyncs = ControllerSyncs(concurrent_syncs=5)
    pod_gang: ControllerSyncs = ControllerSyncs(concurrent_syncs=5)


class Authorizer(Struct, frozen=True, forbid_unknown_fields=True):
    """Users besides the operator who may change the objects it manages."""

    enabled: bool = False
    exempt_service_account_user_names: tuple[str, ...] = ()


class TopologyAwareScheduling(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether topology constraints are accepted."""

    enabled: bool = False


class Network(Struct, frozen=True, forbid_unknown_fields=True):
    """Network features."""

    auto_mnnvl_enabled: bool = msgspec.field(default=False, name="autoMNNVLEnabled")


class SchedulerProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A scheduler that may be used."""

    name: str = ""
    config: Json | None = None


class SchedulerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The schedulers that may be used, and the default one."""

    profiles: tuple[SchedulerProfile, ...] = ()
    default_profile_name: str = "default-scheduler"

    @property
    def names(self) -> tuple[str, ...]:
        """The profiles by name; kube-scheduler is always one of them."""
        profiles = tuple(profile.name for profile in self.profiles)
        return profiles if "default-scheduler" in profiles else (*profiles, "default-scheduler")


class OperatorConfiguration(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of the operator."""

    api_version: str = VERSION
    kind: str = "OperatorConfiguration"
    runtime_client_connection: ClientConnection = ClientConnection()
    leader_election: LeaderElection = LeaderElection()
    server: Server = Server()
    debugging: Debugging | None = None
    controllers: Controllers = Controllers()
    log_level: str = "info"
    log_format: str = "json"
    authorizer: Authorizer = Authorizer()
    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling()
    network: Network = Network()
    scheduler: SchedulerSettings = SchedulerSettings()
    # The older name of topologyAwareScheduling, which files of earlier versions still have.
    cluster_topology: Json | None = None


def problems(config: OperatorConfiguration) -> list[str]:
    """Everything that is wrong with a configuration."""
    messages = [
        *_one_of("apiVersion", config.api_version, (VERSION,)),
        *_one_of("kind", config.kind, ("OperatorConfiguration",)),
        *_one_of("logLevel", config.log_level, ("debug", "info", "error")),
        *_one_of("logFormat", config.log_format, ("json", "text")),
        *_one_of("server.webhooks.certProvisionMode", config.server.webhooks.cert_provision_mode, ("auto", "manual")),
        *_one_of("scheduler.defaultProfileName", config.scheduler.default_profile_name, config.scheduler.names),
    ]
    connection, server = config.runtime_client_connection, config.server
    if connection.burst < 0:
        messages.append(f"runtimeClientConnection.burst: {connection.burst} is below 0")
    if connection.qps <= 0:
        messages.append(f"runtimeClientConnection.qps: {connection.qps:g} is not above 0")
    for field, port in (
        ("webhooks", server.webhooks.port),
        ("healthProbes", server.health_probes.port),
        ("metrics", server.metrics.port),
    ):
        if not 0 <= port <= 65535:
            messages.append(f"server.{field}.port: {port} is not between 0 and 65535")
    for field, controller in (
        ("podCliqueSet", config.controllers.pod_clique_set),
        ("podClique", config.controllers.pod_clique),
        ("podCliqueScalingGroup", config.controllers.pod_clique_scaling_group),
        ("podGang", config.controllers.pod_gang),
    ):
        if controller.concurrent_syncs <= 0:
            messages.append(f"controllers.{field}.concurrentSyncs: {controller.concurrent_syncs} is not above 0")
    names = [profile.name for profile in config.scheduler.profiles]
    messages += [
        f"scheduler.profiles: {name!r} is there twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    return messages + (_election(config.leader_election) if config.leader_election.enabled else [])


def _one_of(field: str, value: str, allowed: tuple[str, ...]) -> list[str]:
    return [] if value in allowed else [f"{field}: {value!r} is not one of {', '.join(allowed)}"]


def _election(election: LeaderElection) -> list[str]:
    messages: list[str] = []
    lengths: dict[str, float] = {}
    for field, text in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        try:
            lengths[field] = duration.seconds(text)
        except duration.DurationError as error:
            messages.append(f"leaderElection.{field}: {error}")
            continue
        if lengths[field] <= 0:
            messages.append(f"leaderElection.{field}: {text} is not above 0")
    if len(lengths) == 3 and lengths["leaseDuration"] <= lengths["renewDeadline"]:
        messages.append("leaderElection.leaseDuration: must be longer than renewDeadline")
    if len(lengths) == 3 and lengths["renewDeadline"] <= lengths["retryPeriod"]:
        messages.append("leaderElection.renewDeadline: must be longer than retryPeriod")
    if not election.resource_name:
        messages.append("leaderElection.resourceName: must be set while leader election is enabled")
    return messages + _one_of("leaderElection.resourceLock", election.resource_lock, ("leases",))
