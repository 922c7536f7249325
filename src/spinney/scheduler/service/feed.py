"""Keeps the state current: watch events mark what changed, and between cycles just that is described anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from spinney.api import labels
from spinney.api.bindrequests import has_failed, is_for
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Key, Object
from spinney.api.noderesourcetopology import NodeResourceTopology
from spinney.api.policy import PodDisruptionBudget
from spinney.api.selector import LabelSelector, matches
from spinney.api.volumes import Reach, attached_by, attached_to, needs_storage, reach_of
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.clock import Clock
from spinney.kube.runtime import Runtime
from spinney.scheduler.intake import cluster_objects, pod_tasks
from spinney.scheduler.intake.disruption_budgets import allowed_by, budget_key, budgets_over
from spinney.scheduler.intake.numa_zones import containers_of, given_to, numa_of
from spinney.scheduler.service.bind_backoff import Failures
from spinney.scheduler.service.default_scheduler import StandIn
from spinney.scheduler.service.device_claims import DeviceClaims
from spinney.scheduler.service.views import Views
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import DeviceRequest, TaskSpec
from spinney.scheduler.state.tasks import Triple

_log = structlog.get_logger("spinney.scheduler")

_BY_GROUP = "scheduler/group"
_BY_NAMESPACE = "scheduler/namespace"
_BY_NODE = "scheduler/node"


def _group_key(pod: Pod) -> Iterable[str]:
    name = pod.metadata.annotations.get(labels.POD_GROUP)
    return (cluster_objects.job_key(pod.namespace, name),) if name else ()


@dataclass(frozen=True)
class Shard:
    """Which nodes, queues and groups are ours: those with the pool's label, or for an empty pool those without one."""

    scheduler_name: str = labels.KAI_SCHEDULER
    pool_label: str = labels.NODE_POOL
    pool: str = ""

    def holds(self, found: Object) -> bool:
        """Whether an object belongs to the shard."""
        return found.metadata.labels.get(self.pool_label, "") == self.pool


@dataclass
class Intentions:
    """What has been decided but cannot be seen yet: it counts until a watch event tells, or the write failed."""

    # By pod; the request that was written, or is being written.
    binds: dict[Key, BindRequest] = field(default_factory=dict)
    # UIDs of evicted pods.
    evictions: set[str] = field(default_factory=set)


class Feed:
    """Watches everything the state is made of; `changed` is called on every event that may matter."""

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
    ) -> None:
        self.state = state
        self.shard = shard
        self.intentions = Intentions()
        self._clock: Clock = runtime.clock
        self._changed = changed
        self._stuck_after = stuck_after
        self.views = Views(runtime.caches)
        self.pods, self.groups, self.requests = self.views.pods, self.views.groups, self.views.requests
        # Only where the cluster serves dynamic resource allocation.
        self.claims = DeviceClaims(runtime.caches, self.views.nodes, self.pods) if devices else None
        # Only where zones are reported and decisions look at them.
        self.zones = runtime.caches.of(NodeResourceTopology) if zones else None
        self.failures = Failures(lambda key: self.mark("pod", key))
        # Requests that the binder gave up; whoever writes takes them away.
        self.given_up: list[BindRequest] = []
        # Recent use of a queue, as a part of the cluster's capacity; nothing unless time-based fair share is on.
        self.usage_of: Callable[[str], Triple] = lambda name: (0.0, 0.0, 0.0)
        self._uids: dict[Key, str] = {}
        # Pods whose place depends on storage: they are looked at again when any of it changes.
        self._storing: set[Key] = set()
        # Pods with rules about namespaces by label: the same when a namespace changes.
        self._picking: set[Key] = set()
        self.pods.index(_BY_GROUP, _group_key)
        self.views.budgets.index(_BY_NAMESPACE, lambda budget: (budget.namespace,))
        self.views.attachments.index(_BY_NODE, lambda found: (found.spec.node_name,))
        # Before anything watches: caches that are full already tell of their objects at once.
        self._dirty: dict[str, dict[Key, None]] = defaultdict(dict)
        self.stand_in = StandIn(runtime, state, lambda key: self.mark("pod", key)) if stand_in else None
        self._watch("topology", self.views.topologies)
        self._watch("class", self.views.classes)
        self._watch("queue", self.views.queues)
        self._watch("node", self.views.nodes)
        self._watch("node", self.views.storage_nodes)
        self.views.attachments.on_change(lambda change: self.mark("attached", ("", change.object.spec.node_name)))
        if self.zones is not None:
            self._watch("node", self.zones)
        self._watch("group", self.groups)
        self._watch("pod", self.pods)
        self.requests.on_change(self._request_changed)
        self.views.budgets.on_change(self._budget_changed)
        self.views.namespaces.on_change(lambda change: self._namespaces_changed())
        for cache in self.views.about_storage:
            cache.on_change(lambda change: self._storage_changed())
        if self.claims is not None:
            self.claims.on_change(self._storage_changed, lambda node: self.mark("node", ("", node)))

    async def synced(self) -> None:
        """Wait until everything has been listed once."""
        await self.views.synced()
        for more in (self.claims, self.zones):
            if more is not None:
                await more.synced()

    def _watch(self, kind: str, cache: Cache[Any]) -> None:
        def changed(change: Change[Any]) -> None:
            self.mark(kind, (change.object.namespace, change.object.name))

        cache.on_change(changed)

    def _request_changed(self, change: Change[BindRequest]) -> None:
        request = change.object
        key = (request.namespace, request.spec.pod_name)
        if change.new is not None and has_failed(change.new) and not (change.old and has_failed(change.old)):
            self.given_up.append(change.new)
            pod = self.pods.get(key)
            if pod is not None and is_for(request, pod):
                self.failures.add(key, pod.uid, request.spec.selected_node)
        self.mark("pod", key)

    def _storage_changed(self) -> None:
        for key in self._storing:
            self.mark("pod", key)

    def _namespaces_changed(self) -> None:
        for key in self._picking:
            self.mark("pod", key)

    def _named_by(self, selector: LabelSelector) -> list[str]:
        return [found.name for found in self.views.namespaces if matches(selector, found.metadata.labels)]

    def _budget_changed(self, change: Change[PodDisruptionBudget]) -> None:
        self.mark("budget", (change.object.namespace, change.object.name))
        old, new = change.old, change.new
        if old is not None and new is not None and _covers_the_same(old, new):
            return
        selectors = [found.spec.selector for found in (old, new) if found is not None]
        for pod in self.pods:
            if pod.namespace == change.object.namespace and any(
                matches(selector, pod.metadata.labels) for selector in selectors
            ):
                self.mark("pod", (pod.namespace, pod.name))

    def refresh_usage(self) -> None:
        """Describe queues anew, whose recent use has changed."""
        for name, spec in list(self.state.queue_specs.items()):
            if spec.usage != self.usage_of(name) and self.views.queues.get(name) is not None:
                self._queue(name)

    def mark(self, kind: str, key: Key) -> None:
        """Describe an object anew before the next cycle."""
        self._dirty[kind][key] = None
        self._changed()

    def apply(self) -> None:
        """Bring the state up to date with every event so far."""
        self.state.freed.at(self._clock.now().timestamp())
        if self._take("class") or self._dirty["topology"]:
            # Priorities and level names are worked into the descriptions of groups.
            self._dirty["group"].update(((group.namespace, group.name), None) for group in self.groups)
        self._describe("topology", lambda key: self._topology(key[1]))
        self._describe("queue", lambda key: self._queue(key[1]))
        self._describe("node", lambda key: self._node(key[1]))
        self._describe("attached", lambda key: self._attached(key[1]))
        self._describe("group", self._group)
        self._describe("pod", self._pod)
        self._describe("budget", self._budget)

    def _describe(self, kind: str, describe: Callable[[Key], None]) -> None:
        """Tell the state about every changed object of a kind; one that we fail on must not keep back the others."""
        for key in self._take(kind):
            try:
                describe(key)
            except Exception:
                _log.exception("object.left_out", kind=kind, namespace=key[0], name=key[1])

    def _attached(self, node: str) -> None:
        found = self.views.attachments.by(_BY_NODE, node)
        self.state.set_attached(node, attached_to(found, self.views.storage))

    def _take(self, kind: str) -> list[Key]:
        found = list(self._dirty[kind])
        self._dirty[kind].clear()
        return found

    def _topology(self, name: str) -> None:
        topology = self.views.topologies.get(name)
        if topology is None:
            self.state.drop_topology(name)
        else:
            self.state.set_topology(cluster_objects.topology_spec(topology))

    def _queue(self, name: str) -> None:
        queue = self.views.queues.get(name)
        if queue is None or not self.shard.holds(queue):
            self.state.drop_queue(name)
        else:
            self.state.set_queue(cluster_objects.queue_spec(queue, self.usage_of(name)))

    def _node(self, name: str) -> None:
        node = self.views.nodes.get(name)
        if node is None or not self.shard.holds(node):
            self.state.drop_node(name)
        else:
            spec = cluster_objects.node_spec(node, storage=self.views.storage_nodes.get(name))
            if self.claims is not None:
                served = {**spec.allocatable, **self.claims.extended_on(node)}
                spec = replace(spec, dra_gpus=self.claims.gpus_on(name), allocatable=served)
            reported = self.zones.get(name) if self.zones is not None else None
            self.state.set_node(replace(spec, numa=numa_of(reported)) if reported is not None else spec)

    def _group(self, key: Key) -> None:
        group = self.groups.get(key)
        if group is None or not self.shard.holds(group):
            self.state.drop_job(cluster_objects.job_key(*key))
        else:
            spec = cluster_objects.job_spec(group, self.views.classes, self.state.topologies)
            if spec.last_start is None:
                spec = replace(spec, last_start=cluster_objects.first_start(self.pods.by(_BY_GROUP, spec.key)))
            self.state.set_job(spec)

    def _budget(self, key: Key) -> None:
        budget = self.views.budgets.get(key)
        if budget is None:
            self.state.drop_budget(f"{key[0]}/{key[1]}")
            return
        # Evictions on their way have not been counted yet by whoever writes the budget's status.
        name, tasks = budget_key(budget), self.state.tasks
        under_way = sum(uid in tasks and name in tasks[uid].spec.budgets for uid in self.intentions.evictions)
        self.state.set_budget(name, allowed_by(budget) - under_way)

    def _pod(self, key: Key) -> None:
        pod = self.pods.get(key)
        known = self._uids.get(key)
        if known is not None and (pod is None or pod.uid != known):
            self._drop(key, known)
        if pod is None:
            return
        ours = pod.spec.scheduler_name == self.shard.scheduler_name
        stood_in_for = self.stand_in.describe(pod) if self.stand_in is not None and not ours else ""
        if not ours and not stood_in_for and not pod.spec.node_name:
            if known is not None:
                self._drop(key, pod.uid)
            return
        self._uids[key] = pod.uid
        request = self._request_for(key, pod)
        requests, reach = self._reach(key, pod)
        (self._picking.add if pod_tasks.picks_namespaces(pod) else self._picking.discard)(key)
        job = None if ours else stood_in_for
        spec = pod_tasks.task_spec(
            pod,
            request,
            self._clock.now(),
            job=job,
            reach=reach,
            select=self._named_by,
            stuck_after=self._stuck_after,
        )
        if requests:
            spec = replace(spec, claims=requests)
        if self.zones is not None:
            spec = replace(spec, numa_zones=given_to(pod, request), containers=containers_of(pod))
        if volumes := attached_by(pod, self.views.storage):
            spec = replace(spec, volumes=volumes, constraints=replace(spec.constraints, attaches=True))
        if budgets := budgets_over(pod, self.views.budgets.by(_BY_NAMESPACE, pod.namespace)):
            spec = replace(spec, budgets=budgets)
        self._recount_budgets(spec)
        if self.failures.rests(pod.uid):
            spec = pod_tasks.resting(spec)
        elif failed_on := self.failures.nodes(pod.uid):
            spec = pod_tasks.away_from(spec, failed_on, len(self.state.nodes.rows))
        if pod.uid in self.intentions.evictions:
            spec = pod_tasks.leaving(spec)
        if spec.status & (st.SUCCEEDED | st.FAILED) and not spec.job:
            self.state.drop_task(pod.uid)
            return
        self.state.set_task(spec)

    def _recount_budgets(self, spec: TaskSpec) -> None:
        """What a budget allows depends on evictions that are under way: look again when a pod under it changed."""
        known = self.state.tasks.get(spec.uid)
        for name in {*spec.budgets, *(known.spec.budgets if known is not None else ())}:
            namespace, _, budget = name.partition("/")
            self._dirty["budget"][namespace, budget] = None

    def _reach(self, key: Key, pod: Pod) -> tuple[tuple[DeviceRequest, ...], Reach | None]:
        """What a pod's claims ask for, and where they and its storage let it run; with a node that is answered."""
        requests: tuple[DeviceRequest, ...] = ()
        devices = Reach()
        if self.claims is not None and pod.spec.resource_claims:
            requests, devices = self.claims.requests(pod)
        if pod.spec.node_name or not (needs_storage(pod) or requests or devices.impossible):
            self._storing.discard(key)
            return requests, None
        self._storing.add(key)
        return requests, reach_of(pod, self.views.storage).narrowed(devices)

    def _request_for(self, key: Key, pod: Pod) -> BindRequest | None:
        """The bind that is under way for a pod: the one that can be seen, else the one we are about to write."""
        if pod.metadata.deletion_timestamp is not None:
            self._forget(key, pod.uid)
            return None
        if pod.spec.node_name:
            self.intentions.binds.pop(key, None)
            self.failures.forget(pod.uid)
            return None
        seen = self.requests.get(key)
        if seen is not None and is_for(seen, pod):
            self.intentions.binds.pop(key, None)
            return None if has_failed(seen) else seen
        return self.intentions.binds.get(key)

    def _drop(self, key: Key, uid: str) -> None:
        task = self.state.tasks.get(uid)
        self.state.drop_task(uid)
        self._uids.pop(key, None)
        self._storing.discard(key)
        self._picking.discard(key)
        self._forget(key, uid)
        if self.claims is not None:
            self.claims.pod_gone(uid)
        if self.stand_in is not None and task is not None:
            self.stand_in.forget(task.spec.job)

    def _forget(self, key: Key, uid: str) -> None:
        self.intentions.binds.pop(key, None)
        self.intentions.evictions.discard(uid)
        self.failures.forget(uid)


def _covers_the_same(old: PodDisruptionBudget, new: PodDisruptionBudget) -> bool:
    """Whether a budget counts the same pods as before; how many may go is another matter."""
    health = [found.status.current_healthy >= found.status.desired_healthy for found in (old, new)]
    return old.spec == new.spec and health[0] == health[1]
