"""The dominant blocker of a waiting gang: which of its problems decides, in one short sentence with numbers."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api.missing import Missing
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
from spinney.scheduler.why import texts
from spinney.scheduler.why.advice import code_of, counted, is_curable, is_too_large, needs
from spinney.scheduler.why.texts import UNITS, moment

# A problem further up makes those below it pointless.
_RANK: tuple[type, ...] = (
    LeftAside,
    NoQueue,
    NotReady,
    UnknownTopology,
    OverLimit,
    OverQuota,
    QueueKept,
    NoDomain,
    NoRoom,
    HeldBack,
    Reserved,
    NotFound,
)
# What a node that has room says; {0} is the subject.
_REFUSES = {
    Code.NODE_DELETED: "being deleted",
    Code.NODE_UNSCHEDULABLE: "cordoned",
    Code.NODE_NOT_READY: "not ready",
    Code.NODE_PRESSURE: "under {0}",
    Code.TAINT: "tainted with {0}, which the pod does not tolerate",
    Code.NODE_AFFINITY: "ruled out by the pod's node selector or affinity",
    Code.POD_AFFINITY: "ruled out by rules about other pods",
    Code.WORKER_KIND: "not marked as {0} workers",
    Code.VOLUME_AFFINITY: "out of reach of the pod's volumes",
    Code.VOLUME_COUNT: "at their limit of attached volumes",
    Code.POD_SLOTS: "at their limit of pods",
    Code.RESERVED: "kept for a gang that has waited longer",
    Code.NUMA: "unable to align the pod to their NUMA zones",
    Code.DEVICES: "without the devices of the pod's claims",
    Code.GPU_MEMORY_UNKNOWN: "silent about the memory of their GPUs",
}
# What nodes still say when nothing else runs on them.
_LASTING = (
    Code.NODE_DELETED,
    Code.NODE_UNSCHEDULABLE,
    Code.NODE_NOT_READY,
    Code.NODE_PRESSURE,
    Code.TAINT,
    Code.NODE_AFFINITY,
    Code.WORKER_KIND,
    Code.VOLUME_AFFINITY,
    Code.GPU_MEMORY_UNKNOWN,
)
_RESOURCES = {"cpu": "CPU cores", "memory": "memory", "gpu": "GPUs"}


def dominant(problems: Sequence[Problem]) -> Problem | None:
    """The most important problem; of equals the first."""
    return min(problems, key=lambda problem: _RANK.index(type(problem)), default=None)


def sentence(problem: Problem) -> str:
    """A problem in one sentence, without a full stop."""
    match problem:
        case OverLimit():
            return _bound(problem, "limit", problem.limit)
        case OverQuota():
            bound = _bound(problem, "quota", problem.quota)
            return f"{bound}, and a workload that may not be preempted stays within the quota"
        case NoRoom():
            return _no_room(problem)
        case NoDomain():
            return _no_domain(problem)
        case UnknownTopology(topology, level):
            return f"topology {topology} has no level {level}" if level else f"topology {topology} does not exist"
        case NotReady(ready, required, gated):
            held = f", {gated} held by scheduling gates" if gated else ""
            return f"the gang needs {counted(required, 'pod')} to start and {ready} may be placed{held}"
        case HeldBack(delay, until):
            return f"its preemption delay of {delay:g} s keeps it from evicting others before {moment(until)}"
        case QueueKept(queue, resource, bound, held, _):
            _, unit, size = UNITS[resource]
            left = number((bound - held) / size)
            return f"the {left} {unit} that queue {queue} has left are kept for a gang that has waited longer"
        case NotFound(action, steps):
            return f"{action} found nobody to evict for it in {steps} tries"
        case _:
            return " ".join(texts.message(problem).split())


def is_lasting(problem: Problem) -> bool:
    """Whether a problem stays even if everything else in the cluster ends."""
    match problem:
        case OverLimit():
            return problem.wanted[problem.resource] > problem.limit
        case OverQuota():
            return problem.wanted[problem.resource] > problem.quota
        case NoRoom():
            refusals = [refusal for refusal, _ in problem.refusals]
            return is_too_large(problem) or (bool(refusals) and all(map(_is_lasting_refusal, refusals)))
        case NoDomain():
            return problem.most >= 0 and problem.most < problem.tasks
        case _:
            return isinstance(problem, LeftAside | NoQueue | NotReady | UnknownTopology)


def _is_lasting_refusal(refusal: NodeRefusal) -> bool:
    return isinstance(refusal, Missing) or (isinstance(refusal, Refusal) and code_of(refusal) in _LASTING)


def missing(problem: Problem) -> dict[str, float]:
    """How much of which resource is missing: GPUs, cores, bytes."""
    names = (("cpu", 1000.0), ("memory", 1.0), ("gpu", 1.0))
    match problem:
        case OverLimit() | OverQuota():
            name, size = names[problem.resource]
            return {name: problem.short / size}
        case NoRoom():
            more = max(problem.required - problem.found, 1)
            return {
                name: amount * more / size for (name, size), amount in zip(names, problem.needed, strict=True) if amount
            }
        case _:
            return {}


def _bound(problem: OverLimit | OverQuota, word: str, bound: float) -> str:
    _, unit, size = UNITS[problem.resource]
    wanted = problem.wanted[problem.resource]
    return (
        f"queue {problem.queue} holds {number(problem.held / size)} of its {word} of {number(bound / size)} {unit} "
        f"and the gang asks for {number(wanted / size)}"
    )


def _no_room(problem: NoRoom) -> str:
    return f"{_how_far(problem)}: {_cause(problem)}"


def _how_far(problem: NoRoom) -> str:
    if not problem.gang or problem.required <= 1:
        return "no node takes the pod"
    group = f" of {problem.group}" if problem.subgroups and problem.group else ""
    return f"{problem.found} of {problem.required} pods{group} fit together"


def deciding_refusal(problem: NoRoom) -> NodeRefusal | None:
    """The refusal to tell: what is missing altogether, else what can be cured, else the most frequent."""
    if absent := next((refusal for refusal, _ in problem.refusals if isinstance(refusal, Missing)), None):
        return absent
    curable = [(refusal, count) for refusal, count in problem.refusals if is_curable(refusal)]
    pool = curable or problem.refusals
    return max(pool, key=lambda pair: pair[1])[0] if pool else None


def _cause(problem: NoRoom) -> str:
    refusal = deciding_refusal(problem)
    if refusal is None:
        return f"no node has room for {needs(problem)}"
    if isinstance(refusal, Missing):
        return str(refusal)
    if is_too_large(problem):
        return f"no node is large enough for {needs(problem)}, even an empty one"
    return _refused(refusal, dict(problem.refusals)[refusal], is_curable(refusal))


def _refused(refusal: NodeRefusal, count: int, has_room: bool) -> str:
    nodes = counted(count, "node") + (" with room" if has_room else "")
    match refusal:
        case (Code.RESOURCE, "pods", _):
            return f"{nodes} {'is' if count == 1 else 'are'} {_REFUSES[Code.POD_SLOTS]}"
        case (Code.RESOURCE, subject, _):
            return f"{nodes} {'lacks' if count == 1 else 'lack'} free {_RESOURCES.get(subject, subject)}"
        case (Code.GPU_MEMORY, _, _):
            return f"{nodes} {'lacks' if count == 1 else 'lack'} free GPU memory"
        case (code, subject, detail) if code in _REFUSES:
            value = f"{subject}={detail}" if code == Code.TAINT and detail else subject
            return f"{nodes} {'is' if count == 1 else 'are'} {_REFUSES[code].format(value)}"
        case OverLimit() | OverQuota():
            return sentence(refusal)
        case Refusal():
            return f"{nodes}: {texts.refusal(refusal)}"
        case _:
            return str(refusal)


def _no_domain(problem: NoDomain) -> str:
    level, tasks = problem.constraint.required, counted(problem.tasks, "pod")
    group = f" of {problem.group}" if problem.group not in ("", "default") else ""
    if not problem.domain:
        return f"{tasks}{group} must share one {level or problem.constraint.topology}, and no node is in one"
    if problem.best < 0:
        return f"no {level} has room for the {tasks}{group} that must share one"
    if problem.best >= problem.tasks:
        # There is a domain that holds them, but not the rest of the gang, which runs elsewhere or finds no room there.
        return f"{tasks}{group} must share one {level} with the rest of the gang, and there is no room there"
    return f"{tasks}{group} must share one {level}, and the best ({problem.domain}) takes {problem.best}"
