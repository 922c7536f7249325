"""`spinney run platform`."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.apps import DaemonSet, Deployment
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.platform.controller import Platform
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.leader_endpoints import Leaders
from spinney.services.platform.rights import role_name
from spinney.services.platform.runners import Deployments
from spinney.services.platform.settings import PlatformSettings

ACCOUNTS = (
    "pod-grouper",
    "binder",
    "queue-controller",
    "podgroup-controller",
    "node-scale-adjuster",
    "admission",
    "scheduler",
    "numa-placement-exporter",
)
_READ = ("get", "list", "watch")
_WRITE = ("create", "patch", "delete")
_RBAC = ("rbac.authorization.k8s.io",)


def component(load: Callable[[str], Component]) -> Component:
    """The platform operator; `load` finds the components whose rights and webhooks it sets up."""

    async def run(runtime: Runtime, settings: PlatformSettings | None = None) -> None:
        runner = Deployments(runtime.caches.of(Deployment), runtime.caches.of(DaemonSet))
        platform = Platform(runtime, settings or PlatformSettings(), load, runner)
        leaders = Leaders(runtime, load("scheduler"))
        await run_controllers(runtime, *platform.controllers, leaders.controller)

    return Component(
        name="platform",
        summary="Deploys and configures the services as Config and SchedulingShards say.",
        run=run,
        settings=PlatformSettings,
        rules=_rules(),
    )


def in_process(load: Callable[[str], Component], launcher: Launcher) -> Component:
    """The platform operator of `spinney up`: it runs the services in this process instead of in Deployments."""

    async def run(runtime: Runtime, settings: PlatformSettings | None = None) -> None:
        platform = Platform(runtime, settings or PlatformSettings(), load, launcher)
        launcher.changed = platform.reconcile_all
        try:
            await run_controllers(runtime, *platform.controllers)
        finally:
            await launcher.close()

    return Component("platform", "Runs the services as Config and SchedulingShards say, in this process.", run)


def _rules() -> tuple[Rule, ...]:
    roles = (*(role_name(account) for account in ACCOUNTS), *ACCOUNTS, "kai-resource-reservation")
    return (
        Rule(("kai.scheduler",), ("configs", "schedulingshards"), _READ),
        Rule(("kai.scheduler",), ("configs/status", "schedulingshards/status"), ("patch",)),
        # Owner references that block deletion need this where the API server checks them.
        Rule(("kai.scheduler",), ("configs/finalizers", "schedulingshards/finalizers"), ("update",)),
        Rule(("apps",), ("deployments", "daemonsets"), (*_READ, *_WRITE)),
        Rule(("",), ("serviceaccounts", "services", "configmaps", "secrets"), ("get", "list", *_WRITE)),
        Rule(("",), ("namespaces",), ("get", "create")),
        # The leader among the replicas of a scheduler, and its endpoints.
        Rule(("coordination.k8s.io",), ("leases",), ("get",)),
        Rule(("",), ("pods",), ("get",)),
        Rule(("discovery.k8s.io",), ("endpointslices",), ("get", *_WRITE)),
        # Whether NVIDIA's operator uses CDI.
        Rule(("nvidia.com",), ("clusterpolicies",), ("get", "list")),
        Rule(("policy",), ("poddisruptionbudgets",), ("get", "list", *_WRITE)),
        Rule(("autoscaling.k8s.io",), ("verticalpodautoscalers",), ("get", "list", *_WRITE)),
        Rule(("monitoring.coreos.com",), ("prometheuses", "servicemonitors"), ("get", "list", *_WRITE)),
        Rule(
            ("admissionregistration.k8s.io",),
            ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
            ("get", "list", *_WRITE),
        ),
        Rule(_RBAC, ("clusterroles", "clusterrolebindings", "roles", "rolebindings"), ("get", "list", *_WRITE)),
        # It may grant exactly the rights of the services without having them.
        Rule(_RBAC, ("clusterroles", "roles"), ("escalate", "bind"), roles),
    )
