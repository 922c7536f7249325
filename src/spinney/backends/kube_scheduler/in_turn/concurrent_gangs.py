"""Which gangs may be placed at the same time: those that cannot block each other, whichever is placed first.

A slot is what the largest request needs on one node. A pod takes at most one. If a pod's nodes have as many slots as
there are pods being placed, one is left for it. Only requests are counted: pods with host ports, claims or rules about
other pods are placed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from spinney.api.pod import Pod
from spinney.backends.kube_scheduler.in_turn.inter_pod_rules import (
    anti_affinity_terms,
    is_independent,
    repelling_domains,
)
from spinney.backends.kube_scheduler.in_turn.node_info import Amounts, NodeInfo, request_of
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView, admits


class ConcurrentPods:
    """The pods that are being placed at the same time."""

    def __init__(self, view: ClusterView, pods: Sequence[Pod]) -> None:
        self._infos = view.node_infos(None)
        self._repellers = [(info, other) for info in self._infos for other in info.pods if anti_affinity_terms(other)]
        self._members: set[tuple[str, str]] = set()
        self._largest: dict[str, int] = {}
        # By a pod's node requirements: the nodes it may use, and their slots for pods of the largest size.
        self._usable: dict[bytes, list[NodeInfo]] = {}
        self._slots: dict[bytes, int] = {}
        self._accepts_more = True
        self._accepts_more = self.join(pods)
        self.is_empty = not pods

    def join(self, pods: Sequence[Pod]) -> bool:
        """Add pods if all pods still find a node for certain; if the present ones may not, none can be added."""
        if not self._accepts_more or not all(map(self._is_simple, pods)):
            return False
        largest, usable = dict(self._largest), dict(self._usable)
        for pod in pods:
            for name, amount in request_of(pod).items():
                largest[name] = max(largest.get(name, 0), amount)
            requirements = _node_requirements(pod)
            if requirements not in usable:
                usable[requirements] = [info for info in self._infos if admits(info.node, pod)]
        counted = self._slots if largest == self._largest else {}
        slots = {key: counted[key] if key in counted else _slots(infos, largest) for key, infos in usable.items()}
        if any(count < len(self._members) + len(pods) for count in slots.values()):
            return False
        self._members.update((pod.namespace, pod.name) for pod in pods)
        self.is_empty = False
        self._largest, self._usable, self._slots = largest, usable, slots
        return True

    def close(self) -> None:
        """Accept no more pods: a gang that may need all free resources is being placed."""
        self._accepts_more = False
        self.is_empty = False

    def kind_of(self, pods: Sequence[Pod], missing: Sequence[Pod]) -> bytes | None:
        """What decides whether the pods of a gang find nodes; None if that is more than requests and node requirements.

        Two gangs of one kind get the same answer, as long as nothing changes but that more pods are being placed.
        """
        if self._repellers or not all(map(is_independent, pods)):
            return None
        priority = max((pod.spec.priority or 0 for pod in pods), default=0)
        names = {pod.name for pod in missing}
        needs = [(_node_requirements(pod), sorted(request_of(pod).items()), pod.name in names) for pod in pods]
        return msgspec.json.encode((priority, needs))

    def has(self, pod: Pod) -> bool:
        """Whether a pod is counted already, so that binding it takes nothing from the others."""
        return (pod.namespace, pod.name) in self._members

    def _is_simple(self, pod: Pod) -> bool:
        return is_independent(pod) and not any(repelling_domains(pod, self._repellers))


def _node_requirements(pod: Pod) -> bytes:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return msgspec.json.encode((pod.spec.node_selector, affinity, pod.spec.tolerations))


def _slots(infos: Iterable[NodeInfo], largest: Amounts) -> int:
    """How many pods of the largest size the nodes hold."""
    requested = [(name, amount) for name, amount in largest.items() if amount]
    return sum(max(min(info.free.get(name, 0) // amount for name, amount in requested), 0) for info in infos)
