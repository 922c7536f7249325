"""Explain workloads, gangs, pods, queues, nodes and evictions: the blocker first, then numbers and advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as replaced

from msgspec.structs import replace

from spinney.answers.capacity import reason_of_node
from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.evictions import evictions
from spinney.answers.finding import Match, find
from spinney.answers.model import Eviction, Explanation, Queue, Reason, Workload
from spinney.answers.nodes import node_of, pods_by_node
from spinney.answers.other_schedulers import problems_of
from spinney.answers.queues import queues
from spinney.answers.remedies import remedy
from spinney.answers.why import of_surplus, reason_of, unplaced, why
from spinney.answers.workloads import Prospects, parts_of, prospects_of, workload_of
from spinney.api.numbers import number
from spinney.api.untyped import Untyped
from spinney.scheduler.intake.cluster_objects import job_key
from spinney.scheduler.why.advice import counted
from spinney.scheduler.why.blocker import sentence
from spinney.scheduler.why.explanation import explain_job
from spinney.scheduler.why.texts import sentence_case


def explanations(cluster: Cluster, kind: str, name: str, namespace: str) -> list[Explanation]:
    """Everything of that kind and name; empty if there is nothing of the name."""
    explained: list[Explanation] = []
    if kind not in ("queue", "node", "eviction"):
        prospects = prospects_of(cluster)
        explained += [_workload(cluster, subject, prospects) for subject in find(cluster, kind, name, namespace)]
    if kind in ("", "queue"):
        explained += _queue(cluster, name)
    if kind in ("", "node"):
        explained += _node(cluster, name)
    if kind in ("", "eviction") and not explained:
        explained += _evictions(cluster, name, namespace)
    return explained


def _workload(cluster: Cluster, subject: Match, prospects: Prospects) -> Explanation:
    parts = subject.parts
    workload = workload_of(cluster, parts, prospects)
    surplus = workload.phase == "Running" and bool(unplaced(parts.pods))
    waits = workload.phase in _NOT_THERE or surplus
    reason = why(cluster, parts.owner.object, parts.pods, parts.groups) if waits else workload.why
    keys = [job_key(group.namespace, group.name) for group in parts.groups]
    tried = False
    if reason is not None and cluster.schedule is not None:
        reason, tried = _tried(cluster.schedule, keys, reason)
    if reason is not None and surplus:
        reason = of_surplus(reason, parts.pods)
    lines = [_head(subject, workload)]
    if reason is not None:
        lines += [f"  {reason.text}", *(f"    → {step}" for step in reason.advice)]
    lines += [f"  {line}" for line in problems_of(cluster, parts.pods)]
    lines += [f"  {line}" for line in (*_prospect(workload), *_priority(cluster, workload))]
    if cluster.schedule is not None:
        lines += _details(cluster.schedule, keys)
    evicted = _own_evictions(cluster, subject)
    lines += _failure(subject, was_evicted=bool(evicted))
    lines += [f"  {_evicted(each)}" for each in evicted]
    return Explanation(
        subject=f"{subject.kind}/{subject.name}", why=reason, advice_tried=tried, sentences=lines, workload=workload
    )


_NOT_THERE = ("Waiting", "Starting", "Terminating")


def _tried(schedule: Schedule, keys: Sequence[str], reason: Reason) -> tuple[Reason, bool]:
    """The reason with advice that was tried in the scheduler, where its plan is what holds the workload."""
    for key in keys:
        if key not in schedule.plan.problems or not schedule.state.jobs[key].pending:
            continue
        cure = remedy(schedule, key)
        steps = [sentence_case(step) for step in cure.steps]
        if not steps:
            return reason, False
        if cure.is_shared:
            steps.append("Others that wait take some of that room first, so it needs more.")
        if cure.left is not None and len(steps) > 1:
            steps.append(sentence_case(f"even then: {sentence(cure.left)}"))
        # What was tried says which blocker decides.
        return replace(reason_of(cure.problems[0]), advice=steps), cure.is_enough
    return reason, False


def _head(subject: Match, workload: Workload) -> str:
    who = [f"queue {workload.queue}"] if workload.queue else []
    priority = workload.priority if workload.priority is not None else workload.priority_class or "unknown"
    who += [f"priority {priority}", f"scheduler {workload.scheduler or 'none'}"]
    needed = f", {workload.minimum} needed together" if workload.minimum is not None else ""
    count = f"{workload.placed} of {counted(workload.total, 'pod')} placed{needed}"
    return f"{subject.kind}/{subject.name} ({', '.join(who)}) is {workload.phase.lower()}: {count}."


def _prospect(workload: Workload) -> Iterator[str]:
    if workload.line is not None:
        yield f"Place {workload.line} in the line of queue {workload.queue}."
    start = workload.expected_start
    if start is not None:
        when = f"{start.at} ({start.sureness})" if start.at else "unknown"
        yield f"Expected start: {when}: {start.text}."


def _priority(cluster: Cluster, workload: Workload) -> Iterator[str]:
    name = workload.priority_class
    # Pods that name it themselves are refused, and `why` says so; a gang only counts as of the default priority.
    if (
        name
        and workload.scheduler
        and not cluster.unread("PriorityClass")
        and all(each.name != name for each in cluster.classes)
    ):
        yield f"PriorityClass {name} does not exist: priority {workload.priority} counts instead."


def _details(schedule: Schedule, keys: Sequence[str]) -> list[str]:
    """What else the scheduler knows: which pods are protected from eviction, and which nodes are reserved."""
    lines: list[str] = []
    for key in keys:
        if key in schedule.state.jobs and schedule.state.jobs[key].pending:
            story = replaced(explain_job(schedule.state, schedule.plan, key), problems=())
            lines += story.sentences()[1:]
    return lines


def _failure(subject: Match, *, was_evicted: bool) -> Iterator[str]:
    """What a workload that failed says about it, and how evictions are kept from counting as failures of a Job."""
    item = subject.parts.owner.object
    conditions = item.status.get("conditions") or () if isinstance(item, Untyped) else ()
    for each in conditions:
        if each.get("type") == "Failed" and each.get("status") == "True":
            yield f"  It failed ({each.get('reason', '')}): {each.get('message', '')}"
            if was_evicted and each.get("reason") == "BackoffLimitExceeded":
                yield "    → Evicted pods count as failed: let its podFailurePolicy ignore pods with DisruptionTarget."


def _own_evictions(cluster: Cluster, subject: Match) -> list[Eviction]:
    ref = subject.parts.owner.ref
    return [
        each
        for each in evictions(cluster, ref.namespace).items
        if each.workload is not None and (each.workload.kind, each.workload.name) == (ref.kind, ref.name)
    ][:5]


def _evicted(eviction: Eviction) -> str:
    lost = f" {number(eviction.gpu_hours_lost)} GPU-hours of work were lost." if eviction.gpu_hours_lost else ""
    return f"{eviction.at}: {eviction.text}.{lost}"


def _evictions(cluster: Cluster, name: str, namespace: str) -> list[Explanation]:
    """What became of a pod that is gone; the ledger names it with its namespace."""
    pod = name if "/" in name else f"{namespace}/{name}"
    return [
        Explanation(subject=f"eviction/{name}", sentences=[_evicted(each), *_right(each)])
        for each in evictions(cluster, pod.partition("/")[0]).items
        if each.pod == pod
    ]


def _right(eviction: Eviction) -> list[str]:
    """The right that an eviction was by, and how to keep a workload from it."""
    lines = [f"  {_RIGHTS[eviction.right]}"] if eviction.right in _RIGHTS else []
    if eviction.alternatives is not None:
        count = counted(eviction.alternatives, "other gang") if eviction.alternatives else "No other gang"
        order = _ORDERS.get(eviction.right, "") if eviction.alternatives else ""
        lines.append(f"  {count} could have given way by the same right{order}.")
    return lines


# In which order gangs give way.
_ORDERS = {
    "reclaim": ": the queue that borrows most gives first, and in it the lowest priority",
    "preempt": ": the lowest priority gives first",
}


_RIGHTS = {
    "reclaim": "Its queue held more than its fair share. Workloads within the quota of their queue are not reclaimed.",
    "preempt": "A gang of higher priority in the same queue needed its place. A higher priority, or preemptibility "
    "non-preemptible, protects from that.",
    "consolidate": "It was moved so that a gang fits; it starts elsewhere.",
    "stale-gang": "Its gang had run below its minimum for longer than its grace period.",
}


def _queue(cluster: Cluster, name: str) -> list[Explanation]:
    listed = queues(cluster).items
    queue = next((each for each in listed if each.name == name), None)
    if queue is None:
        return []
    lines = [
        f"queue {name} holds {_gpus(queue.allocated.gpu)}; its fair share is {_gpus(queue.fair_share.gpu)}, its quota "
        f"{_gpus(queue.quota.gpu)}, its limit {_gpus(queue.limit.gpu)}.",
        f"  {_gpus(queue.requested.gpu)} are waited for in it; {_gpus(queue.borrowed.gpu)} of those it holds are "
        "borrowed and may be reclaimed.",
    ]
    if queue.problem:
        lines.insert(1, f"  {sentence_case(queue.problem)}")
    below = _below(listed, name)
    lines += [
        f"  {counted(child.waiting, 'gang')} {'waits' if child.waiting == 1 else 'wait'} in {child.name}, which holds "
        f"{_gpus(child.allocated.gpu)}."
        for child in listed
        if child.name in below and child.waiting and not _below(listed, child.name)
    ]
    lines += _waiting_in(cluster, {name, *below})
    return [Explanation(subject=f"queue/{name}", sentences=lines)]


def _below(listed: Sequence[Queue], name: str) -> set[str]:
    names = {each.name for each in listed if each.parent == name}
    return names | {deeper for child in names for deeper in _below(listed, child)}


def _waiting_in(cluster: Cluster, names: set[str]) -> list[str]:
    prospects = prospects_of(cluster)
    waiting = [
        workload
        for parts in parts_of(cluster).values()
        if any(group.spec.queue in names for group in parts.groups)
        and (workload := workload_of(cluster, parts, prospects)).phase == "Waiting"
    ]
    waiting.sort(key=lambda each: (each.queue, each.line or 0))
    return [
        f"  {each.ref.namespace}/{each.ref} in {each.queue}: {each.why.text if each.why else 'no reason is known'}"
        for each in waiting
    ]


def _gpus(amount: float | None) -> str:
    return "unlimited" if amount is None else counted(amount, "GPU")


def _node(cluster: Cluster, name: str) -> list[Explanation]:
    live = cluster.node_of.get(name)
    if live is None:
        return []
    pods = pods_by_node(cluster).get(name, ())
    node = node_of(cluster, live, pods)
    where = " ".join(node.domain.values())
    lines = [
        f"node {name}{f' in {where}' if where else ''}: {number(node.allocated.gpu or 0)} of "
        f"{_gpus(node.allocatable.gpu)} used by {counted(node.pods, 'pod')}.",
    ]
    if node.problem:
        lines.append(f"  It takes no pods: {node.problem}.")
    lines += [f"  taint {taint.key}={taint.value}:{taint.effect}" for taint in live.spec.taints]
    lines += [f"  {line}" for line in _idle(cluster, name)]
    return [Explanation(subject=f"node/{name}", sentences=lines)]


def _idle(cluster: Cluster, name: str) -> list[str]:
    """Why the node's idle GPUs are idle."""
    text = reason_of_node(cluster, name)
    return [text] if text else []
