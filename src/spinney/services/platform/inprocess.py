"""The platform with its services inside one process, as `spinney up` has it: the same objects, the same conditions."""

from __future__ import annotations

from collections.abc import Callable

from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Runtime
from spinney.services.platform.controller import Platform
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.settings import PlatformSettings


def in_process(load: Callable[[str], Component], launcher: Launcher) -> Component:
    """The platform operator, with a launcher in place of Deployments."""

    async def run(runtime: Runtime, settings: PlatformSettings | None = None) -> None:
        platform = Platform(runtime, settings or PlatformSettings(), load, launcher)
        launcher.changed = platform.look_again
        try:
            await run_controllers(runtime, *platform.controllers)
        finally:
            await launcher.close()

    return Component("platform", "Runs the services as Config and SchedulingShards say, in this process.", run)
