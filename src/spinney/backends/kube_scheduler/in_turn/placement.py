"""Find a node for every pod of a gang on the resources that are free now.

The search is not exhaustive, so "no" may be wrong: the gang is tried again later. "Yes" always comes with a placement.
It looks at requests, the number of pods per node, taints, node selectors and affinity, host ports, rules between pods
(`inter_pod_rules`) and claims (`reachable_nodes`). It does not see devices that are not allocated yet, nor how many
volumes a node can attach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spinney.api.affinity import selects_node, tolerates
from spinney.api.conditions import find
from spinney.api.core import Node
from spinney.api.labels import GPU_RESOURCE
from spinney.api.pod import Pod
from spinney.api.reasons import NODE_READY
from spinney.api.volumes import Reach
from spinney.backends.kube_scheduler.in_turn.inter_pod_rules import InterPodRules, anti_affinity_terms
from spinney.backends.kube_scheduler.in_turn.node_info import Amounts, NodeInfo, request_of

# The node found for each pod, by name.
Placement = Mapping[str, str]


@dataclass(frozen=True)
class ClusterView:
    """The nodes as if pods below a priority were gone, and the reach of a pod's claims."""

    node_infos: Callable[[int | None], Sequence[NodeInfo]]
    reach: Callable[[Pod], Reach] = lambda _: Reach()


@dataclass(frozen=True)
class Unplaced:
    """A pod for which no node was found, and why: the reason that holds on every node, or what the nodes lack."""

    pod: Pod
    reason: str = ""


def place(pods: Sequence[Pod], view: ClusterView, above: int | None = None) -> Placement | Unplaced:
    """A node for every pod, or the first pod for which none was found.

    Largest first, each on the node where it leaves the least: the order in which gates are removed.
    """
    placement: dict[str, str] = {}
    requests = [(pod, request_of(pod)) for pod in pods]
    requests.sort(key=lambda item: size(item[1]), reverse=True)
    infos = [NodeInfo(info.node, dict(info.free), list(info.pods)) for info in view.node_infos(above)]
    repellers = [(info, other) for info in infos for other in info.pods if anti_affinity_terms(other)]
    for pod, request in requests:
        reach = view.reach(pod)
        selected = [info for info in infos if _selects(pod, info.node)]
        rules = InterPodRules(pod, infos, selected, repellers)
        chosen = min(
            (
                info
                for info in selected
                if info.fits(request) and _accepts(info.node, pod) and reach.allows(info.node) and rules.allow(info)
            ),
            key=lambda info: size(info.free),
            default=None,
        )
        if chosen is None:
            usable = [info for info in selected if _accepts(info.node, pod)]
            return Unplaced(pod, str(reach.impossible or _lacking(usable, request)))
        chosen.add(pod, request)
        placement[pod.name] = chosen.node.name
        if anti_affinity_terms(pod):
            repellers.append((chosen, pod))
    return placement


def _lacking(usable: Sequence[NodeInfo], request: Amounts) -> str:
    """What keeps a pod from the nodes that it may use, without numbers: these would change with every other pod."""
    if not usable:
        return "no ready node matches its node selector, affinity and tolerations"
    short = sorted({name for info in usable for name in info.lacking(request)})
    if short and not any(info.fits(request) for info in usable):
        return f"no node that it may use has room for one more pod: insufficient {', '.join(short)}"
    return ""


def size(amounts: Amounts) -> tuple[int, int, int]:
    """A key to compare requests or free resources: GPUs, then CPU, then memory."""
    return amounts.get(GPU_RESOURCE, 0), amounts.get("cpu", 0), amounts.get("memory", 0)


def admits(node: Node, pod: Pod) -> bool:
    """Whether a pod may run on a node, by its node selector and affinity and by the node's taints and state."""
    return _selects(pod, node) and _accepts(node, pod)


def _selects(pod: Pod, node: Node) -> bool:
    """Whether a pod's node selector and node affinity match a node."""
    labels, affinity = node.metadata.labels, pod.spec.affinity
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    rules = affinity.node_affinity if affinity else None
    return rules is None or selects_node(rules.required_during_scheduling_ignored_during_execution, node.name, labels)


def _accepts(node: Node, pod: Pod) -> bool:
    """Whether a node is ready and schedulable, and the pod tolerates its taints."""
    ready = find(node.status.conditions, NODE_READY)
    if node.spec.unschedulable or (ready is not None and ready.status != "True"):
        return False
    hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(tolerates(pod.spec.tolerations, taint) for taint in hard)
