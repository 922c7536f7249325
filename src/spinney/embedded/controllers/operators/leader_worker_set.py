"""LeaderWorkerSet: groups of a leader `<set>-<i>` and workers `<set>-<i>-<j>`, each replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json, Object
from spinney.api.pod_state import is_active, is_ready
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.operators.plan import (
    Child,
    Children,
    OperatorPlan,
    check_size,
    count,
    restarts,
    unwanted,
    with_condition,
)
from spinney.embedded.controllers.pods.replicas import from_template

_NAME = "leaderworkerset.sigs.k8s.io/name"


def leader_worker_set(owner: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What a LeaderWorkerSet needs."""
    template: Json = owner.spec.get("leaderWorkerTemplate") or {}
    replicas, size = count(owner.spec.get("replicas"), 1), count(template.get("size"), 1)
    check_size(replicas * size)
    by_group = _by_group(children.pods)
    groups = [by_group.get(str(index), []) for index in range(replicas)]
    wanted = [Child(Pod, body) for index, pods in enumerate(groups) for body in _pods(owner, template, index, pods)]
    expected = {f"{owner.name}-{index}" for index in range(replicas)}
    surplus: list[Object] = [pod for pod in children.pods if _group_name(owner, pod) not in expected]
    plan = OperatorPlan(wanted=wanted, delete=surplus)
    plan.delete += unwanted([pod for pods in groups if len(pods) > size for pod in pods], wanted)
    if template.get("restartPolicy", "RecreateGroupOnPodRestart") == "RecreateGroupOnPodRestart":
        plan.delete += [pod for pods in groups if _is_broken(pods) for pod in pods]
    ready = sum(len(pods) == size and all(map(is_ready, pods)) for pods in groups)
    conditions = owner.status.get("conditions") or []
    is_available = ready >= replicas
    reason = "AllGroupsReady" if is_available else "GroupsAreProgressing"
    conditions = with_condition(conditions, "Available", str(is_available), reason, now)
    plan.status = {
        "replicas": sum(bool(pods) for pods in groups),
        "readyReplicas": ready,
        "updatedReplicas": sum(bool(pods) for pods in groups),
        "hpaPodSelector": f"{_NAME}={owner.name},{labels.LWS_WORKER_INDEX}=0",
        "conditions": with_condition(conditions, "Progressing", str(not is_available), reason, now),
    }
    return plan


def _pods(owner: Untyped, template: Json, group: int, live: Sequence[Pod]) -> Iterator[Json]:
    """The pods that a group may have now: workers wait for a ready leader where the start-up policy says so."""
    workers: Json = template.get("workerTemplate") or {}
    yield _pod(owner, template.get("leaderTemplate") or workers, group, 0, template)
    late = owner.spec.get("startupPolicy") == "LeaderReady"
    if late and not any(is_ready(pod) for pod in live if pod.metadata.labels.get(labels.LWS_WORKER_INDEX) == "0"):
        return
    for index in range(1, count(template.get("size"), 1)):
        yield _pod(owner, workers, group, index, template)


def _pod(owner: Untyped, template: Json, group: int, index: int, whole: Json) -> Json:
    pod = from_template(owner, template)
    pod["metadata"]["name"] = f"{owner.name}-{group}" if index == 0 else f"{owner.name}-{group}-{index}"
    pod["metadata"]["labels"] |= {
        _NAME: owner.name,
        labels.LWS_GROUP_INDEX: str(group),
        labels.LWS_WORKER_INDEX: str(index),
    }
    pod["metadata"]["annotations"] |= {labels.LWS_SIZE: str(count(whole.get("size"), 1))}
    return pod


def _by_group(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(pod.metadata.labels.get(labels.LWS_GROUP_INDEX, ""), []).append(pod)
    return groups


def _group_name(owner: Untyped, pod: Pod) -> str:
    return f"{owner.name}-{pod.metadata.labels.get(labels.LWS_GROUP_INDEX, '')}"


def _is_broken(pods: Sequence[Pod]) -> bool:
    """Whether a pod of a group failed, was restarted or is being deleted: the others start again with it."""
    return restarts(pods) > 0 or not all(map(is_active, pods))
