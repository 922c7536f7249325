"""What a DaemonSet needs: a pod on every node that it is for, of its newest template."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.affinity import NodeSelector, NodeSelectorTerm, Toleration, tolerates
from spinney.api.apps import TEMPLATE_GENERATION, DaemonSet
from spinney.api.core import Node, Pod
from spinney.api.intstr import at_least
from spinney.api.meta import Json, convert
from spinney.api.selector import satisfies
from spinney.embedded.controllers.pods.state import available_in, from_template, is_ready, is_terminal
from spinney.embedded.controllers.sets.revisions import REVISION, revision, template_hash
from spinney.embedded.controllers.sets.set_plan import SetPlan, soonest, told_anew

_GENERATION = "pod-template-generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Troubles of a node that do not keep its daemons away.
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


@dataclass
class DaemonPlan(SetPlan):
    """The wanted changes, and templates to keep."""

    revisions: list[Json] = field(default_factory=list)


@dataclass(frozen=True)
class _Look:
    """A set as it is now: the nodes it may start and stay on, its pods by node, and the hash of its template."""

    owner: DaemonSet
    wanted: frozenset[str]
    kept: frozenset[str]
    placed: dict[str, list[Pod]]
    newest: str
    now: datetime

    def living(self, node: str) -> list[Pod]:
        """The pods of a node that have not ended."""
        return [pod for pod in self.placed.get(node, ()) if not is_terminal(pod)]

    def available(self, pod: Pod) -> float | None:
        """Seconds until a pod counts as available; None while it is not ready."""
        return available_in(pod, self.owner.spec.min_ready_seconds, self.now)


def plan_daemonset(owner: DaemonSet, nodes: list[Node], pods: list[Pod], known: set[str], now: datetime) -> DaemonPlan:
    """What a DaemonSet needs, given the nodes, its pods, and the names of the revisions it has."""
    plan = DaemonPlan()
    if owner.metadata.deletion_timestamp is not None:
        return plan
    newest = template_hash(owner.spec.template, owner.status.collision_count or 0)
    if f"{owner.name}-{newest}" not in known:
        labels = {**(owner.spec.template.get("metadata") or {}).get("labels", {}), REVISION: newest}
        plan.revisions.append(revision(owner, f"{owner.name}-{newest}", owner.spec.template, labels, len(known) + 1))
    placed: dict[str, list[Pod]] = {}
    for pod in pods:
        placed.setdefault(node_of(pod), []).append(pod)
    wanted = frozenset(node.name for node in nodes if runs_on(owner, node))
    kept = frozenset(node.name for node in nodes if stays_on(owner, node))
    look = _Look(owner, wanted, kept, placed, newest, now)
    _place(look, plan)
    _update(look, plan)
    _status(look, plan)
    return plan


def _place(look: _Look, plan: DaemonPlan) -> None:
    """One living pod on every wanted node; a failed one goes before the next comes, and strays go."""
    unwanted: list[Pod] = []
    for name, here in look.placed.items():
        if name not in look.kept:
            unwanted += here
            continue
        unwanted += [pod for pod in here if is_terminal(pod)]
        unwanted += sorted(look.living(name), key=lambda pod: (not pod.spec.node_name, pod.uid))[1:]
    plan.delete += [pod for pod in unwanted if pod.metadata.deletion_timestamp is None]
    plan.create += [_pod(look.owner, name, look.newest) for name in sorted(look.wanted) if not look.placed.get(name)]


def _update(look: _Look, plan: DaemonPlan) -> None:
    """Replace pods of old templates, as many at a time as may be missing; those that do not run first."""
    strategy = look.owner.spec.update_strategy
    if strategy.type != "RollingUpdate":
        return
    old: list[Pod] = []
    missing = 0
    for name in sorted(look.wanted):
        here = [pod for pod in look.living(name) if pod.metadata.deletion_timestamp is None]
        down = not any(look.available(pod) == 0.0 for pod in here)
        missing += down
        outdated = [pod for pod in here if pod.metadata.labels.get(REVISION) != look.newest]
        if down:
            plan.delete += outdated
        else:
            old += outdated
    room = max(1, at_least(strategy.rolling_update.max_unavailable, len(look.wanted))) - missing
    plan.delete += old[: max(0, room)]


def node_of(pod: Pod) -> str:
    """The node that a daemon's pod is on, or is meant for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.values:
                return requirement.values[0]
    return ""


def runs_on(owner: DaemonSet, node: Node) -> bool:
    """Whether a pod may be started on a node."""
    return _selected(owner, node) and _tolerates(owner, node, ("NoSchedule", "NoExecute"))


def stays_on(owner: DaemonSet, node: Node) -> bool:
    """Whether a pod that is there may stay."""
    return _selected(owner, node) and _tolerates(owner, node, ("NoExecute",))


def _selected(owner: DaemonSet, node: Node) -> bool:
    spec = owner.spec.template.get("spec") or {}
    if spec.get("nodeName", node.name) != node.name:
        return False
    if not (spec.get("nodeSelector") or {}).items() <= node.metadata.labels.items():
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if required is None:
        return True
    return any(_term_holds(term, node) for term in convert(NodeSelector, required).node_selector_terms)


def _term_holds(term: NodeSelectorTerm, node: Node) -> bool:
    fields = {"metadata.name": node.name}
    return all(satisfies(each, node.metadata.labels) for each in term.match_expressions) and all(
        satisfies(each, fields) for each in term.match_fields
    )


def _tolerates(owner: DaemonSet, node: Node, effects: tuple[str, ...]) -> bool:
    given = (owner.spec.template.get("spec") or {}).get("tolerations") or ()
    tolerations = [convert(Toleration, each) for each in (*given, *_TOLERATIONS)]
    return all(taint.effect not in effects or tolerates(tolerations, taint) for taint in node.spec.taints)


def _pod(owner: DaemonSet, node: str, newest: str) -> Json:
    pod = from_template(owner, owner.spec.template)
    metadata, spec = pod["metadata"], deepcopy(pod["spec"])
    metadata["generateName"] = f"{owner.name}-"
    metadata["labels"] |= {REVISION: newest, _GENERATION: owner.metadata.annotations.get(TEMPLATE_GENERATION, "1")}
    given = spec.get("tolerations") or []
    spec["tolerations"] = [*given, *(each for each in _TOLERATIONS if each not in given)]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    # The scheduler places it, but on this node only, whatever else the template asks for: that was looked at.
    field_ = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity[_REQUIRED] = {"nodeSelectorTerms": [{"matchFields": [field_]}]}
    pod["spec"] = spec
    return pod


def _status(look: _Look, plan: DaemonPlan) -> None:
    first = [here[0] for name in look.wanted if (here := look.living(name))]
    waits = [look.available(pod) for pod in first]
    plan.wake, available = soonest(waits), waits.count(0.0)
    plan.status = told_anew(
        look.owner.status,
        desired_number_scheduled=len(look.wanted),
        current_number_scheduled=len(first),
        number_misscheduled=len(look.placed.keys() - look.wanted - {""}),
        number_ready=sum(map(is_ready, first)),
        updated_number_scheduled=sum(pod.metadata.labels.get(REVISION) == look.newest for pod in first),
        number_available=available,
        number_unavailable=len(look.wanted) - available,
        observed_generation=look.owner.metadata.generation,
    )
