"""Keep the state current: watch events mark what changed, and only that is updated before a cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import structlog

from spinney.api.bindrequests import has_failed, is_for
from spinney.api.kai import BindRequest
from spinney.api.meta import Key, Object
from spinney.api.noderesourcetopology import NodeResourceTopology
from spinney.api.policy import PodDisruptionBudget
from spinney.api.selector import matches
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.runtime import Runtime
from spinney.scheduler.service.bind_backoff import BindBackoff
from spinney.scheduler.service.default_scheduler import StandIn
from spinney.scheduler.service.descriptions import Descriptions
from spinney.scheduler.service.device_claims import DeviceClaims
from spinney.scheduler.service.intentions import Intentions
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.views import Views
from spinney.scheduler.state.cluster import State

_log = structlog.get_logger("spinney.scheduler")


class Feed:
    """Watches everything the state is made of; calls `changed` on every relevant event."""

    def __init__(
        self,
        runtime: Runtime,
        state: State,
        shard: Shard,
        changed: Callable[[], None],
        *,
        stand_in: bool = False,
        devices: bool = False,
        zones: bool = False,
        stuck_after: float = 120.0,
        warn: Callable[[Object, str], None] = lambda item, message: None,
    ) -> None:
        self._state = state
        self._clock = runtime.clock
        self._changed = changed
        # Before anything watches: caches that are full already tell of their objects at once.
        self._dirty: dict[str, dict[Key, None]] = defaultdict(dict)
        # Requests that the binder gave up.
        self._failed: list[BindRequest] = []
        self.views = Views(runtime.caches)
        self.intentions = Intentions(self._mark_pod)
        self.backoff = BindBackoff(self._mark_pod)
        # Only where the cluster serves dynamic resource allocation.
        self.claims = DeviceClaims(runtime.caches, self.views, warn) if devices else None
        self.stand_in = StandIn(runtime, state, self._mark_pod) if stand_in else None
        # Only where zones are reported and decisions look at them.
        self._zones = runtime.caches.of(NodeResourceTopology) if zones else None
        self.descriptions = Descriptions(
            state=state,
            shard=shard,
            views=self.views,
            clock=runtime.clock,
            intentions=self.intentions,
            backoff=self.backoff,
            claims=self.claims,
            zones=self._zones,
            stand_in=self.stand_in,
            budget_changed=self._recount_budget,
            stuck_after=stuck_after,
        )
        self._watch_all()

    async def synced(self) -> None:
        """Wait until everything has been listed once."""
        await self.views.synced()
        for more in (self.claims, self._zones):
            if more is not None:
                await more.synced()

    def apply(self) -> None:
        """Bring the state up to date with every event so far."""
        self._state.departures.set_time(self._clock.now().timestamp())
        describe = self.descriptions
        if self._take("class") or self._dirty["topology"]:
            # Priorities and level names are worked into the descriptions of groups.
            self._dirty["group"].update((group.key, None) for group in self.views.groups)
        self._describe("topology", lambda key: describe.topology(key[1]))
        self._describe("queue", lambda key: describe.queue(key[1]))
        self._describe("node", lambda key: describe.node(key[1]))
        self._describe("attached", lambda key: describe.attachments(key[1]))
        self._describe("group", describe.group)
        self._describe("pod", describe.pod)
        self._describe("budget", describe.budget)

    def take_failed_requests(self) -> list[BindRequest]:
        """Return and forget the requests that failed since the last call."""
        failed, self._failed = self._failed, []
        return failed

    def _describe(self, kind: str, describe: Callable[[Key], None]) -> None:
        """Update every changed object of a kind; an error on one does not stop the others."""
        for key in self._take(kind):
            try:
                describe(key)
            except Exception:
                _log.exception("object.left_out", kind=kind, namespace=key[0], name=key[1])

    def _take(self, kind: str) -> list[Key]:
        keys = list(self._dirty[kind])
        self._dirty[kind].clear()
        return keys

    def _mark(self, kind: str, key: Key) -> None:
        self._dirty[kind][key] = None
        self._changed()

    def _recount_budget(self, key: Key) -> None:
        # No event: this comes from within `apply`, which looks at budgets last.
        self._dirty["budget"][key] = None

    def _mark_pod(self, key: Key) -> None:
        self._mark("pod", key)

    def _watch_all(self) -> None:
        views = self.views
        self._watch("topology", views.topologies)
        self._watch("class", views.classes)
        self._watch("queue", views.queues)
        self._watch("node", views.nodes)
        self._watch("node", views.storage_nodes)
        views.attachments.on_change(lambda change: self._mark("attached", ("", change.object.spec.node_name)))
        if self._zones is not None:
            self._watch("node", self._zones)
        self._watch("group", views.groups)
        self._watch("pod", views.pods)
        views.requests.on_change(self._request_changed)
        views.budgets.on_change(self._budget_changed)
        views.namespaces.on_change(lambda change: self._namespaces_changed())
        for cache in views.about_storage:
            cache.on_change(lambda change: self._storage_changed())
        if self.claims is not None:
            self.claims.on_change(self._storage_changed, lambda node: self._mark("node", ("", node)))

    def _watch(self, kind: str, cache: Cache[Any]) -> None:
        cache.on_change(lambda change: self._mark(kind, change.object.key))

    def _storage_changed(self) -> None:
        for key in self.descriptions.storage_users:
            self._mark_pod(key)

    def _namespaces_changed(self) -> None:
        for key in self.descriptions.namespace_users:
            self._mark_pod(key)

    def _request_changed(self, change: Change[BindRequest]) -> None:
        request = change.object
        key = (request.namespace, request.spec.pod_name)
        if change.new is not None and has_failed(change.new) and not (change.old and has_failed(change.old)):
            self._failed.append(change.new)
            pod = self.views.pods.get(key)
            if pod is not None and is_for(request, pod):
                self.backoff.add(key, pod.uid, request.spec.selected_node)
        self._mark_pod(key)

    def _budget_changed(self, change: Change[PodDisruptionBudget]) -> None:
        self._mark("budget", change.object.key)
        old, new = change.old, change.new
        if old is not None and new is not None and _covers_the_same(old, new):
            return
        selectors = [budget.spec.selector for budget in (old, new) if budget is not None]
        for pod in self.views.pods:
            if pod.namespace == change.object.namespace and any(
                matches(selector, pod.metadata.labels) for selector in selectors
            ):
                self._mark_pod(pod.key)


def _covers_the_same(old: PodDisruptionBudget, new: PodDisruptionBudget) -> bool:
    """Whether a budget covers the same pods as before, however many it lets go."""
    health = [budget.status.current_healthy >= budget.status.desired_healthy for budget in (old, new)]
    return old.spec == new.spec and health[0] == health[1]
