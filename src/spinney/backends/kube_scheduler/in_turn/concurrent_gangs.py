"""Which gangs may be placed at the same time: those that cannot get into each other's way, whoever is placed first.

A pod takes at most one place of the size of the largest request on one node. So while a pod may use nodes with as many
such places as there are pods to be placed, it finds one left, wherever the others went. That counts requests only: pods
with rules about each other, host ports or claims are placed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from spinney.api.pod import Pod
from spinney.backends.kube_scheduler.in_turn.inter_pod_rules import away_terms, is_independent, repelled
from spinney.backends.kube_scheduler.in_turn.placement import Amounts, Ground, Room, may_use, request_of


class Crowd:
    """The pods that are being placed together, and those that may join them."""

    def __init__(self, ground: Ground, pods: Sequence[Pod]) -> None:
        self._rooms = ground.rooms(None)
        self._repellers = [(room, other) for room in self._rooms for other in room.pods if away_terms(other)]
        self._members: set[tuple[str, str]] = set()
        self._largest: dict[str, int] = {}
        # By what a pod says about nodes: the nodes it may use, and how many pods of the largest size they hold.
        self._usable: dict[bytes, list[Room]] = {}
        self._places: dict[bytes, int] = {}
        self._at_ease = True
        self._at_ease = self.join(pods)
        self.is_empty = not pods

    def join(self, pods: Sequence[Pod]) -> bool:
        """Let pods in if all find their node even so; where that is not sure of those who are in, nobody may join."""
        if not self._at_ease or not all(map(self._is_simple, pods)):
            return False
        largest, usable = dict(self._largest), dict(self._usable)
        for pod in pods:
            for name, amount in request_of(pod).items():
                largest[name] = max(largest.get(name, 0), amount)
            wish = _wish(pod)
            if wish not in usable:
                usable[wish] = [room for room in self._rooms if may_use(pod, room.node)]
        known = self._places if largest == self._largest else {}
        places = {wish: known[wish] if wish in known else _count(usable[wish], largest) for wish in usable}
        if any(count < len(self._members) + len(pods) for count in places.values()):
            return False
        self._members.update((pod.namespace, pod.name) for pod in pods)
        self.is_empty = False
        self._largest, self._usable, self._places = largest, usable, places
        return True

    def close(self) -> None:
        """One that needs all the room is being placed now: nobody may join."""
        self._at_ease = False
        self.is_empty = False

    def has(self, pod: Pod) -> bool:
        """Whether a pod is counted here: that it gets a node then takes no room from the others."""
        return (pod.namespace, pod.name) in self._members

    def _is_simple(self, pod: Pod) -> bool:
        return is_independent(pod) and not any(repelled(pod, self._repellers))


def _wish(pod: Pod) -> bytes:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return msgspec.json.encode((pod.spec.node_selector, affinity, pod.spec.tolerations))


def _count(rooms: Iterable[Room], largest: Amounts) -> int:
    """How many pods of a size find a place; one that holds nothing of a resource has no place for those that ask."""
    asked = [(name, amount) for name, amount in largest.items() if amount]
    return sum(max(min(room.free.get(name, 0) // amount for name, amount in asked), 0) for room in rooms)
