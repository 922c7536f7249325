"""Why a workload waits: its one dominant blocker, from the scheduler's plan or from what its objects say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from spinney.answers.cluster import Cluster
from spinney.answers.model import Reason
from spinney.answers.other_schedulers import blocked_elsewhere, gangs_of
from spinney.api import labels, reasons
from spinney.api.conditions import find
from spinney.api.core import Event, Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.meta import Object
from spinney.api.pod_state import is_finished
from spinney.api.podgang import PodGang
from spinney.api.untyped import Untyped
from spinney.api.workloads import wanted_pods
from spinney.scheduler.intake.cluster_objects import job_key
from spinney.scheduler.state.problems import Problem
from spinney.scheduler.why.advice import advice, counted
from spinney.scheduler.why.blocker import dominant, missing, sentence
from spinney.scheduler.why.texts import sentence_case

# What an API server says when it refuses a pod → what helps.
_REFUSALS = (
    (r"no PriorityClass with name (\S+) was found", "create PriorityClass {0}, or name one that exists"),
    (r"exceeded quota: ([^,]+),", "raise ResourceQuota {0} of the namespace, or ask for less"),
    (r"serviceaccount \"([^\"]+)\" not found", "create ServiceAccount {0}, or name one that exists"),
    (r"RuntimeClass \"?([^\" ]+)\"? not found", "create RuntimeClass {0}, or name one that exists"),
)
# Kubernetes puts this before the text of an event that stands for several.
_COMBINED = "(combined from similar events): "
# The reason of the event when a controller cannot create a pod.
_FAILED_CREATE = "FailedCreate"
_IMAGE_PROBLEMS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName")


def reason_of(problem: Problem) -> Reason:
    """A problem of the scheduler as an answer."""
    fix = advice(problem)
    return Reason(
        code=type(problem).__name__,
        text=sentence_case(sentence(problem)),
        advice=[sentence_case(fix)] if fix else [],
        missing=missing(problem),
    )


def why(cluster: Cluster, owner: Object | None, pods: Sequence[Pod], groups: Sequence[PodGroup]) -> Reason | None:
    """The dominant blocker of a workload's waiting pods; None where nothing is known to hold them."""
    pending = unplaced(pods)
    return (
        _of_gangs(cluster, pods)
        or (_refused(cluster, owner) if not pending else refused_in_part(cluster, owner, pods))
        or _gated(pending)
        or (blocked_elsewhere(cluster, pods) if pending else None)
        or _planned(cluster, groups)
        or _ungrouped(cluster, pending)
        or _reported(groups, pending)
        or _unreported(pending)
        or _starting(pods)
    )


def unplaced(pods: Sequence[Pod]) -> list[Pod]:
    """Pods that wait for a node."""
    return [pod for pod in pods if not pod.spec.node_name and not is_finished(pod)]


def of_surplus(reason: Reason, pods: Sequence[Pod]) -> Reason:
    """Why pods of a running workload wait, which it runs without."""
    count = len(unplaced(pods))
    verb = "waits" if count == 1 else "wait"
    text = f"{counted(count, 'pod')} beyond the minimum {verb}: {reason.text[:1].lower()}{reason.text[1:]}"
    return replace(reason, text=text)


def _of_gangs(cluster: Cluster, pods: Sequence[Pod]) -> Reason | None:
    """What a backend or the operator says about a gang that may not go to its scheduler yet."""
    for key in gangs_of(pods):
        gang = cluster.gang_of.get(key)
        if gang is not None and (reason := _of_gang(gang)) is not None:
            return reason
    return None


def _of_gang(gang: PodGang) -> Reason | None:
    backend = find(gang.status.conditions, reasons.BACKEND_READY)
    if backend is not None and backend.status == "False":
        return Reason(code=backend.reason, text=sentence_case(f"backend {_backend(gang)}: {backend.message}"))
    scheduled = find(gang.status.conditions, reasons.SCHEDULED)
    if (
        scheduled is not None
        and scheduled.status == "False"
        and scheduled.reason
        in (
            reasons.WAITING_FOR_BASE_GANG,
            reasons.WAITING_FOR_PODS,
            reasons.BACKEND_NOT_READY,
        )
    ):
        return Reason(code=scheduled.reason, text=sentence_case(scheduled.message))
    return None


def _backend(gang: PodGang) -> str:
    return gang.metadata.labels.get(labels.SCHEDULER_BACKEND, "")


def _refused(cluster: Cluster, owner: Object | None) -> Reason | None:
    """Why a workload has no pods: its controller could not create them."""
    if owner is None:
        return None
    if isinstance(owner, PodCliqueSet) and owner.status.last_errors:
        error = owner.status.last_errors[-1]
        return _refusal(error.code, error.description)
    warning = next((event for event in reversed(_events(cluster, owner)) if event.type == "Warning"), None)
    return _refusal(warning.reason, warning.message) if warning is not None else None


def refused_in_part(cluster: Cluster, owner: Object | None, pods: Sequence[Pod]) -> Reason | None:
    """Why a workload has fewer pods than it asks for: its controller could not create the others."""
    missing_pods = wanted_pods(owner.resource.kind, owner.spec) - len(pods) if isinstance(owner, Untyped) else 0
    if owner is None or missing_pods <= 0:
        return None
    refused = [event for event in _events(cluster, owner) if event.reason == _FAILED_CREATE]
    if not refused:
        return None
    reason = _refusal(_FAILED_CREATE, refused[-1].message)
    are = "is" if missing_pods == 1 else "are"
    return replace(reason, text=f"{counted(missing_pods, 'pod')} {are} missing: {reason.text}")


def _events(cluster: Cluster, owner: Object) -> list[Event]:
    """Events of a workload and of what it creates in turn, oldest first within each."""
    return [
        event
        for item in (owner, *cluster.below.get((owner.namespace, owner.uid), ()))
        for event in cluster.events_of.get((item.namespace, item.uid), ())
    ]


def _refusal(code: str, text: str) -> Reason:
    """Why pods are refused, with what helps where the refusal is one of the usual ones."""
    text = text.removeprefix(_COMBINED)
    for pattern, advice_text in _REFUSALS:
        if (match := re.search(pattern, text)) is not None:
            return Reason(code=code, text=sentence_case(text), advice=[sentence_case(advice_text.format(match[1]))])
    return Reason(code=code, text=sentence_case(text))


def _of_event(event: Event) -> Reason:
    return Reason(code=event.reason, text=sentence_case(event.message))


def _gated(pending: Sequence[Pod]) -> Reason | None:
    gates = {gate.name for pod in pending for gate in pod.spec.scheduling_gates}
    if not gates or not all(pod.spec.scheduling_gates for pod in pending):
        return None
    names = ", ".join(sorted(gates))
    held = "is" if len(pending) == 1 else "are"
    text = f"{counted(len(pending), 'pod')} {held} held by scheduling gate {names}"
    advice_text = f"whoever set {names} has to remove it from the pods"
    return Reason(code=reasons.SCHEDULING_GATED, text=sentence_case(text), advice=[sentence_case(advice_text)])


def _planned(cluster: Cluster, groups: Sequence[PodGroup]) -> Reason | None:
    """The scheduler's own problem with the first of the groups that it has one with."""
    if cluster.schedule is None:
        return None
    plan, jobs = cluster.schedule.plan, cluster.schedule.state.jobs
    for group in groups:
        key = job_key(group.namespace, group.name)
        if key not in jobs or not jobs[key].pending:
            continue
        placed = cluster.schedule.decided.get(key, frozenset())
        if "bind" in placed:
            return Reason(code=reasons.SCHEDULED, text="A place was found; it is placed in the next cycle.")
        if "wait" in placed:
            return Reason(
                code=reasons.PIPELINED, text="Its place is being freed: it starts when the pods there have ended."
            )
        problem = dominant(plan.problems.get(key, ()))
        if problem is not None:
            return reason_of(problem)
    return None


def _ungrouped(cluster: Cluster, pending: Sequence[Pod]) -> Reason | None:
    """A pod of ours without a PodGroup."""
    name = cluster.schedule.scheduler_name if cluster.schedule is not None else labels.KAI_SCHEDULER
    for pod in pending:
        if pod.spec.scheduler_name != name:
            continue
        group = pod.metadata.annotations.get(labels.POD_GROUP, "")
        if group and (pod.namespace, group) in cluster.group_of:
            continue
        if group and cluster.unread("PodGroup"):
            continue
        about_it = cluster.events_of.get((pod.namespace, pod.uid), ())
        events = [event for event in about_it if event.reason == reasons.POD_GROUPER_WARNING]
        if events:
            return _of_event(events[-1])
        text = f"PodGroup {group} does not exist" if group else f"pod {pod.name} has no PodGroup yet"
        return Reason(
            code=reasons.POD_GROUP_NOT_FOUND,
            text=sentence_case(text),
            advice=["Check that the pod grouper runs: spinney doctor."],
        )
    return None


def _reported(groups: Sequence[PodGroup], pending: Sequence[Pod]) -> Reason | None:
    """What a scheduler reported in conditions of the PodGroup, else of a pod."""
    for group in groups:
        for condition in group.status.scheduling_conditions:
            if condition.status == "True" and pending:
                explanation = condition.reasons[0] if condition.reasons else condition
                return Reason(code=explanation.reason, text=sentence_case(" ".join(explanation.message.split())))
    for pod in pending:
        scheduled = find(pod.status.conditions, reasons.POD_SCHEDULED)
        if scheduled is not None and scheduled.status == "False":
            text = f"{pod.spec.scheduler_name}: {' '.join(scheduled.message.split())}"
            return Reason(code=scheduled.reason, text=sentence_case(text))
    return None


def _unreported(pending: Sequence[Pod]) -> Reason | None:
    """A pod about which no scheduler has reported anything."""
    if not pending:
        return None
    name = pending[0].spec.scheduler_name
    return Reason(
        code=reasons.WAITING_FOR_SCHEDULER,
        text=f"Scheduler {name} has said nothing about it yet.",
        advice=[f"Check that a scheduler named {name} runs: spinney doctor."],
    )


def _starting(pods: Sequence[Pod]) -> Reason | None:
    """What containers of placed pods wait for."""
    for pod in pods:
        if is_finished(pod):
            continue
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            waiting = status.state.waiting
            if waiting is None or not waiting.reason or waiting.reason in ("PodInitializing", "ContainerCreating"):
                continue
            detail = f": {waiting.message}" if waiting.message else ""
            fix = (
                ["Correct the image's name, or give the pod a pull secret."]
                if waiting.reason in _IMAGE_PROBLEMS
                else []
            )
            text = f"container {status.name} of pod {pod.name}: {waiting.reason}{detail}"
            return Reason(code=waiting.reason, text=sentence_case(text), advice=fix)
        running = [status.name for status in pod.status.init_container_statuses if status.state.running]
        if running and pod.spec.node_name:
            return Reason(code="Initializing", text=f"Init container {running[0]} of pod {pod.name} has not ended.")
    return None
