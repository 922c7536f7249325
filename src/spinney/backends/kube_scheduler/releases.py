"""What each release of Kubernetes serves for gangs with its feature gates on, for commands that run offline."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.meta import Resource
from spinney.backends.interface import Backend
from spinney.backends.kube_scheduler import v1_35, v1_36, v1_37, v1_37_composite
from spinney.backends.served import Served

GANG_APIS: dict[str, tuple[Resource, ...]] = {
    "1.34": (),
    "1.35": v1_35.SHAPE.resources,
    "1.36": v1_36.SHAPE.resources,
    "1.37-flat": v1_37.SHAPE.resources,
    "1.37": v1_37_composite.SHAPE.resources,
}
LATEST = "1.37"


def served_by(release: str, backends: Iterable[Backend]) -> Served:
    """A cluster of a release on which every backend's own API is installed; `1.37-flat` has no composite groups."""
    builtin = {resource for resources in GANG_APIS.values() for resource in resources}
    installed = {resource for backend in backends for resource in backend.resources} - builtin
    return Served(frozenset(installed | set(GANG_APIS[release])))
