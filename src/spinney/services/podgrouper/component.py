"""`spinney run podgrouper`."""

from __future__ import annotations

from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.podgrouper.context import Settings
from spinney.services.podgrouper.controller import PodGrouper
from spinney.services.podgrouper.rules import RULES, SKIPPED

_READ = ("get", "list", "watch")


async def run(runtime: Runtime, settings: Settings | None = None) -> None:
    """Group pods until cancelled."""
    await run_controllers(runtime, PodGrouper(runtime, settings or Settings()).controller)


def _workload_groups() -> tuple[str, ...]:
    """The API groups whose kinds can own pods, from the table of rules."""
    named = {api_version.rpartition("/")[0] for api_version, _ in (*RULES, *SKIPPED)}
    return tuple(sorted((named | {"scheduler.grove.io"}) - {""}))


COMPONENT = Component(
    name="podgrouper",
    summary="Puts pods into the PodGroup that their workload asks for.",
    run=run,
    settings=Settings,
    # Defaults per kind, in a map beside the service.
    namespace_rules=(Rule(("",), ("configmaps",), _READ),),
    rules=(
        Rule(("",), ("pods",), (*_READ, "patch")),
        Rule(("",), ("events",), ("create", "patch")),
        # Where only some namespaces are grouped.
        Rule(("",), ("namespaces",), _READ),
        Rule(_workload_groups(), ("*",), _READ),
        Rule(("scheduling.k8s.io",), ("priorityclasses",), _READ),
        Rule(("scheduling.run.ai",), ("podgroups",), (*_READ, "create", "patch")),
    ),
)
