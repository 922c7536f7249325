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
from spinney.grove.rights import RULES
from spinney.grove.settings import GroveConfiguration, Settings, lease, process
from spinney.kube.runtime import Component, Runtime

NAME = "grove"


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
