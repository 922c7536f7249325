"""The rules that hold at any time, whatever goes wrong; those at rest are in `invariants_at_rest`.

Each rule is a function that yields a sentence per violation. What it computes, it computes from pods and nodes by
itself, not with the code of the component that the rule is about.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup, Queue
from spinney.api.quantity import milli
from spinney.api.resource import ResourceClaim
from spinney.sim.faults.groups import FIXED, is_below_minimum, members, queue_of
from spinney.sim.faults.observed import (
    Observed,
    fraction,
    gpus,
    group_key,
    holds_resources,
    is_live,
    is_waiting,
    shared_gpus,
    wanted,
)

# A write and the news of it take at most so long between two processes without other faults.
_NEWS_SECONDS = 0.03

# A rule about the pod that changed.
Always = Callable[[Observed, Pod], Iterator[str]]


def no_node_over_capacity(seen: Observed, pod: Pod) -> Iterator[str]:
    """The pods of a node never request more than it has: GPUs, CPU, memory, pods."""
    node = seen.get(Node, ("", pod.spec.node_name))
    if node is None or not holds_resources(pod):
        return
    used: Counter[str] = Counter()
    for other in seen.of(Pod):
        if other.spec.node_name == node.name and holds_resources(other):
            used.update(wanted(other))
    for resource, amount in sorted(used.items()):
        capacity = milli(node.status.allocatable.get(resource, "0"))
        if amount > capacity:
            yield f"node {node.name} has {capacity / 1000:g} {resource}, its pods request {amount / 1000:g}"


def no_shared_gpu_over_capacity(seen: Observed, pod: Pod) -> Iterator[str]:
    """The shares of one GPU never add up to more than the GPU."""
    for group in shared_gpus(pod) if holds_resources(pod) else ():
        shares = sum(
            fraction(other) for other in seen.of(Pod) if group in shared_gpus(other) and holds_resources(other)
        )
        if shares > 1000:
            yield f"GPU {group} is shared out to {shares / 1000:g}"


def no_pod_bound_twice(seen: Observed, pod: Pod) -> Iterator[str]:
    """Of one place in a clique there is never a second pod that is bound while the first goes on running."""
    place = (pod.metadata.labels.get(labels.PODCLIQUE), pod.metadata.labels.get(labels.POD_INDEX))
    if None in place or not pod.spec.node_name or not is_live(pod):
        return
    for other in seen.of(Pod):
        same = other.metadata.labels.get(labels.PODCLIQUE), other.metadata.labels.get(labels.POD_INDEX)
        if same == place and other.uid != pod.uid and other.spec.node_name and is_live(other):
            yield f"{pod.name} and {other.name} are both pod {place[1]} of {place[0]}, and both are bound"


def no_gated_pod_bound(seen: Observed, pod: Pod) -> Iterator[str]:
    """A pod with a scheduling gate has no node."""
    if pod.spec.node_name and pod.spec.scheduling_gates:
        yield f"{pod.name} is on {pod.spec.node_name} and gated by {pod.spec.scheduling_gates[0].name}"


def queue_limits_held(seen: Observed, pod: Pod) -> Iterator[str]:
    """Bound pods of a queue and of those below it never have more GPUs than its limit."""
    if not holds_resources(pod):
        return
    used: Counter[str] = Counter()
    parents = {queue.name: queue.spec.parent_queue for queue in seen.of(Queue)}
    for other in seen.of(Pod):
        if is_live(other) and holds_resources(other):
            queue = queue_of(seen, other)
            while queue:
                used[queue] += gpus(other)
                queue = parents.get(queue, "")
    for each in seen.of(Queue):
        limit = each.spec.resources.gpu.limit if each.spec.resources is not None else -1
        if 0 < limit * 1000 < used[each.name]:
            yield f"queue {each.name} is limited to {limit:g} GPUs, its pods have {used[each.name] / 1000:g}"


def quota_holds_for_non_preemptible_pods(seen: Observed, pod: Pod) -> Iterator[str]:
    """Bound pods that must not be preempted never have more GPUs than the quota of their queue."""
    own = queue_of(seen, pod)
    queue = seen.get(Queue, ("", own))
    if queue is None or queue.spec.resources is None or queue.spec.resources.gpu.quota < 0:
        return
    fixed = {group.key for group in seen.of(PodGroup) if group.spec.queue == own and group.spec.preemptibility == FIXED}
    used = sum(gpus(other) for other in seen.of(Pod) if holds_resources(other) and group_key(other) in fixed)
    if used > 1000 * queue.spec.resources.gpu.quota:
        yield f"queue {own} has a quota of {queue.spec.resources.gpu.quota:g} GPUs, its fixed pods have {used / 1000:g}"


def required_topology_held(seen: Observed, pod: Pod) -> Iterator[str]:
    """Bound pods of a group that must stay in one domain are in one."""
    group = seen.get(PodGroup, group_key(pod))
    level = group.spec.topology_constraint.required_topology_level if group and group.spec.topology_constraint else ""
    if group is None or not level:
        return
    nodes = {node.name: node.metadata.labels.get(level, "") for node in seen.of(Node)}
    domains = {nodes.get(other.spec.node_name, "") for other in members(seen, group) if holds_resources(other)}
    if len(domains) > 1:
        yield f"PodGroup {group.name} must stay in one {level}, and is in {', '.join(sorted(domains))}"


def evicted_for_somebody(seen: Observed, pod: Pod) -> Iterator[str]:
    """The scheduler evicts a pod only while another gang waits, or the pod's own gang is below its minimum.

    That a gang has stopped waiting may reach the scheduler only after the eviction is on its way.
    """
    own = group_key(pod)
    group = seen.get(PodGroup, own)
    if group is None or is_below_minimum(seen, group):
        return
    latest = asyncio.get_running_loop().time() - _NEWS_SECONDS
    waiting = {group_key(other) for other in seen.of(Pod) if is_waiting(other)}
    waiting |= {key for key, moment in seen.waited.items() if moment >= latest}
    if not any(name for _, name in waiting - {own}):
        yield f"{pod.name} is evicted, and nobody waits"


def no_device_allocated_twice(seen: Observed, claim: ResourceClaim) -> Iterator[str]:
    """No two claims have the same device; which of equal devices a claim has means nothing."""
    own = set(_devices(claim))
    for other in seen.of(ResourceClaim):
        if other.uid != claim.uid and (shared := own.intersection(_devices(other))):
            yield f"claims {claim.name} and {other.name} both have {', '.join(map(' '.join, sorted(shared)))}"


def _devices(claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield result.pool, result.device


ALWAYS: tuple[Always, ...] = (
    no_node_over_capacity,
    no_shared_gpu_over_capacity,
    no_pod_bound_twice,
    no_gated_pod_bound,
    queue_limits_held,
    quota_holds_for_non_preemptible_pods,
    required_topology_held,
)
AT_EVICTIONS: tuple[Always, ...] = (evicted_for_somebody,)
AT_CLAIMS: tuple[Callable[[Observed, ResourceClaim], Iterator[str]], ...] = (no_device_allocated_twice,)
