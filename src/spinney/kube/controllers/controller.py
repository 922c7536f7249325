"""Controllers: turn watch events into keys and reconcile them; a reconcile never reads older state than it wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import structlog

from spinney.api.meta import Key, Object
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.client.writes import recording
from spinney.kube.controllers.workqueue import Queue
from spinney.kube.errors import ApiError, Conflict, ConnectionLost, NotLeader
from spinney.kube.runtime import Runtime

T = TypeVar("T", bound=Object)

_log = structlog.get_logger("spinney.kube.controllers.controller")

# How long a stopped controller lets running reconciles finish.
_GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class After:
    """Returned by a reconcile that wants to run again, even if nothing changes."""

    seconds: float


class Refusal(Exception):
    """Raised by a reconcile that cannot work on an object as it is: logged in one line and retried."""


Reconcile = Callable[[Key], Awaitable[After | None]]


def own_key(change: Change[Any]) -> Iterable[Key]:
    """The changed object itself."""
    return ((change.object.namespace, change.object.name),)


def owner_key(kind: str) -> Callable[[Change[Any]], Iterable[Key]]:
    """The controlling owner of the changed object, if it is of that kind."""

    def keys(change: Change[Any]) -> Iterable[Key]:
        changed = change.object
        return [
            (changed.namespace, owner.name)
            for owner in changed.metadata.owner_references
            if owner.controller and owner.kind == kind
        ]

    return keys


class Controller:
    """Calls `reconcile(key)` for every key whose objects changed.

    Level-triggered: a key names only the object to look at. Errors are logged and retried with back-off. Before a key
    is reconciled again, the shared caches have seen everything its last reconcile wrote. With `gather`, keys that come
    one by one are taken together every so many seconds, the first after a pause at once: requests sent together cost
    server and client about half. With `rest`, a key is left alone for so many seconds after each reconcile, and changes
    meanwhile are reconciled together: for keys whose reconcile reads much.
    """

    def __init__(
        self,
        name: str,
        runtime: Runtime,
        reconcile: Reconcile,
        concurrency: int = 8,
        *,
        gather: float = 0.0,
        rest: Callable[[Key], float] = lambda key: 0.0,
    ) -> None:
        self.name = name
        self.queue: Queue[Key] = Queue(runtime.client.chance)
        self._runtime = runtime
        self._reconcile = reconcile
        self._slots = asyncio.Semaphore(concurrency)
        self._gather = gather
        self._rest = rest
        self._caches: list[Cache[Any]] = []
        # In the order they began, so that a stop in virtual time is the same every time.
        self._reconciling: dict[asyncio.Task[None], None] = {}
        self._catching_up: dict[asyncio.Task[None], None] = {}
        self._stopping = False
        self._log = _log.bind(controller=name)
        self._metrics = runtime.client.metrics.controller(name)

    def watch(
        self,
        cache: Cache[T],
        keys: Callable[[Change[T]], Iterable[Key]] = own_key,
        when: Callable[[Change[T]], bool] | None = None,
    ) -> Self:
        """Enqueue the keys that a change concerns; `when` filters out changes that cannot matter."""

        def changed(change: Change[T]) -> None:
            if when is None or when(change):
                for key in keys(change):
                    self.queue.add(key)

        self._caches.append(cache)
        cache.on_change(changed)
        return self

    def wait_for(self, *caches: Cache[Any]) -> Self:
        """Start reconciling only after these caches, which are only read, have synced."""
        self._caches += caches
        return self

    def enqueue(self, namespace: str, name: str, after: float = 0.0) -> None:
        """Reconcile a key now, or after some seconds."""
        self.queue.add_after((namespace, name), after)

    @property
    def idle(self) -> bool:
        """Whether no key waits or runs; delayed keys do not count."""
        return self.queue.idle

    async def synced(self) -> None:
        """Wait until every watched cache has its first list."""
        for cache in self._caches:
            await cache.synced()

    async def run(self) -> None:
        """Reconcile until cancelled, then let running reconciles finish."""
        await self.synced()
        try:
            while True:
                if self._gather and not len(self.queue):
                    await asyncio.sleep(self._gather)
                await self._slots.acquire()
                key = await self.queue.get()
                self._metrics.depth.set(len(self.queue))
                task = asyncio.create_task(self._work(key), name=f"{self.name} {key[0]}/{key[1]}")
                self._reconciling[task] = None
                task.add_done_callback(lambda done: self._reconciling.pop(done, None))
        finally:
            self._stopping = True
            self.queue.close()
            await self._finish()

    async def _finish(self) -> None:
        for task in self._catching_up:
            task.cancel()
        if self._reconciling:
            await asyncio.wait(self._reconciling, timeout=_GRACE_SECONDS)
        for task in self._reconciling:
            task.cancel()

    async def _work(self, key: Key) -> None:
        with recording() as writes:
            try:
                await self._once(key)
            finally:
                self._slots.release()
        if self._stopping:
            return
        task = cast("asyncio.Task[None]", asyncio.current_task())
        del self._reconciling[task]
        self._catching_up[task] = None
        try:
            for write in writes:
                await self._runtime.caches.caught_up(write)
            if rest := self._rest(key):
                await asyncio.sleep(rest)
        finally:
            del self._catching_up[task]
            self.queue.done(key)

    async def _once(self, key: Key) -> None:
        started = asyncio.get_running_loop().time()
        try:
            after = await self._reconcile(key)
        except (Conflict, ConnectionLost, NotLeader) as error:
            # Expected under load: someone else wrote first, a server restarted, a lease ran out.
            delay = self.queue.retry(key)
            self._metrics.again.inc()
            self._log.info("reconcile.again", namespace=key[0], name=key[1], error=str(error), seconds=round(delay, 3))
        except Refusal as error:
            self.queue.retry(key)
            self._metrics.failed.inc()
            self._log.warning("reconcile.refused", namespace=key[0], name=key[1], error=str(error))
        except ApiError as error:
            delay = self.queue.retry(key)
            self._metrics.failed.inc()
            self._log.warning("reconcile.refused", namespace=key[0], name=key[1], error=str(error), code=error.code)
        except Exception:
            delay = self.queue.retry(key)
            self._metrics.failed.inc()
            self._log.exception("reconcile.failed", namespace=key[0], name=key[1], seconds=round(delay, 3))
        else:
            self.queue.forget(key)
            self._metrics.done.inc()
            self._metrics.seconds.observe(asyncio.get_running_loop().time() - started)
            if after is not None:
                self.queue.add_after(key, after.seconds)


async def run_controllers(runtime: Runtime, *controllers: Controller) -> None:
    """Run controllers until cancelled; report ready once every watched cache has synced."""
    async with asyncio.TaskGroup() as tasks:
        for controller in controllers:
            await controller.synced()
        for controller in controllers:
            tasks.create_task(controller.run(), name=controller.name)
        runtime.ready()
