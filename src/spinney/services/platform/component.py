"""`spinney run platform`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from spinney.api.apps import DaemonSet, Deployment
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.manifests import EVENT_RULE, LEASE_RULE, REVIEW_RULES
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.platform.controller import Platform
from spinney.services.platform.defaults import keep_defaults
from spinney.services.platform.deployments import CERTIFICATES
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.leader_endpoints import Leaders
from spinney.services.platform.runners import Deployments
from spinney.services.platform.settings import PlatformSettings

# The components that it deploys, reservation pods included.
SERVICES = (
    "admission",
    "binder",
    "node-scale-adjuster",
    "numa-placement-exporter",
    "podgroup-controller",
    "podgrouper",
    "queue-controller",
    "reservation",
    "scheduler",
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
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_defaults(runtime.client, settings or PlatformSettings()))
            await run_controllers(runtime, *platform.controllers, leaders.controller)

    services = [load(name) for name in SERVICES]
    return Component(
        name="platform",
        summary="Deploys and configures the services as Config and SchedulingShards say.",
        run=run,
        settings=PlatformSettings,
        rules=(*_RULES, *_granted(services)),
        namespace_rules=_SECRET_RULES,
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


_RULES = (
    Rule(("kai.scheduler",), ("configs", "schedulingshards"), (*_READ, "create", "patch")),
    # The default queues.
    Rule(("scheduling.run.ai",), ("queues",), ("get", "create")),
    Rule(("kai.scheduler",), ("configs/status", "schedulingshards/status"), ("patch",)),
    # Owner references that block deletion need this where the API server checks them.
    Rule(("kai.scheduler",), ("configs/finalizers", "schedulingshards/finalizers"), ("update",)),
    Rule(("apps",), ("deployments", "daemonsets"), (*_READ, *_WRITE)),
    Rule(("",), ("serviceaccounts", "services", "configmaps"), ("get", "list", *_WRITE)),
    Rule(("",), ("namespaces",), ("get", "create")),
    # That of reservation pods.
    Rule(("networking.k8s.io",), ("networkpolicies",), ("get", "create")),
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
)
_SECRET_RULES = (
    Rule(("",), ("secrets",), ("create",)),
    Rule(("",), ("secrets",), ("get", "patch", "delete"), CERTIFICATES),
)


def _granted(services: Iterable[Component]) -> Iterator[Rule]:
    """The rights of the services: Kubernetes lets nobody grant what he may not do himself."""
    yield EVENT_RULE
    yield from REVIEW_RULES
    yield LEASE_RULE
    for service in services:
        yield from (*service.rules, *service.namespace_rules)
