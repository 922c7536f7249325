"""The placeholder pods of gangs, by which some schedulers hold their room."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.labels import PODCLIQUE
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.gang_pods import alive, bound
from spinney.backends.interface import Backend, Reserving
from spinney.kube.caches.cache import Cache


class Placeholders:
    """Finds the placeholders of a gang, and the gang of a placeholder; none for most backends."""

    def __init__(self, backend: Backend, gangs: Cache[PodGang], pods: Cache[Pod]) -> None:
        self._backend = backend if isinstance(backend, Reserving) else None
        self._gangs = gangs
        self._pods = pods
        self._index = f"reservation-{backend.name}"
        if self._backend is not None:
            gangs.index(self._index, self._reservation)
            pods.index(self._index, self._reserved_by)

    def of(self, gang: PodGang) -> list[Pod]:
        """The placeholders of a gang."""
        if self._backend is None:
            return []
        return [pod for key in self._reservation(gang) for pod in self._pods.by(self._index, key)]

    def needless(self, gang: PodGang, pods: Iterable[Pod]) -> list[Pod]:
        """The placeholders of a gang whose minimum has nodes already.

        YuniKorn deletes each placeholder before its pod takes the room. After a restart it creates new ones for gangs
        that run, and they hold room that others wait for.
        """
        placed = [pod.metadata.labels.get(PODCLIQUE) for pod in pods if alive(pod) and bound(pod)]
        if any(placed.count(group.name) < group.min_replicas for group in gang.spec.podgroups):
            return []
        return [pod for pod in self.of(gang) if alive(pod)]

    def gang_of(self, pod: Pod) -> PodGang | None:
        """The gang that a pod holds room for."""
        if self._backend is None:
            return None
        gangs = [gang for key in self._reserved_by(pod) for gang in self._gangs.by(self._index, key)]
        return gangs[0] if gangs else None

    def _reservation(self, gang: PodGang) -> tuple[str, ...]:
        assert self._backend is not None
        return (f"{gang.namespace}/{self._backend.reservation(gang)}",)

    def _reserved_by(self, pod: Pod) -> tuple[str, ...]:
        assert self._backend is not None
        name = self._backend.reserved_by(pod)
        return (f"{pod.namespace}/{name}",) if name else ()
