"""Put objects of the caches into the state, as specs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from spinney.api import labels
from spinney.api.bindrequests import has_failed, is_for
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Key
from spinney.api.noderesourcetopology import NodeResourceTopology
from spinney.api.selector import LabelSelector, matches
from spinney.api.volumes import Reach, attached_by, attached_to, needs_storage, reach_of
from spinney.kube.caches.cache import Cache
from spinney.kube.clock import Clock
from spinney.scheduler.intake import cluster_objects, pod_tasks
from spinney.scheduler.intake.disruption_budgets import budget_key, budgets_of_pod, evictions_allowed
from spinney.scheduler.intake.numa_zones import containers_of, numa_of, zones_of_pod
from spinney.scheduler.intake.pod_constraints import picks_namespaces
from spinney.scheduler.service.bind_backoff import BindBackoff
from spinney.scheduler.service.default_scheduler import StandIn
from spinney.scheduler.service.device_claims import DeviceClaims
from spinney.scheduler.service.intentions import Intentions
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.views import Views
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import DeviceRequest, TaskSpec
from spinney.scheduler.state.tasks import Triple

_BY_GROUP = "scheduler/group"
_BY_NAMESPACE = "scheduler/namespace"
_BY_NODE = "scheduler/node"


def _group_key(pod: Pod) -> Iterable[str]:
    name = pod.metadata.annotations.get(labels.POD_GROUP)
    return (cluster_objects.job_key(pod.namespace, name),) if name else ()


@dataclass(kw_only=True)
class Descriptions:
    """One method per kind: set the spec of an object in the state, or drop it."""

    state: State
    shard: Shard
    views: Views
    clock: Clock
    intentions: Intentions
    backoff: BindBackoff
    claims: DeviceClaims | None
    zones: Cache[NodeResourceTopology] | None
    stand_in: StandIn | None
    budget_changed: Callable[[Key], None]
    stuck_after: float
    # Recent use of a queue, as a part of the cluster's capacity; nothing unless time-based fair share is on.
    usage_of: Callable[[str], Triple] = lambda name: (0.0, 0.0, 0.0)
    # Pods that are described again when any storage object, or any namespace, changes.
    storage_users: set[Key] = field(default_factory=set)
    namespace_users: set[Key] = field(default_factory=set)
    uids: dict[Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views.pods.index(_BY_GROUP, _group_key)
        self.views.budgets.index(_BY_NAMESPACE, lambda budget: (budget.namespace,))
        self.views.attachments.index(_BY_NODE, lambda attachment: (attachment.spec.node_name,))

    def topology(self, name: str) -> None:
        """Set or drop a topology."""
        topology = self.views.topologies.get(name)
        if topology is None:
            self.state.drop_topology(name)
        else:
            self.state.set_topology(cluster_objects.topology_spec(topology))

    def queue(self, name: str) -> None:
        """Set or drop a queue, with its recent usage."""
        queue = self.views.queues.get(name)
        if queue is None or not self.shard.holds(queue):
            self.state.drop_queue(name)
        else:
            self.state.set_queue(cluster_objects.queue_spec(queue, self.usage_of(name)))

    def queues_by_usage(self) -> None:
        """Set every queue whose recent usage has changed."""
        for name, spec in list(self.state.queue_specs.items()):
            if spec.usage != self.usage_of(name) and self.views.queues.get(name) is not None:
                self.queue(name)

    def node(self, name: str) -> None:
        """Set or drop a node, with its devices and NUMA zones."""
        node = self.views.nodes.get(name)
        if node is None or not self.shard.holds(node):
            self.state.drop_node(name)
            return
        spec = cluster_objects.node_spec(node, storage=self.views.storage_nodes.get(name))
        if self.claims is not None:
            served = {**spec.allocatable, **self.claims.extended_on(node)}
            spec = replace(spec, dra_gpus=self.claims.gpus_on(name), allocatable=served)
        reported = self.zones.get(name) if self.zones is not None else None
        self.state.set_node(replace(spec, numa=numa_of(reported)) if reported is not None else spec)

    def attachments(self, node: str) -> None:
        """Set the volumes that are attached to a node."""
        attachments = self.views.attachments.by(_BY_NODE, node)
        self.state.set_attached(node, attached_to(attachments, self.views.storage))

    def group(self, key: Key) -> None:
        """Set or drop a PodGroup."""
        group = self.views.groups.get(key)
        if group is None or not self.shard.holds(group):
            self.state.drop_job(cluster_objects.job_key(*key))
            return
        spec = cluster_objects.job_spec(group, self.views.classes, self.state.topologies)
        if spec.last_start is None:
            pods = self.views.pods.by(_BY_GROUP, spec.key)
            spec = replace(spec, last_start=cluster_objects.first_start(pods))
        self.state.set_job(spec)

    def budget(self, key: Key) -> None:
        """Set how many pods a budget lets go, less the evictions that its status does not count yet."""
        budget = self.views.budgets.get(key)
        if budget is None:
            self.state.drop_budget(f"{key[0]}/{key[1]}")
            return
        name, tasks = budget_key(budget), self.state.tasks
        under_way = sum(uid in tasks and name in tasks[uid].spec.budgets for uid in self.intentions.evictions)
        self.state.set_budget(name, evictions_allowed(budget) - under_way)

    def pod(self, key: Key) -> None:
        """Set or drop a pod that is ours, that the stand-in places, or that is on a node."""
        pod = self.views.pods.get(key)
        known_uid = self.uids.get(key)
        if known_uid is not None and (pod is None or pod.uid != known_uid):
            self._drop(key, known_uid)
        if pod is None:
            return
        ours = pod.spec.scheduler_name == self.shard.scheduler_name
        stood_in_for = self.stand_in.describe(pod) if self.stand_in is not None and not ours else ""
        if not ours and not stood_in_for and not pod.spec.node_name:
            if known_uid is not None:
                self._drop(key, pod.uid)
            return
        self.uids[key] = pod.uid
        spec = self.task(key, pod, None if ours else stood_in_for)
        self._recount_budgets(spec)
        if spec.status & (st.SUCCEEDED | st.FAILED) and not spec.job:
            self.state.drop_task(pod.uid)
        else:
            self.state.set_task(spec)

    def task(self, key: Key, pod: Pod, job: str | None = None) -> TaskSpec:
        """The spec of a pod, with what its storage, claims and budgets ask for."""
        request = self._bind_of(key, pod)
        requests, reach = self._reach(key, pod)
        if picks_namespaces(pod):
            self.namespace_users.add(key)
        else:
            self.namespace_users.discard(key)
        now = self.clock.now()
        spec = pod_tasks.task_spec(
            pod, request, now, job=job, reach=reach, select=self._namespaces, stuck_after=self.stuck_after
        )
        if requests:
            spec = replace(spec, claims=requests)
        if self.zones is not None:
            spec = replace(spec, numa_zones=zones_of_pod(pod, request), containers=containers_of(pod))
        if volumes := attached_by(pod, self.views.storage):
            spec = replace(spec, volumes=volumes, constraints=replace(spec.constraints, attaches=True))
        if budgets := budgets_of_pod(pod, self.views.budgets.by(_BY_NAMESPACE, pod.namespace)):
            spec = replace(spec, budgets=budgets)
        if self.backoff.active(pod.uid):
            spec = pod_tasks.in_backoff(spec)
        elif failed_on := self.backoff.failed_nodes(pod.uid):
            spec = pod_tasks.avoiding(spec, failed_on, len(self.state.nodes.rows))
        return pod_tasks.releasing(spec) if pod.uid in self.intentions.evictions else spec

    def _namespaces(self, selector: LabelSelector) -> list[str]:
        return [namespace.name for namespace in self.views.namespaces if matches(selector, namespace.metadata.labels)]

    def _recount_budgets(self, spec: TaskSpec) -> None:
        """Recount the budgets of a pod that changed: pending evictions count against them."""
        task = self.state.tasks.get(spec.uid)
        for name in {*spec.budgets, *(task.spec.budgets if task is not None else ())}:
            namespace, _, budget = name.partition("/")
            self.budget_changed((namespace, budget))

    def _reach(self, key: Key, pod: Pod) -> tuple[tuple[DeviceRequest, ...], Reach | None]:
        """The pod's device requests, and the nodes that claims and storage allow; None once it has a node."""
        requests: tuple[DeviceRequest, ...] = ()
        devices = Reach()
        if self.claims is not None and pod.spec.resource_claims:
            requests, devices = self.claims.requests(pod)
        if pod.spec.node_name or not (needs_storage(pod) or requests or devices.impossible):
            self.storage_users.discard(key)
            return requests, None
        self.storage_users.add(key)
        return requests, reach_of(pod, self.views.storage).narrowed(devices)

    def _bind_of(self, key: Key, pod: Pod) -> BindRequest | None:
        """The pending BindRequest of a pod: the one in the cache, else the one that is being written."""
        if pod.metadata.deletion_timestamp is not None:
            self.intentions.pod_gone(key, pod.uid)
            self.backoff.forget(pod.uid)
            return None
        if pod.spec.node_name:
            self.intentions.bind_seen(key)
            self.backoff.forget(pod.uid)
            return None
        seen = self.views.requests.get(key)
        if seen is not None and is_for(seen, pod):
            self.intentions.bind_seen(key)
            return None if has_failed(seen) else seen
        return self.intentions.bind_of(key)

    def _drop(self, key: Key, uid: str) -> None:
        task = self.state.tasks.get(uid)
        self.state.drop_task(uid)
        self.uids.pop(key, None)
        self.storage_users.discard(key)
        self.namespace_users.discard(key)
        self.intentions.pod_gone(key, uid)
        self.backoff.forget(uid)
        if self.claims is not None:
            self.claims.pod_gone(uid)
        if self.stand_in is not None and task is not None:
            self.stand_in.forget(task.spec.job)
