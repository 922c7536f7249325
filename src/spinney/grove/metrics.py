"""The operator's Prometheus metrics: gangs by phase, gated pods, and the time until sets are available."""

from __future__ import annotations

from prometheus_client import Gauge, Histogram

from spinney.api import pod_state, reasons
from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.grove.world import World
from spinney.kube.caches.cache import Change
from spinney.kube.clock import Clock

GANGS = Gauge("spinney_grove_gangs", "PodGangs by phase.", ("phase",))
GATED = Gauge("spinney_grove_pods_gated", "Pods that are held back by a scheduling gate.")
READY_SECONDS = Histogram(
    "spinney_grove_ready_seconds",
    "From the creation of a set until all its replicas were available for the first time.",
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400),
)


class Watcher:
    """Updates the metrics from changes of the caches."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._clock = clock
        self._served: set[str] = set()
        world.gangs.on_change(self._gang)
        world.pods.on_change(self._pod)
        world.sets.on_change(self._set)

    def _gang(self, change: Change[PodGang]) -> None:
        if change.old is not None:
            GANGS.labels(_phase(change.old)).dec()
        if change.new is not None:
            GANGS.labels(_phase(change.new)).inc()

    def _pod(self, change: Change[Pod]) -> None:
        before = change.old is not None and pod_state.is_gated(change.old)
        after = change.new is not None and pod_state.is_gated(change.new)
        GATED.inc(int(after) - int(before))

    def _set(self, change: Change[PodCliqueSet]) -> None:
        pcs = change.object
        if change.new is None:
            self._served.discard(pcs.uid)
            return
        created = pcs.metadata.creation_timestamp
        serves = 0 < pcs.spec.replicas <= pcs.status.available_replicas
        if not serves or created is None or pcs.uid in self._served:
            return
        self._served.add(pcs.uid)
        # A set that was available before this process began is not measured.
        if change.old is not None:
            READY_SECONDS.observe((self._clock.now() - created).total_seconds())


def _phase(gang: PodGang) -> str:
    return gang.status.phase or reasons.PENDING
