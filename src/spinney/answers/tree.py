"""One workload as a tree of gangs, subgroups and pods, with its events and the steps that its pods have taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from spinney.answers import gpus
from spinney.answers.cluster import Cluster
from spinney.answers.model import Group, PodRow, Reason, Step, TimelineStep, WorkloadTree
from spinney.answers.overview import event_of
from spinney.answers.why import why
from spinney.answers.workloads import Parts, Prospects, minimum_of_one, workload_of
from spinney.api import labels, reasons
from spinney.api.conditions import find, true_since
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.numbers import whole_number
from spinney.api.pod_state import is_finished, is_ready, is_terminating
from spinney.api.podgang import PodGang
from spinney.api.times import rfc3339

_LATEST_EVENTS = 20


def tree_of(cluster: Cluster, parts: Parts, prospects: Prospects) -> WorkloadTree:
    """The tree of a workload."""
    uids = [parts.owner.uid, *(group.uid for group in parts.groups), *(pod.uid for pod in parts.pods)]
    events = [event_of(event) for uid in uids for event in cluster.events_of.get((parts.owner.ref.namespace, uid), ())]
    return WorkloadTree(
        workload=workload_of(cluster, parts, prospects),
        groups=_groups(cluster, parts),
        events=sorted(events, key=lambda event: event.at)[-_LATEST_EVENTS:],
        timeline=_timeline(cluster, parts.pods),
    )


def _groups(cluster: Cluster, parts: Parts) -> list[Group]:
    """The gangs of a workload: PodGangs where there are some, else PodGroups, else its pods as one group."""
    by_gang = _by(parts.pods, lambda pod: pod.metadata.labels.get(labels.PODGANG, ""))
    if set(by_gang) - {""}:
        return [
            _gang(cluster, name, cluster.gang_of.get((parts.owner.ref.namespace, name)), pods)
            for name, pods in sorted(by_gang.items(), key=lambda each: _sort_key(each[0]))
        ]
    by_group = _by(parts.pods, lambda pod: pod.metadata.annotations.get(labels.POD_GROUP, ""))
    groups = {group.name: group for group in parts.groups}
    if len(groups) == len(parts.pods) > 1:
        # Each pod is on its own: a level of groups would say nothing.
        return [_pods_group(cluster, "Pods", parts.owner.ref.name, parts.pods, 1)]
    return [
        _group(cluster, groups[name], pods)
        if name in groups
        else _pods_group(cluster, "Pods", parts.owner.ref.name, pods, minimum_of_one(cluster, pods[0]))
        for name, pods in sorted(by_group.items())
    ]


def _gang(cluster: Cluster, name: str, gang: PodGang | None, pods: Sequence[Pod]) -> Group:
    minimums = {group.name: group.min_replicas for group in gang.spec.podgroups} if gang is not None else {}
    may_read = gang is not None or not cluster.unread("PodGang")
    by_clique = _by(pods, lambda pod: pod.metadata.labels.get(labels.PODCLIQUE, ""))
    cliques = [
        _clique(cluster, clique, by_clique.get(clique, ()), minimums.get(clique, 1) if may_read else None)
        for clique in dict.fromkeys((*minimums, *sorted(by_clique)))
    ]
    score = gang.status.placement_score if gang is not None else None
    backend = gang.metadata.labels.get(labels.SCHEDULER_BACKEND, "") if gang is not None else ""
    details = (f"[{backend}]" if backend else "", f"score {score:g}" if score is not None else "", _waits(gang))
    return Group(
        kind="PodGang",
        name=name,
        minimum=(sum(minimums.values()) or 1) if may_read else None,
        total=sum(clique.total for clique in cliques),
        ready=sum(clique.ready for clique in cliques),
        groups=cliques,
        phase=gang.status.phase if gang is not None else "",
        detail=" ".join(filter(None, details)),
    )


def _waits(gang: PodGang | None) -> str:
    """What a gang waits for by its own conditions; a gang without them waits for nothing."""
    if gang is None:
        return ""
    for kind in (reasons.SCHEDULED, reasons.READY):
        condition = find(gang.status.conditions, kind)
        if condition is not None and condition.status != "True":
            return " ".join(condition.message.split())
    return ""


def _clique(cluster: Cluster, name: str, pods: Sequence[Pod], minimum: int | None) -> Group:
    namespace = pods[0].namespace if pods else ""
    clique = cluster.clique_of.get((namespace, name))
    group = _pods_group(cluster, "PodClique", name, pods, minimum)
    if clique is None:
        return group
    return Group(
        kind=group.kind,
        name=name,
        minimum=minimum,
        total=max(clique.spec.replicas, len(pods)),
        ready=group.ready,
        starts_after=clique.spec.starts_after,
        pods=group.pods,
    )


def _group(cluster: Cluster, group: PodGroup, pods: Sequence[Pod]) -> Group:
    """A PodGroup with its tree of subgroups."""
    by_subgroup = _by(pods, lambda pod: pod.metadata.labels.get(labels.SUBGROUP, ""))
    children: dict[str, list[Group]] = defaultdict(list)
    names = {subgroup.name for subgroup in group.spec.sub_groups}
    for subgroup in reversed(group.spec.sub_groups):
        pods_of_it = by_subgroup.pop(subgroup.name, ())
        own = _pods_group(cluster, "SubGroup", subgroup.name, pods_of_it, subgroup.min_member or 1)
        below = children.pop(subgroup.name, [])
        parent = subgroup.parent if subgroup.parent in names else ""
        children[parent].insert(0, _with_children(own, below, subgroup.min_sub_group))
    without_subgroup = [pod for pods in by_subgroup.values() for pod in pods]
    root = _pods_group(cluster, "PodGroup", group.name, without_subgroup, group.spec.min_member or 1)
    whole = _with_children(root, children[""], group.spec.min_sub_group)
    return Group(
        kind=whole.kind,
        name=whole.name,
        minimum=whole.minimum,
        total=whole.total,
        ready=whole.ready,
        groups=whole.groups,
        pods=whole.pods,
        phase=group.status.phase,
    )


def _with_children(group: Group, below: Sequence[Group], minimum: int | None) -> Group:
    if not below:
        return group
    return Group(
        kind=group.kind,
        name=group.name,
        minimum=minimum or sum(each.minimum or 0 for each in below),
        total=sum(each.total for each in below) + group.total,
        ready=sum(each.ready for each in below) + group.ready,
        groups=below,
        pods=group.pods,
    )


def _pods_group(cluster: Cluster, kind: str, name: str, pods: Sequence[Pod], minimum: int | None) -> Group:
    rows = [pod_row(cluster, pod) for pod in sorted(pods, key=lambda pod: _sort_key(pod.name))]
    return Group(
        kind=kind, name=name, minimum=minimum, total=len(rows), ready=sum(row.ready for row in rows), pods=rows
    )


def pod_row(cluster: Cluster, pod: Pod) -> PodRow:
    """One pod, and what it waits for by itself."""
    node = cluster.node_of.get(pod.spec.node_name)
    return PodRow(
        namespace=pod.namespace,
        name=pod.name,
        phase=state_of(pod),
        node=pod.spec.node_name or None,
        domain=cluster.domain_of(pod.spec.node_name),
        gpus=gpus.gpus_of(pod, cluster.gpus_asked(pod), gpus.memory_of_gpus(node)),
        ready=is_ready(pod),
        reason=_own_reason(cluster, pod),
        created=_time(pod.metadata.creation_timestamp) or "",
        bound=_time(true_since(pod.status.conditions, reasons.POD_SCHEDULED)),
    )


def state_of(pod: Pod) -> str:
    """A pod's state in one word, much as kubectl shows it."""
    if is_terminating(pod):
        return "Terminating"
    if pod.spec.scheduling_gates:
        return "Gated"
    if is_ready(pod) and not is_finished(pod):
        return "Ready"
    waiting = [status.state.waiting.reason for status in pod.status.container_statuses if status.state.waiting]
    return next((reason for reason in waiting if reason), pod.status.phase or "Pending")


def _own_reason(cluster: Cluster, pod: Pod) -> Reason | None:
    """Why a pod is not placed, or not ready; what its gang waits for is shown with the gang."""
    if pod.spec.node_name and not is_ready(pod):
        return why(cluster, None, [pod], [])
    return None


def _timeline(cluster: Cluster, pods: Sequence[Pod]) -> list[TimelineStep]:
    """When the last pod reached each step, with how many have."""
    requests = {(request.namespace, request.spec.pod_name): request for request in cluster.bind_requests}
    moments: dict[Step, list[datetime]] = defaultdict(list)
    for pod in pods:
        _note(moments["created"], pod.metadata.creation_timestamp)
        gang = cluster.gang_of.get((pod.namespace, pod.metadata.labels.get(labels.PODGANG, "")))
        if gang is not None or pod.spec.scheduling_gates:
            _note(moments["gated"], pod.metadata.creation_timestamp)
        if gang is not None and not pod.spec.scheduling_gates:
            _note(moments["released"], _complete_since(cluster, gang, pod))
        if (request := requests.get(pod.key)) is not None:
            _note(moments["decided"], request.metadata.creation_timestamp)
        for step, kind in (("bound", reasons.POD_SCHEDULED), ("ready", reasons.POD_READY)):
            _note(moments[step], true_since(pod.status.conditions, kind))  # type: ignore[index]  # one of the two above
    order: tuple[Step, ...] = ("created", "gated", "released", "decided", "bound", "ready")
    return [
        TimelineStep(step=step, at=rfc3339(max(moments[step])), pods=len(moments[step]))
        for step in order
        if moments[step]
    ]


def _complete_since(cluster: Cluster, gang: PodGang, pod: Pod) -> datetime | None:
    """When the operator could take the gate off: the gang had all its pods, and its base gang was scheduled.

    The API keeps no time for a gate that is gone. A pod that replaces another one was released once it existed.
    """
    moments = [pod.metadata.creation_timestamp, true_since(gang.status.conditions, reasons.INITIALIZED)]
    base = cluster.gang_of.get((gang.namespace, gang.metadata.labels.get(labels.BASE_PODGANG, "")))
    if base is not None:
        moments.append(true_since(base.status.conditions, reasons.SCHEDULED))
    return max((moment for moment in moments if moment is not None), default=None)


def _note(moments: list[datetime], moment: datetime | None) -> None:
    if moment is not None:
        moments.append(moment)


def _by(pods: Iterable[Pod], key: Callable[[Pod], str]) -> dict[str, list[Pod]]:
    groups: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[key(pod)].append(pod)
    return groups


def _sort_key(name: str) -> list[tuple[int, str]]:
    """Sort `x-2` before `x-10`."""
    numbers = ((whole_number(part), part) for part in name.split("-"))
    return [(-1, part) if number is None else (number, "") for number, part in numbers]


def _time(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
