"""Detect a scheduler that does not run: pods without a gate, and no sign of life about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from spinney.api.coordination import Lease
from spinney.api.core import Event
from spinney.api.meta import Key
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.reasons import SCHEDULER_SILENT
from spinney.backends.gang_pods import bound, gated, judged
from spinney.backends.interface import Backend, Readiness
from spinney.kube.runtime import Runtime

PATIENCE_SECONDS = 30.0
# Events of the operator and the backends are no sign of the scheduler.
_OURS = ("grove", "spinney")


class SchedulerLiveness:
    """Knows since when the pods of each gang wait without a sign from their scheduler."""

    def __init__(self, runtime: Runtime, backend: Backend) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._backend = backend
        self._since: dict[Key, datetime] = {}

    def forget(self, key: Key) -> None:
        """Drop what is known of a gang."""
        self._since.pop(key, None)

    async def checked(self, gang: PodGang, pods: Sequence[Pod], readiness: Readiness) -> tuple[Readiness, float | None]:
        """The readiness, or the reason SchedulerSilent; and after how many seconds to look again."""
        key = (gang.namespace, gang.name)
        waiting = [pod for pod in pods if not gated(pod) and not bound(pod)]
        if not waiting or any(bound(pod) or judged(pod) for pod in pods if not gated(pod)):
            self.forget(key)
            return readiness, None
        now = self._clock.now()
        passed = (now - self._since.setdefault(key, now)).total_seconds()
        if passed < PATIENCE_SECONDS:
            return readiness, PATIENCE_SECONDS - passed
        if await self._lease_is_fresh(now) or await self._has_event(waiting[0]):
            return readiness, PATIENCE_SECONDS
        name = waiting[0].spec.scheduler_name
        message = (
            f"{len(waiting)} pods have been schedulable for over {PATIENCE_SECONDS:g} s without a sign of life "
            f"from their scheduler {name!r}: no condition, no event{self._about_lease()}. "
            "Does it run, and under that name?"
        )
        return Readiness(False, SCHEDULER_SILENT, message), PATIENCE_SECONDS

    def _about_lease(self) -> str:
        return f", no fresh lease {self._backend.lease!r}" if self._backend.lease else ""

    async def _lease_is_fresh(self, now: datetime) -> bool:
        if not self._backend.lease:
            return False
        leases = await self._client.list(Lease, fields=f"metadata.name={self._backend.lease}")
        return any(_fresh(lease, now) for lease in leases.items)

    async def _has_event(self, pod: Pod) -> bool:
        events = await self._client.list(Event, pod.namespace, fields=f"involvedObject.name={pod.name}")
        return any(_by_a_scheduler(event, pod) for event in events.items)


def _fresh(lease: Lease, now: datetime) -> bool:
    renewed = lease.spec.renew_time
    return renewed is not None and now - renewed < timedelta(seconds=2 * (lease.spec.lease_duration_seconds or 15))


def _by_a_scheduler(event: Event, pod: Pod) -> bool:
    author = event.reporting_component or event.source.component
    return event.involved_object.uid == pod.uid and not author.startswith(_OURS)
