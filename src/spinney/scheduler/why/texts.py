"""Render reasons as the sentences of conditions, events and messages, in upstream's words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from spinney.api import reasons
from spinney.api.missing import Missing
from spinney.api.numbers import number
from spinney.api.times import rfc3339
from spinney.scheduler.state.problems import (
    HeldBack,
    LeftAside,
    NodeRefusal,
    NoDomain,
    NoQueue,
    NoRoom,
    NotFound,
    NotReady,
    OverLimit,
    OverQuota,
    Problem,
    QueueKept,
    Reserved,
    UnknownTopology,
)
from spinney.scheduler.state.refusal import Code

UNITS = (("CPU cores", "cores", 1000.0), ("memory", "GB", 1e9), ("GPUs", "GPUs", 1.0))
DEFAULT = "Unable to schedule podgroup"
PODS = "PodSchedulingErrors"


def reason(problem: Problem) -> str:
    """The machine-readable reason of a problem, as conditions carry it."""
    match problem:
        case OverLimit():
            return reasons.OVER_LIMIT
        case OverQuota():
            return reasons.NON_PREEMPTIBLE_OVER_QUOTA
        case HeldBack():
            return reasons.PREEMPTION_DELAY_NOT_ELAPSED
        case NoQueue():
            return reasons.QUEUE_DOES_NOT_EXIST
        case _:
            return PODS


def message(problem: Problem) -> str:
    """A problem in words."""
    match problem:
        case OverLimit():
            return over_limit(problem)
        case OverQuota():
            return over_quota(problem)
        case NoDomain():
            return _no_domain(problem)
        case NoRoom():
            return _no_room(problem)
        case UnknownTopology(topology, level):
            return f"Requested topology {topology} does not {f'contain level {level}' if level else 'exist'}"
        case HeldBack(delay, until):
            return (
                f"Workload is within its preemption delay window ({delay:g}s) and may not trigger evictions "
                f"before {moment(until)}"
            )
        case NoQueue():
            return _no_queue(problem)
        case NotReady(ready, required, gated):
            held = f", {gated} more are gated" if gated else ""
            return f"Job is not ready for scheduling. Waiting for {required} pods, currently {ready} exist{held}"
        case Reserved(nodes, since):
            return f"{nodes} nodes are kept for this gang since {moment(since)}; it starts when all of it fits on them"
        case QueueKept():
            return _queue_kept(problem)
        case LeftAside(error):
            return f"the scheduler failed on this gang and leaves it out until it changes: {error}"
        case NotFound(action, steps):
            return f"{action}: not found in {steps} steps"


def job_message(problems: Iterable[Problem]) -> str:
    """Everything that keeps a job waiting, in one text."""
    all_problems = list(problems)
    head = reason(all_problems[0]) if len(all_problems) == 1 else DEFAULT
    return "".join([f"\n{head}.", *sorted(f"\n{message(problem)}." for problem in all_problems)])


def over_limit(problem: OverLimit) -> str:
    """The sentence for a queue at its limit."""
    name, unit, size = UNITS[problem.resource]
    wanted = problem.wanted[problem.resource]
    return (
        f"{problem.queue} quota has reached the allowable limit of {name}. "
        f"Limit is {number(problem.limit / size)} {unit}, currently {number(problem.held / size)} {unit} "
        f"allocated and workload requested {number(wanted / size)} {unit}"
    )


def over_quota(problem: OverQuota) -> str:
    """The sentence for a non-preemptible workload beyond its queue's quota."""
    name, unit, size = UNITS[problem.resource]
    resource = "GB memory" if name == "memory" else name
    wanted = problem.wanted[problem.resource]
    return (
        f"Non-preemptible workload is over quota. Workload requested {number(wanted / size)} {resource}, "
        f"but {problem.queue} quota is {number(problem.quota / size)} {unit}, while {number(problem.held / size)} "
        f"{unit} are already allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )


def refusal(cause: NodeRefusal) -> str:
    """Why a node refuses a task, in upstream's words; {0} is the subject, {1} the detail."""
    match cause:
        # What a share of a GPU costs its queue depends on the node.
        case OverLimit() | OverQuota():
            return f"node does not have enough capacity. Reason: {reason(cause)}, Details: {message(cause)}"
        case Missing():
            return str(cause)
        case (Code.RESOURCE, subject, _):
            return _REFUSALS[Code.RESOURCE].format(_RESOURCES.get(subject, subject))
        case (code, subject, detail):
            return _REFUSALS[code].format(subject, detail)


_RESOURCES = {"cpu": "CPU cores", "memory": "memory", "gpu": "GPUs"}
_REFUSALS = {
    Code.NODE_DELETED: "node is being deleted",
    Code.NODE_UNSCHEDULABLE: "node is unschedulable",
    Code.NODE_NOT_READY: "node is not ready",
    Code.NODE_PRESSURE: "node has {0}",
    Code.TAINT: "node(s) had untolerated taint {{{0}: {1}}}",
    Code.NODE_AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    Code.POD_AFFINITY: "node(s) didn't match pod affinity rules",
    Code.WORKER_KIND: "node(s) are no {0} workers",
    Code.VOLUME_AFFINITY: "node(s) had volume node affinity conflict",
    Code.VOLUME_COUNT: "node(s) exceed max volume count",
    Code.POD_SLOTS: "node(s) pod number exceeded",
    Code.RESERVED: "node(s) are kept for a gang that has waited longer",
    Code.NUMA: "node(s) cannot align the pod's resources to NUMA zones",
    Code.DEVICES: "node(s) do not have the devices of the pod's claims",
    Code.CLAIM_CONSUMERS: "resource claim {0} has reached its maximum number of consumers (256)",
    Code.GPU_MEMORY_UNKNOWN: "node(s) have no known GPU memory",
    Code.SHARED_ON_CLAIMED_GPUS: "shared GPUs are not supported on nodes whose GPUs are claimed",
    Code.MIG_ON_PLAIN_NODE: "MIG job cannot be scheduled on non-MIG node",
    Code.MIG_SINGLE: "only whole gpu jobs can run on a node with MigStrategy='single'",
    Code.MIG_MIXED: "non MIG jobs cant run on a node with MigStrategy='mixed'",
    Code.MIG_BY_ANNOTATION: "MIG by annotation is not scheduled any more",
    Code.MIG_BY_ANNOTATION_ON_NODE: "node(s) run MIG jobs by annotation",
    Code.RESOURCE: "node(s) didn't have enough resources: {0}",
    Code.MIG_PROFILE: "node(s) didn't have enough of mig profile: {0}",
    Code.GPU_MEMORY: "node(s) didn't have enough resources: GPU memory",
    Code.OTHER: "{0}",
}


def _no_queue(problem: NoQueue) -> str:
    if problem.missing:
        return (
            f"Queue {problem.queue} cannot be used: the queue {problem.missing} above it does not exist, "
            "or is not in the same node pool"
        )
    if problem.has_children:
        return f"Queue {problem.queue} holds other queues: workloads belong into one of those"
    return f"Queue {problem.queue} does not exist"


def _queue_kept(problem: QueueKept) -> str:
    name, unit, size = UNITS[problem.resource]
    return (
        f"What queue {problem.queue} has left of {name} is kept for a gang that has waited longer: "
        f"{number(problem.held / size)} of {number(problem.bound / size)} {unit} are allocated and workload requested "
        f"{number(problem.wanted[problem.resource] / size)} {unit}"
    )


def moment(when: float) -> str:
    return rfc3339(datetime.fromtimestamp(when, UTC))


def _no_domain(problem: NoDomain) -> str:
    group = f", subgroup {problem.group}" if problem.group not in ("", "default") else ""
    constraint = problem.constraint
    text = (
        f"topology {constraint.topology}, requirement {constraint.required} couldn't be satisfied for "
        f"job <{problem.job}>{group}"
    )
    return f"{text}: not enough resources in {problem.short} to allocate the job" if problem.short else text


def _no_room(problem: NoRoom) -> str:
    nodes = no_nodes(problem)
    if not problem.gang:
        return f"Resources were not found for pod {problem.task} due to: {nodes}"
    if not problem.subgroups:
        return (
            f"Resources were found for {problem.found} pods while {problem.required} are required for gang scheduling. "
            f"Additional pods cannot be scheduled due to: {nodes}"
        )
    return (
        f"Resources were found for {problem.found} pods from all sub-groups while sub-group {problem.group} requires "
        f"{problem.required} pods for gang scheduling. Additional pods cannot be scheduled in this sub-group due to: "
        f"{nodes}"
    )


def no_nodes(problem: NoRoom) -> str:
    """Why no node takes a pod: each reason with its number of nodes."""
    refused = ". \n".join(sorted(f"{count} {refusal(reason_of_node)}" for reason_of_node, count in problem.refusals))
    base = "no nodes with enough resources were found"
    return f"{base}: {refused}." if refused else base


def sentence_case(text: str) -> str:
    """Text as a sentence, with a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."
