"""Advice: the smallest change that would let a waiting gang run."""

from __future__ import annotations

from spinney.api.missing import Lack, Missing
from spinney.api.numbers import number
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
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.why.texts import UNITS

# How to provide what the pod needs and no node can give; {0} is the subject.
_MISSING = {
    Lack.CONFIG_MAP: "create configmap {0}",
    Lack.VOLUME_CLAIM: "create persistentvolumeclaim {0}",
    Lack.VOLUME_CLAIM_DELETED: "create persistentvolumeclaim {0} anew once it is gone",
    Lack.VOLUME_CLAIM_UNBOUND: "provide volumes for the pod's claims, "
    "or name a storage class that waits for its first consumer",
    Lack.VOLUME: "create persistentvolume {0}",
    Lack.RESOURCE_CLAIM: "create resource claim {0}",
    Lack.RESOURCE_CLAIM_FROM_TEMPLATE: "create the resource claim behind {0}",
    Lack.DEVICE_CLASS: "create device class {0}",
    Lack.DEVICE_SELECTOR: "correct this CEL expression",
}
_THAT_IT_CHOOSES = " that its node selector and affinity allow"
# How to make nodes that have room take the task.
_REFUSED = {
    Code.TAINT: "tolerate the taint {0}, or take it off {nodes}",
    Code.NODE_AFFINITY: "relax the pod's node selector or affinity, or label {nodes} accordingly",
    Code.POD_AFFINITY: "relax the pod's rules about other pods, which rule out {all}",
    Code.NODE_UNSCHEDULABLE: "uncordon {nodes}",
    Code.WORKER_KIND: "mark {nodes} as a {0} worker",
    Code.NODE_NOT_READY: "repair {nodes}",
    Code.NODE_PRESSURE: "repair {nodes}",
    Code.VOLUME_AFFINITY: "free or add room where the pod's volumes can be reached",
    Code.VOLUME_COUNT: "detach volumes from {nodes}",
    Code.POD_SLOTS: "free pod slots on {nodes}",
    Code.GPU_MEMORY_UNKNOWN: "label {nodes} with the memory of their GPUs",
    Code.RESERVED: "wait until that gang has started",
}


def advice(problem: Problem) -> str:
    """What to do about a problem; empty if there is no advice."""
    match problem:
        case OverLimit():
            return f"raise the limit of queue {problem.queue} by {_amount(problem.resource, problem.short)}"
        case OverQuota():
            return (
                f"raise the quota of queue {problem.queue} by {_amount(problem.resource, problem.short)}, "
                "or make the workload preemptible"
            )
        case NoRoom():
            return _room(problem)
        case NoDomain():
            return _domain(problem)
        case UnknownTopology(topology, level):
            return f"create topology {topology}" if not level else f"add level {level} to topology {topology}"
        case NoQueue(queue, missing, has_children):
            if missing:
                return f"create queue {missing}, or give it the node pool label of queue {queue}"
            return "name a queue that has none below it" if has_children else f"create queue {queue}"
        case NotReady(ready, required, gated):
            more = required - ready
            pods = counted(more, "more pod")
            return f"{pods} must exist without a scheduling gate" + (f" ({gated} are gated)" if gated else "")
        case HeldBack():
            return "wait until the preemption delay is over, or shorten it"
        case Reserved():
            return "wait: tasks on these nodes end, or leave as soon as that is enough; free them to start it at once"
        case QueueKept():
            return "wait until the other gang has started, or make the workload preemptible"
        case LeftAside():
            return "report it with the file of `spinney snapshot save`: this is a fault of the scheduler"
        case NotFound():
            return ""


def eviction_helps(problem: NoRoom) -> bool:
    """Whether the eviction of others could make room: some node lacks just that."""
    refusals = [refusal for refusal, _ in problem.refusals]
    if problem.too_large or any(isinstance(refusal, Missing) for refusal in refusals):
        return False
    return not all(isinstance(refusal, Refusal) and refusal.code in _REFUSED for refusal in refusals)


def is_curable(refusal: NodeRefusal) -> bool:
    """Whether nodes that have room refuse for a reason that can be taken away."""
    return isinstance(refusal, Refusal) and code_of(refusal) in _REFUSED


def code_of(refusal: Refusal) -> Code:
    """The code that advice goes by: pods are a resource to a node, and slots to a reader."""
    return Code.POD_SLOTS if refusal[:2] == (Code.RESOURCE, "pods") else refusal.code


def is_too_large(problem: NoRoom) -> bool:
    """Whether the pod is larger than any node; not where nodes do not say how large their GPUs are."""
    return problem.too_large and all(refusal != Refusal(Code.GPU_MEMORY_UNKNOWN) for refusal, _ in problem.refusals)


def _room(problem: NoRoom) -> str:
    for refusal, _ in problem.refusals:
        if isinstance(refusal, Missing):
            return _MISSING[refusal.lack].format(refusal.name)
    # A pod beyond the minimum starts alone.
    pods = max(problem.required - problem.found, 1) if problem.gang else 1
    more = "1 more pod with" if pods == 1 else f"{counted(pods, 'more pod')}, each with"
    each = f"{more} {needs(problem)} on one node{_THAT_IT_CHOOSES if problem.selective else ''}"
    if is_too_large(problem):
        return f"no node is large enough, even an empty one: add nodes for {each}, or ask for less"
    room = f"free or add room for {each}"
    cures = [
        (count, _cure(refusal, count, pods))
        for refusal, count in problem.refusals
        if isinstance(refusal, Refusal) and is_curable(refusal)
    ]
    return f"{max(cures)[1]}; else {room}" if cures else room


def _cure(refusal: Refusal, count: int, pods: int) -> str:
    every = "the node that has room" if count == 1 else f"{count} nodes that have room"
    some = "one" if pods == 1 else "enough"
    nodes = every if count == 1 else f"{some} of {every}"
    return _REFUSED[code_of(refusal)].format(refusal.subject, nodes=nodes, all=every)


def _domain(problem: NoDomain) -> str:
    level, tasks, topology = problem.constraint.required, problem.tasks, problem.constraint.topology
    # Where all domains together are too small, a preference is no more use than a requirement.
    relax = f", or ask for {level} as preferred instead of required" if level and not problem.short else ""
    if problem.best < 0:
        return f"free or add room inside one {level or topology}{relax}"
    if not problem.domain:
        return f"no node has the labels of topology {topology} down to {level}: label them{relax}"
    more = tasks - problem.best
    if not level:
        return f"the nodes of topology {topology} hold {problem.best} of {tasks} pods: free or add room for {more} more"
    if more <= 0:
        return f"free room for {counted(tasks, 'pod')} in the {level} where the rest of its gang is{relax}"
    if problem.most < tasks:
        return (
            f"the largest {level} holds {problem.most} of {tasks} pods even when nothing else runs there: "
            f"add nodes for {more} more to {problem.domain}{relax}"
        )
    return (
        f"the best {level} ({problem.domain}) holds {problem.best} of {tasks} pods: "
        f"free room for {more} more there{relax}"
    )


def needs(problem: NoRoom) -> str:
    """What one more pod asks of a node."""
    parts = [_amount(resource, amount) for resource, amount in enumerate(problem.needed) if amount]
    parts += [f"{problem.gpu_memory} MiB of a GPU"] if problem.gpu_memory else []
    return ", ".join(reversed(parts)) or "a free pod slot"


def _amount(resource: int, amount: float) -> str:
    name, unit, size = UNITS[resource]
    return f"{number(amount / size)} GB of {name}" if unit == "GB" else counted(amount / size, unit.removesuffix("s"))


def counted(amount: float, what: str) -> str:
    """An amount with its noun, in singular or plural."""
    return f"{number(amount)} {what if amount == 1 else f'{what}s'}"
