"""Revisions of pod templates: the hash in the names and labels of what workloads create, and ControllerRevisions."""

from __future__ import annotations

from dataclasses import dataclass, field

from spinney.api.apps import ControllerRevision, DaemonSet, StatefulSet
from spinney.api.meta import Json, encode
from spinney.api.owners import controller_reference
from spinney.embedded.controllers.pods.replicas import SetPlan
from spinney.embedded.controllers.writes import BY_CONTROLLER, controller_uid, create_once, index_key
from spinney.kube.runtime import Runtime

# The label that names a pod's revision.
REVISION = "controller-revision-hash"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass
class RevisionedPlan(SetPlan):
    """The plan of a set that keeps its templates as ControllerRevisions."""

    revisions: list[Json] = field(default_factory=list)


def template_hash(template: Json, collisions: int = 0) -> str:
    """A name of about ten letters that changes with the template."""
    number = 0x811C9DC5
    for byte in encode(_ordered(template)) + str(collisions).encode():
        number = ((number ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


def current_hash(owner: DaemonSet | StatefulSet) -> str:
    """The hash of a set's template."""
    return template_hash(owner.spec.template, owner.status.collision_count or 0)


def revision(owner: DaemonSet | StatefulSet, labels: dict[str, str], number: int) -> Json:
    """The ControllerRevision of a set's template."""
    name = f"{owner.name}-{current_hash(owner)}"
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": [controller_reference(owner)]},
        "data": {"spec": {"template": {**owner.spec.template, "$patch": "replace"}}},
        "revision": number,
    }


class Revisions:
    """The ControllerRevisions of sets."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._cache = runtime.caches.of(ControllerRevision)
        self._cache.index(BY_CONTROLLER, controller_uid)

    async def templates(self, owner: DaemonSet | StatefulSet) -> dict[str, Json]:
        """The templates of a set by the names of their revisions."""
        await self._cache.synced()
        return {
            stored.name: {key: value for key, value in stored.data["spec"]["template"].items() if key != "$patch"}
            for stored in self._cache.by(BY_CONTROLLER, index_key(owner))
        }

    async def create(self, owner: DaemonSet | StatefulSet, bodies: list[Json]) -> None:
        """Create revisions."""
        for body in bodies:
            await create_once(self._client, ControllerRevision, body, owner.namespace)
