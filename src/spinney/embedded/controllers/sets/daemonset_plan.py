"""What a DaemonSet needs next: one pod of its template on every eligible node."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime

from spinney.api.affinity import NodeSelector, Toleration, selects_node, tolerates
from spinney.api.apps import TEMPLATE_GENERATION, DaemonSet
from spinney.api.core import Node, Pod
from spinney.api.intstr import at_least
from spinney.api.meta import Json, convert
from spinney.api.pod_state import is_finished, is_ready
from spinney.embedded.controllers.pods.replicas import available_in, from_template
from spinney.embedded.controllers.sets.revisions import REVISION, RevisionedPlan, current_hash, revision
from spinney.embedded.controllers.writes import changed_fields

_GENERATION = "pod-template-generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Taints of unhealthy nodes that every DaemonSet tolerates.
_TOLERATIONS: tuple[Json, ...] = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


@dataclass(frozen=True)
class _State:
    """A DaemonSet now: the nodes where a pod should start or may stay, its pods by node, the hash of its template."""

    owner: DaemonSet
    eligible: frozenset[str]
    tolerated: frozenset[str]
    pods: dict[str, list[Pod]]
    hash: str
    now: datetime

    def unfinished(self, node: str) -> list[Pod]:
        """The pods of a node that have not ended."""
        return [pod for pod in self.pods.get(node, ()) if not is_finished(pod)]

    def is_available(self, pod: Pod) -> bool:
        """Whether a pod has been ready for long enough."""
        return available_in(pod, self.owner.spec.min_ready_seconds, self.now) == 0.0


def plan_daemonset(
    owner: DaemonSet, nodes: list[Node], pods: list[Pod], revisions: Collection[str], now: datetime
) -> RevisionedPlan:
    """What a DaemonSet needs, given the nodes, its pods, and the names of its revisions."""
    plan = RevisionedPlan()
    if owner.metadata.deletion_timestamp is not None:
        return plan
    newest = current_hash(owner)
    if f"{owner.name}-{newest}" not in revisions:
        labels = {**(owner.spec.template.get("metadata") or {}).get("labels", {}), REVISION: newest}
        plan.revisions.append(revision(owner, labels, len(revisions) + 1))
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    selected = [node for node in nodes if _selects(owner, node)]
    state = _State(
        owner=owner,
        eligible=frozenset(node.name for node in selected if _tolerates(owner, node, ("NoSchedule", "NoExecute"))),
        tolerated=frozenset(node.name for node in selected if _tolerates(owner, node, ("NoExecute",))),
        pods=by_node,
        hash=newest,
        now=now,
    )
    _place(state, plan)
    _update(state, plan)
    _status(state, plan)
    return plan


def _place(state: _State, plan: RevisionedPlan) -> None:
    """Keep one unfinished pod on every eligible node; a failed pod is deleted before it is replaced."""
    unwanted: list[Pod] = []
    for node, pods in state.pods.items():
        if node not in state.tolerated:
            unwanted += pods
            continue
        unwanted += [pod for pod in pods if is_finished(pod)]
        unwanted += sorted(state.unfinished(node), key=lambda pod: (not pod.spec.node_name, pod.uid))[1:]
    plan.delete += [pod for pod in unwanted if pod.metadata.deletion_timestamp is None]
    plan.create += [_pod(state.owner, node, state.hash) for node in sorted(state.eligible) if not state.pods.get(node)]


def _update(state: _State, plan: RevisionedPlan) -> None:
    """Delete pods of old templates: unavailable ones at once, others as maxUnavailable allows."""
    strategy = state.owner.spec.update_strategy
    if strategy.type != "RollingUpdate":
        return
    available: list[Pod] = []
    down = 0
    for node in sorted(state.eligible):
        pods = [pod for pod in state.unfinished(node) if pod.metadata.deletion_timestamp is None]
        outdated = [pod for pod in pods if pod.metadata.labels.get(REVISION) != state.hash]
        if any(state.is_available(pod) for pod in pods):
            available += outdated
        else:
            down += 1
            plan.delete += outdated
    allowed = max(1, at_least(strategy.rolling_update.max_unavailable, len(state.eligible))) - down
    plan.delete += available[: max(0, allowed)]


def node_of(pod: Pod) -> str:
    """The node that a DaemonSet's pod is on, or is created for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.values:
                return requirement.values[0]
    return ""


def _selects(owner: DaemonSet, node: Node) -> bool:
    spec = owner.spec.template.get("spec") or {}
    if spec.get("nodeName", node.name) != node.name:
        return False
    if not (spec.get("nodeSelector") or {}).items() <= node.metadata.labels.items():
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    selector = convert(NodeSelector, required) if required is not None else None
    return selects_node(selector, node.name, node.metadata.labels)


def _tolerates(owner: DaemonSet, node: Node, effects: tuple[str, ...]) -> bool:
    own_tolerations = (owner.spec.template.get("spec") or {}).get("tolerations") or ()
    tolerations = [convert(Toleration, toleration) for toleration in (*own_tolerations, *_TOLERATIONS)]
    return all(taint.effect not in effects or tolerates(tolerations, taint) for taint in node.spec.taints)


def _pod(owner: DaemonSet, node: str, newest: str) -> Json:
    pod = from_template(owner, owner.spec.template)
    metadata, spec = pod["metadata"], deepcopy(pod["spec"])
    metadata["generateName"] = f"{owner.name}-"
    metadata["labels"] |= {REVISION: newest, _GENERATION: owner.metadata.annotations.get(TEMPLATE_GENERATION, "1")}
    own_tolerations = spec.get("tolerations") or []
    spec["tolerations"] = [
        *own_tolerations,
        *(toleration for toleration in _TOLERATIONS if toleration not in own_tolerations),
    ]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    # The template's own requirements were checked: the scheduler has only this node to choose from.
    field_ = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity[_REQUIRED] = {"nodeSelectorTerms": [{"matchFields": [field_]}]}
    pod["spec"] = spec
    return pod


def _status(state: _State, plan: RevisionedPlan) -> None:
    first = [pods[0] for node in state.eligible if (pods := state.unfinished(node))]
    available = plan.count_available(state.owner.spec, first, state.now)
    plan.status = changed_fields(
        state.owner.status,
        desired_number_scheduled=len(state.eligible),
        current_number_scheduled=len(first),
        number_misscheduled=len(state.pods.keys() - state.eligible - {""}),
        number_ready=sum(map(is_ready, first)),
        updated_number_scheduled=sum(pod.metadata.labels.get(REVISION) == state.hash for pod in first),
        number_available=available,
        number_unavailable=len(state.eligible) - available,
        observed_generation=state.owner.metadata.generation,
    )
