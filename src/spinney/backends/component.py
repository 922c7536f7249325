"""`spinney run backends`: every registered backend's controller, or some of them, side by side."""

from __future__ import annotations

import asyncio

from spinney.api.meta import Struct
from spinney.backends.controller import BackendController
from spinney.backends.registry import Registry
from spinney.kube.errors import CannotStart
from spinney.kube.runtime import Component, Rule, Runtime


class BackendsConfig(Struct, frozen=True):
    """Which backends run here; all of them where none is named."""

    only: tuple[str, ...] = ()


async def run(runtime: Runtime, config: BackendsConfig | None = None) -> None:
    """Run until cancelled."""
    registry = Registry.load()
    chosen = (config.only if config else ()) or registry.names
    unknown = [name for name in chosen if registry.get(name) is None]
    if unknown:
        raise CannotStart(
            f"no backend {', '.join(unknown)} is registered, only {', '.join(registry.names)}", exit_code=2
        )
    controllers = [BackendController(runtime, backend) for backend in registry if backend.name in chosen]
    async with asyncio.TaskGroup() as tasks:
        for controller in controllers:
            await controller.discover()
            await controller.controller.synced()
        for controller in controllers:
            tasks.create_task(controller.run(), name=controller.controller.name)
        runtime.ready()


_ALL = ("get", "list", "watch", "create", "patch", "delete")
_READ = ("get", "list", "watch")

COMPONENT = Component(
    name="backends",
    summary="Turns every PodGang into the objects of the scheduler that places it.",
    run=run,
    settings=BackendsConfig,
    rules=(
        Rule(("scheduler.grove.io",), ("podgangs",), (*_READ, "patch")),
        Rule(("scheduler.grove.io",), ("podgangs/status",), ("get", "patch")),
        # An owner reference that blocks deletion needs the right to the owner's finalizers.
        Rule(("scheduler.grove.io",), ("podgangs/finalizers",), ("update",)),
        Rule(("grove.io",), ("clustertopologybindings/finalizers",), ("update",)),
        # What the fit check for kube-scheduler 1.35 looks at.
        Rule(("",), ("nodes", "persistentvolumeclaims", "persistentvolumes"), _READ),
        Rule(("storage.k8s.io",), ("storageclasses",), _READ),
        Rule(("resource.k8s.io",), ("resourceclaims",), _READ),
        Rule(("",), ("pods",), (*_READ, "delete")),
        # The nodes of a gang that only just fits.
        Rule(("",), ("pods/status",), ("patch",)),
        Rule(("",), ("events",), ("list", "create", "patch")),
        Rule(("coordination.k8s.io",), ("leases",), ("get", "list")),
        Rule(("apiextensions.k8s.io",), ("customresourcedefinitions",), _READ),
        Rule(("grove.io",), ("clustertopologybindings",), _READ),
        Rule(("grove.io",), ("clustertopologybindings/status",), ("get", "patch")),
        Rule(("kai.scheduler",), ("topologies",), _ALL),
        Rule(("topology.volcano.sh",), ("hypernodes",), _READ),
        Rule(("scheduling.koordinator.sh",), ("clusternetworktopologies",), _READ),
        Rule(("scheduling.k8s.io",), ("workloads", "podgroups", "compositepodgroups"), _ALL),
        Rule(("scheduling.run.ai", "scheduling.volcano.sh", "scheduling.sigs.k8s.io"), ("podgroups",), _ALL),
    ),
)
