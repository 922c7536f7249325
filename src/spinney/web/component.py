"""`spinney run dashboard`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

import structlog

from spinney.answers.whatif.applying import Expand, refuse_workloads
from spinney.api.workloads import GROUPED
from spinney.kube.process_settings import ProcessOptions
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.web.endpoints import Endpoints
from spinney.web.limits import ClientLimits
from spinney.web.live import Live
from spinney.web.rights import Reviewer
from spinney.web.server import application, serve
from spinney.web.settings import DashboardSettings, check
from spinney.web.users import identity
from spinney.web.viewer import KindsServed, Viewers

_log = structlog.get_logger("spinney.web")


async def run(runtime: Runtime, settings: DashboardSettings | None = None, expand: Expand = refuse_workloads) -> None:
    """Serve the dashboard until cancelled; `expand` works out workloads of what-if questions."""

    def started(link: str) -> None:
        _log.info("dashboard.serving", link=link)
        runtime.ready()

    await serve_dashboard(runtime, settings or DashboardSettings(), started, expand)


async def serve_dashboard(
    runtime: Runtime,
    settings: DashboardSettings,
    started: Callable[[str], None],
    expand: Expand = refuse_workloads,
) -> None:
    """Follow the cluster and serve its pages; `started` gets the link."""
    check(settings)
    time = asyncio.get_running_loop().time
    # Different in each process, so that readers of an earlier one start over.
    live = Live(runtime, settings, epoch=os.urandom(6).hex(), expand=expand)
    limits = ClientLimits(settings.limits)
    viewers = Viewers(live.board, Reviewer(runtime.client, time), KindsServed(runtime.client))
    endpoints = Endpoints(settings, identity(settings, runtime.client, time), viewers, live, limits)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(live.run(), name="dashboard rows")
        tasks.create_task(serve(application(settings, endpoints, limits), settings, started), name="dashboard pages")


_READ = ("list", "watch")


def component(expand: Expand) -> Component:
    """`spinney run dashboard`, with a way to work out workloads of what-if questions."""

    def configured(settings: DashboardSettings) -> Component:
        """The component, once its configuration is known to be safe."""
        check(settings)
        return made

    made = Component(
        name="dashboard",
        summary="Shows gangs, queues and racks in a browser.",
        run=partial(run, expand=expand),
        settings=DashboardSettings,
        configured=configured,
        # Every replica serves; there is nothing to lead.
        process=lambda _: ProcessOptions(elect=False),
        rules=(
            Rule(("",), ("pods", "nodes", "namespaces", "events"), _READ),
            # Only names are read: where pods may run depends on them.
            Rule(("",), ("configmaps", "persistentvolumes", "persistentvolumeclaims"), _READ),
            Rule(
                ("storage.k8s.io",),
                ("storageclasses", "csinodes", "volumeattachments", "csidrivers", "csistoragecapacities"),
                _READ,
            ),
            Rule(("resource.k8s.io",), ("resourceclaims", "resourceslices", "deviceclasses"), _READ),
            Rule(("topology.node.k8s.io",), ("noderesourcetopologies",), _READ),
            Rule(("policy",), ("poddisruptionbudgets",), _READ),
            Rule(("scheduling.k8s.io",), ("priorityclasses",), _READ),
            Rule(("kai.scheduler",), ("topologies",), _READ),
            Rule(("scheduling.run.ai",), ("podgroups", "queues", "bindrequests"), _READ),
            Rule(("scheduler.grove.io",), ("podgangs",), _READ),
            # Workloads, and what stands between them and their pods.
            Rule(tuple(sorted({version.rpartition("/")[0] for version, _ in GROUPED})), ("*",), _READ),
            Rule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
            Rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
        ),
    )
    return made
