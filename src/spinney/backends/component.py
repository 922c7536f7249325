"""`spinney run backends`: every registered backend's controller, or some of them, side by side."""

from __future__ import annotations

import asyncio
from functools import partial

from spinney.api.meta import Json, Struct
from spinney.backends.controller import BackendController
from spinney.backends.interface import Backend
from spinney.backends.registry import Registry
from spinney.kube.runtime import Component, Rule, Runtime

_READ = ("get", "list", "watch")
# What the controller of every backend does; the rest is declared by the backends.
RULES = (
    Rule(("scheduler.grove.io",), ("podgangs",), (*_READ, "patch")),
    Rule(("scheduler.grove.io",), ("podgangs/status",), ("patch",)),
    # An owner reference that blocks deletion needs the right to the owner's finalizers.
    Rule(("scheduler.grove.io",), ("podgangs/finalizers",), ("update",)),
    Rule(("grove.io",), ("clustertopologybindings/finalizers",), ("update",)),
    Rule(("",), ("pods",), _READ),
    Rule(("",), ("events",), ("list", "create", "patch")),
    Rule(("coordination.k8s.io",), ("leases",), ("get", "list")),
    Rule(("apiextensions.k8s.io",), ("customresourcedefinitions",), _READ),
    Rule(("grove.io",), ("clustertopologybindings",), _READ),
    Rule(("grove.io",), ("clustertopologybindings/status",), ("patch",)),
)


class BackendsConfig(Struct, frozen=True):
    """Which backends run here; all of them where none is named."""

    only: tuple[str, ...] = ()


async def run(runtime: Runtime, config: BackendsConfig | None = None) -> None:
    """Run until cancelled."""
    controllers = [BackendController(runtime, backend) for backend in _chosen(config)]
    async with asyncio.TaskGroup() as tasks:
        for controller in controllers:
            await controller.discover()
            await controller.controller.synced()
        for controller in controllers:
            tasks.create_task(controller.run(), name=controller.controller.name)
        runtime.ready()


def component(config: BackendsConfig | None = None) -> Component:
    """The component with the rights and the CRDs of the chosen backends; an unknown one cannot start."""
    backends = _chosen(config)
    return Component(
        name="backends",
        summary="Turns every PodGang into the objects of the scheduler that places it.",
        run=run,
        settings=BackendsConfig,
        rules=(*RULES, *(rule for backend in backends for rule in backend.rules)),
        lease=lease,
        crds=partial(_crds, backends),
        configured=component,
    )


def lease(config: BackendsConfig | None) -> str:
    """The Lease of a choice of backends: processes that serve different ones do not wait for each other."""
    return "-".join(("spinney-backends", *sorted(config.only if config is not None else ())))


def _chosen(config: BackendsConfig | None) -> tuple[Backend, ...]:
    return Registry.load().some(config.only if config is not None else ())


def _crds(backends: tuple[Backend, ...]) -> tuple[Json, ...]:
    return tuple(definition for backend in backends for definition in backend.crds)


COMPONENT = component()
