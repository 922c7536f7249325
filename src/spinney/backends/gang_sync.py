"""Translate a gang into its scheduler's objects and write them; what failed becomes a reason of `BackendReady`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

from spinney.api import reasons
from spinney.api.conditions import is_true
from spinney.api.labels import ALLOW_DOWNGRADE
from spinney.api.podgang import PodGang
from spinney.backends.admission import allows_downgrade
from spinney.backends.capabilities import Loss
from spinney.backends.interface import Backend, Cluster, Queued, Readiness
from spinney.backends.metrics import CONVERSIONS, ERRORS, LATENCY
from spinney.backends.sync import Targets
from spinney.kube.errors import ApiError, Conflict
from spinney.kube.writer import Blocked

_RETRY_SECONDS = 15.0


@dataclass(frozen=True)
class Outcome:
    """Whether a gang's objects let it start, what was lost, and after how many seconds to look again."""

    readiness: Readiness
    losses: tuple[Loss, ...] = ()
    again: float | None = None


class GangSync:
    """Keeps the objects of one backend's gangs."""

    def __init__(self, backend: Backend, targets: Targets) -> None:
        self._backend = backend
        self._targets = targets
        self._latency = LATENCY.labels(backend.name)
        self._converted = CONVERSIONS.labels(backend.name, "ok")

    async def sync(self, gang: PodGang, cluster: Cluster) -> Outcome:
        """Bring one gang's objects up to date on a cluster that was looked at."""
        started = perf_counter()
        outcome = await self._sync(gang, cluster)
        self._latency.observe(perf_counter() - started)
        return outcome

    async def _sync(self, gang: PodGang, cluster: Cluster) -> Outcome:
        backend, allowed = self._backend, allows_downgrade(gang.metadata.annotations)
        capabilities = backend.capabilities(cluster.served)
        if not capabilities.api and not allowed:
            return self._failed(reasons.NOT_SERVED, self._not_served())
        translation = backend.translate(gang, cluster)
        unbearable = [loss for loss in translation.losses if not loss.bearable]
        if unbearable and not allowed:
            message = _lost(backend.name, capabilities.api, unbearable)
            if all(loss.missing for loss in unbearable):
                # The set-up of a scheduler may change without an event.
                return self._failed(reasons.SETUP_MISSING, message, again=_RETRY_SECONDS)
            return self._failed(reasons.NOT_EXPRESSIBLE, message)
        if isinstance(backend, Queued) and (missing := backend.missing_queue(gang, cluster)):
            return self._failed(reasons.QUEUE_NOT_FOUND, missing, again=_RETRY_SECONDS)
        try:
            objects, dropped, reports = await self._targets.sync(gang, translation.objects)
        except Blocked as blocked:
            return self._failed(reasons.NAME_TAKEN, str(blocked), again=_RETRY_SECONDS)
        except Conflict:
            raise
        except ApiError as error:
            message = f"the API server refused: {error}"
            return self._failed(reasons.SYNC_FAILED, message, again=_RETRY_SECONDS)
        if dropped and not allowed:
            message = _lost(backend.name, capabilities.api, dropped) + " (a feature gate of the API server is off)"
            return self._failed(reasons.NOT_EXPRESSIBLE, message)
        self._converted.inc()
        readiness = backend.ready(gang, objects)
        if is_true(gang.status.conditions, reasons.SCHEDULED):
            # What the scheduler said before it placed the gang no longer holds.
            readiness = backend.ready(gang, [{**item, "status": {}} for item in objects])
        if reports:
            readiness = Readiness(readiness.ready, reasons.SYNCED, "; ".join(reports))
        return Outcome(readiness, (*translation.losses, *dropped))

    def _failed(self, reason: str, message: str, again: float | None = None) -> Outcome:
        ERRORS.labels(self._backend.name, reason).inc()
        CONVERSIONS.labels(self._backend.name, "failed").inc()
        return Outcome(Readiness(False, reason, message), (), again)

    def _not_served(self) -> str:
        named = ", ".join(dict.fromkeys(resource.api_version for resource in self._backend.resources))
        return (
            f"the cluster serves no API of backend {self._backend.name} ({named}): install or enable it, or set "
            f'{ALLOW_DOWNGRADE}: "true" on the set to have its pods placed one by one'
        )


def _lost(backend: str, api: str, losses: Iterable[Loss]) -> str:
    sentences = "; ".join(loss.sentence(backend, api) for loss in losses)
    return f'{sentences}. Set {ALLOW_DOWNGRADE}: "true" on the set to go without'
