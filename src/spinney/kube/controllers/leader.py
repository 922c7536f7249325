"""Leader election on a Lease: one candidate leads, and none writes after its lease may have expired."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from spinney.api.meta import Json, Resource
from spinney.api.times import rfc3339_micro
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.errors import AlreadyExists, ApiError, Conflict, ConnectionLost, NotFound, NotLeader
from spinney.kube.process_settings import Timing

LEASE = Resource("coordination.k8s.io/v1", "Lease", "leases")

_log = structlog.get_logger("spinney.kube.controllers.leader")


class LeaseLost(Exception):
    """The lease could not be renewed in time."""


@dataclass(slots=True)
class _Observed:
    """A lease as we observed it, and when by our own clock: other clocks may be wrong."""

    record: tuple[str, str, int]
    since: float


class Election:
    """One candidate for one lease.

    Hand `may_write` to the client of whoever acts as leader (`Client.named`): it stops every write from the moment
    the last renewal is `renew_deadline` old, even if nobody has noticed yet.
    """

    def __init__(
        self, client: Client, clock: Clock, name: str, namespace: str, *, identity: str, timing: Timing | None = None
    ) -> None:
        self.identity = identity
        self.leading = False
        self._client = client
        self._clock = clock
        self._name = name
        self._namespace = namespace
        self._timing = timing or Timing()
        self._observed: _Observed | None = None
        self._renewed_at = float("-inf")
        self._log = _log.bind(lease=f"{namespace}/{name}", identity=identity)

    def may_write(self) -> None:
        """Raise NotLeader unless the lease is certainly ours."""
        late = asyncio.get_running_loop().time() - self._renewed_at
        if not self.leading or late >= self._timing.renew_deadline:
            raise NotLeader(f"lease {self._namespace}/{self._name} is not held by {self.identity}")

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run the work while it is ours, and release it at the end.

        Raises `LeaseLost` where it could not be kept; the work is cancelled first.
        """
        await self._acquire()
        self._log.info("leader.started")
        self._client.metrics.leading(self._name).set(1)
        working = asyncio.ensure_future(work())
        keeping = asyncio.create_task(self._keep(), name=f"lease {self._name}")
        try:
            await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (working, keeping):
                if task.done():
                    task.result()
        finally:
            await _end(working)
            await _end(keeping)
            self._client.metrics.leading(self._name).set(0)
            await self._release()

    async def _acquire(self) -> None:
        while True:
            if await self._try():
                self.leading = True
                return
            await asyncio.sleep(self._client.chance.jitter(self._timing.retry_period, 0.2))

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._timing.retry_period)
            left = self._renewed_at + self._timing.renew_deadline - loop.time()
            try:
                async with asyncio.timeout(left):
                    kept = await self._try()
            except TimeoutError:
                kept = False
            if loop.time() - self._renewed_at >= self._timing.renew_deadline or (not kept and self._taken()):
                self.leading = False
                self._log.warning("leader.lost")
                raise LeaseLost(f"lease {self._namespace}/{self._name} could not be renewed by {self.identity}")

    async def _try(self) -> bool:
        """Take or renew the lease; True if it is ours now."""
        started = asyncio.get_running_loop().time()
        try:
            lease = await self._client.get(LEASE, (self._namespace, self._name))
        except NotFound:
            return await self._create(started)
        except (ApiError, ConnectionLost) as error:
            self._log.info("lease.unreadable", error=str(error))
            return False
        spec = lease.get("spec") or {}
        self._observe(spec)
        if not self._free(spec):
            return False
        try:
            await self._client.patch(LEASE, (self._namespace, self._name), self._claim(lease, spec))
        except (Conflict, NotFound, ApiError, ConnectionLost) as error:
            self._log.info("lease.contended", error=str(error))
            return False
        self._renewed_at = started
        return True

    async def _create(self, started: float) -> bool:
        now = rfc3339_micro(self._clock.now())
        body = {
            "metadata": {"name": self._name},
            "spec": {**self._ours(now), "acquireTime": now, "leaseTransitions": 0},
        }
        try:
            await self._client.create(LEASE, body, self._namespace)
        except (AlreadyExists, ApiError, ConnectionLost) as error:
            self._log.info("lease.contended", error=str(error))
            return False
        self._renewed_at = started
        return True

    def _observe(self, spec: Json) -> None:
        record = (spec.get("holderIdentity") or "", spec.get("renewTime") or "", spec.get("leaseTransitions") or 0)
        if self._observed is None or self._observed.record != record:
            self._observed = _Observed(record, asyncio.get_running_loop().time())

    def _free(self, spec: Json) -> bool:
        holder = spec.get("holderIdentity") or ""
        if holder in ("", self.identity):
            return True
        assert self._observed is not None
        silent = asyncio.get_running_loop().time() - self._observed.since
        return silent >= float(spec.get("leaseDurationSeconds") or self._timing.duration)

    def _taken(self) -> bool:
        return self._observed is not None and self._observed.record[0] not in ("", self.identity)

    def _claim(self, lease: Json, spec: Json) -> Json:
        now = rfc3339_micro(self._clock.now())
        claim: Json = self._ours(now)
        if spec.get("holderIdentity") != self.identity:
            claim |= {"acquireTime": now, "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
        return {"metadata": {"resourceVersion": lease["metadata"]["resourceVersion"]}, "spec": claim}

    def _ours(self, now: str) -> Json:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self._timing.duration),
            "renewTime": now,
        }

    async def _release(self) -> None:
        """Release the lease if it is still ours, so that the next candidate need not wait."""
        if not self.leading:
            return
        self.leading = False
        try:
            async with asyncio.timeout(self._timing.retry_period):
                await self._give_back()
        except (ApiError, ConnectionLost, TimeoutError) as error:
            self._log.info("lease.not_released", error=str(error))

    async def _give_back(self) -> None:
        lease = await self._client.get(LEASE, (self._namespace, self._name))
        if lease["spec"].get("holderIdentity") != self.identity:
            return
        version = lease["metadata"]["resourceVersion"]
        spec = {"holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": rfc3339_micro(self._clock.now())}
        patch = {"metadata": {"resourceVersion": version}, "spec": spec}
        await self._client.patch(LEASE, (self._namespace, self._name), patch)


async def _end(task: asyncio.Future[None]) -> None:
    if task.done():
        return
    task.cancel()
    await asyncio.wait({task})
