"""The Grove operator as a component: its rights, its webhooks, its configuration."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from spinney.api.groveconfig import ConfigurationError, OperatorConfiguration, problems
from spinney.backends.registry import Registry
from spinney.grove.admission.webhooks import webhooks
from spinney.grove.operator import Operator
from spinney.grove.preflight import preflight, with_own_name
from spinney.grove.settings import GroveConfiguration, Settings, lease, process
from spinney.kube.runtime import Component, Rule, Runtime

NAME = "grove"
_READ = ("get", "list", "watch")
_ALL = (*_READ, "create", "patch", "delete")
RULES = (
    Rule(("grove.io",), ("podcliquesets",), (*_READ, "patch")),
    Rule(("grove.io",), ("clustertopologybindings",), _READ),
    Rule(("grove.io",), ("podcliques", "podcliquescalinggroups"), _ALL),
    Rule(
        ("grove.io",),
        ("podcliquesets/status", "podcliques/status", "podcliquescalinggroups/status"),
        ("patch",),
    ),
    # Owner references that block deletion need this where the API server checks them.
    Rule(
        ("grove.io",),
        ("podcliquesets/finalizers", "podcliques/finalizers", "podcliquescalinggroups/finalizers"),
        ("update",),
    ),
    Rule(("scheduler.grove.io",), ("podgangs",), _ALL),
    Rule(("scheduler.grove.io",), ("podgangs/status",), ("patch",)),
    Rule(("",), ("pods", "services", "serviceaccounts"), _ALL),
    # Tokens of init containers. Nobody needs to read them but the kubelet.
    Rule(("",), ("secrets",), ("create",)),
    # The operator can grant init containers only what it may do itself.
    Rule(("",), ("pods/status",), _READ),
    Rule(("",), ("nodes",), _READ),
    # Tell which gang APIs are served.
    Rule(("apiextensions.k8s.io",), ("customresourcedefinitions",), _READ),
    Rule(("",), ("events",), ("create", "patch")),
    Rule(("rbac.authorization.k8s.io",), ("roles", "rolebindings"), _ALL),
    Rule(("autoscaling",), ("horizontalpodautoscalers",), _ALL),
    Rule(("resource.k8s.io",), ("resourceclaims",), _ALL),
    Rule(("resource.k8s.io",), ("resourceclaimtemplates",), _READ),
    Rule(("resource.nvidia.com",), ("computedomains",), _ALL),
)


def component(settings: Settings | None = None) -> Component:
    """The operator with these settings; a configuration file given to `run` replaces theirs."""
    state = {"settings": settings or Settings()}

    @cache
    def registry() -> Registry:
        return Registry.load(fallback=state["settings"].fallback_backend)

    def configured(config: OperatorConfiguration) -> Component:
        if errors := problems(config):
            raise ConfigurationError("; ".join(errors))
        settings = replace(state["settings"], config=config)
        # A fallback that is not registered is refused here, before anything runs.
        Registry.load(fallback=settings.fallback_backend)
        return component(settings)

    async def run(runtime: Runtime, config: Any = None) -> None:
        if isinstance(config, OperatorConfiguration):
            state["settings"] = replace(state["settings"], config=config)
        await preflight(runtime.client, state["settings"])
        state["settings"] = await with_own_name(runtime.client, state["settings"])
        await Operator(runtime, state["settings"], registry()).run()

    return Component(
        name=NAME,
        summary="Turns PodCliqueSets into gangs of gated pods.",
        run=run,
        rules=RULES,
        webhooks=webhooks(lambda: state["settings"], registry),
        settings=GroveConfiguration,
        lease=lease,
        process=process,
        configured=configured,
    )


COMPONENT = component()
