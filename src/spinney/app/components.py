"""The only table of components: `spinney run`, `spinney up`, the platform operator and the tests all use it."""

from __future__ import annotations

from importlib import import_module

import click

from spinney.kube.runtime import Component

# name → where its Component lives. One line per component, imported when it is used.
COMPONENTS: dict[str, str] = {
    "backends": "spinney.backends.component:COMPONENT",
    "grove": "spinney.grove.component:COMPONENT",
    "podgrouper": "spinney.services.podgrouper.component:COMPONENT",
    "podgroup-controller": "spinney.services.podgroups.controller:COMPONENT",
    "queue-controller": "spinney.services.queues.controller:COMPONENT",
    "admission": "spinney.services.admission.component:COMPONENT",
    "node-scale-adjuster": "spinney.services.nodescale.controller:COMPONENT",
    "scheduler": "spinney.scheduler.service.component:COMPONENT",
    "binder": "spinney.services.binder.component:COMPONENT",
    "reservation": "spinney.services.reservation.component:COMPONENT",
    "numa-placement-exporter": "spinney.services.numa.exporter:COMPONENT",
    "platform": "spinney.app.platform:COMPONENT",
}


def load(name: str) -> Component:
    """The component of a name; a name that is not in the table is a usage error."""
    if name not in COMPONENTS:
        known = ", ".join(sorted(COMPONENTS)) or "none yet"
        raise click.BadParameter(f"{name!r} is not a component; there are: {known}", param_hint="COMPONENT")
    module, _, attribute = COMPONENTS[name].partition(":")
    component: Component = getattr(import_module(module), attribute)
    return component


def load_all() -> list[Component]:
    """Every component, in the order of the table."""
    return [load(name) for name in COMPONENTS]
